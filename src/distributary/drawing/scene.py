"""What a picture of a tree shows, without saying how."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from distributary.arguments import checked_fields
from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.drawing.palette import SAFE_COLOUR_COUNT, colours

__all__ = ["NOT_MADE", "TreeScene"]

NOT_MADE = -1


@checked_fields
@dataclass(frozen=True, eq=False)
class TreeScene:
    """A tree whose links carry several kinds of content and whose nodes use them.

    Attributes
    ----------
    nodes
        A name per node, as somebody wrote it: nothing in here is trusted.
    parents
        Index 0 is the root with parent -1, `parents[v] < v`, shape (nodes,).
    kind_noun
        What a kind of content is called, in the singular.
    carried
        `carried[v, k]`: does the link into `v` carry kind `k`?
    made_from
        `made_from[v, k]` is the kind from which `v` makes `k`, or `NOT_MADE`.
    wanted
        `wanted[v, k]`: is `k` wanted at `v`?
    held
        `held[k]`: is `k` in hand at the root, shape (kinds,)?
    link_costs, node_costs
        What the link into each node and the work at each node cost, shape (nodes,).
    legend_columns, legend_cells
        What the legend says about each kind beside its name: the heads of the
        columns, and a tuple of cells per kind.
    details
        The figures of each node, as words, where a page is to tell these instead of
        what a node receives, makes, wants and costs.
    links
        The name of each link and its figures, where links are more than the way from a
        parent: the picture refers to them by their index.
    palette
        A colour per kind; chosen here unless given.
    """

    title: str
    subtitle: str
    nodes: tuple[str, ...]
    parents: IntArray
    kind_noun: str
    kinds: tuple[str, ...]
    carried: BoolArray
    made_from: IntArray
    wanted: BoolArray
    held: BoolArray
    link_costs: FloatArray
    node_costs: FloatArray
    legend_columns: tuple[str, ...]
    legend_cells: tuple[tuple[str, ...], ...]
    details: tuple[tuple[str, ...], ...] | None = None
    links: tuple[tuple[str, ...], ...] | None = None
    palette: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        shape = (len(self.nodes), len(self.kinds))
        assert self.carried.shape == self.made_from.shape == self.wanted.shape == shape
        assert self.parents.shape == self.link_costs.shape == self.node_costs.shape == shape[:1]
        assert self.held.shape == shape[1:]
        assert len(self.legend_cells) == shape[1]
        assert self.details is None or len(self.details) == shape[0]

    @property
    def made(self) -> BoolArray:
        """`made[v, k]`: does `v` make `k`?"""
        made: BoolArray = self.made_from != NOT_MADE
        return made

    @cached_property
    def reached(self) -> BoolArray:
        """`reached[v]`: does anything arrive at `v`? The root counts as reached."""
        reached: BoolArray = np.array(self.carried.any(axis=1))
        reached[0] = True
        return reached

    @cached_property
    def shown_kinds(self) -> tuple[int, ...]:
        """The kinds that occur in the picture, in the order of their indices."""
        occurs = (self.carried | self.wanted | self.made).any(axis=0) | self.held
        return tuple(int(k) for k in np.flatnonzero(occurs))

    @cached_property
    def colours(self) -> tuple[str, ...]:
        """A colour per kind.

        While the safe colours suffice for all kinds, a kind's index decides, so that
        two pictures of one problem agree. Beyond that the busiest kinds of this
        picture get them.
        """
        if self.palette is not None:
            return self.palette
        count = len(self.kinds)
        order = np.arange(count)
        if count > SAFE_COLOUR_COUNT:
            uses = self.carried.sum(axis=0) + self.made.sum(axis=0) + self.wanted.sum(axis=0)
            order = np.lexsort((np.arange(count), -(uses + self.held)))
        ranked = colours(count)
        chosen = [""] * count
        for rank, kind in enumerate(order.tolist()):
            chosen[kind] = ranked[rank]
        return tuple(chosen)
