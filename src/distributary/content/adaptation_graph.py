"""The adaptation graph: formats, their sizes, and the conversions between them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from distributary.arrays import BoolArray, FloatArray
from distributary.errors import BadInput, quoted

__all__ = ["AdaptationGraph"]


@dataclass(frozen=True, eq=False)
class AdaptationGraph:
    """Formats with their sizes, and what each conversion between them costs.

    A missing conversion is impossible, not free.

    Attributes
    ----------
    names
        One name per format; its position is the format's index everywhere.
    sizes
        `sizes[k]` is what format `k` costs to transmit, shape (formats,).
    costs
        `costs[i, j]` is what converting `i` into `j` costs, infinite when
        impossible, shape (formats, formats). The diagonal is infinite.
    """

    names: tuple[str, ...]
    sizes: FloatArray
    costs: FloatArray

    def __post_init__(self) -> None:
        count = len(self.names)
        assert self.sizes.shape == (count,)
        assert self.costs.shape == (count, count)
        self.sizes.flags.writeable = False
        self.costs.flags.writeable = False

    @classmethod
    def from_conversions(
        cls,
        formats: Iterable[tuple[str, float]],
        conversions: Iterable[tuple[str, str, float]],
    ) -> AdaptationGraph:
        """Build a graph from (name, size) pairs and (from, to, cost) triples.

        Formats are put in the order of their names, so that no planner's result
        depends on the order in which somebody wrote them down.
        """
        pairs = sorted(formats)
        names = tuple(name for name, _ in pairs)
        index = {name: k for k, name in enumerate(names)}
        if len(index) < len(names):
            twice = next(a for a, b in itertools.pairwise(names) if a == b)
            raise BadInput("formats", f"{quoted(twice)} is given twice")
        costs = np.full((len(names), len(names)), np.inf)
        for source, target, cost in conversions:
            for name in (source, target):
                if name not in index:
                    raise BadInput("conversions", f"{quoted(name)} is not a format")
            i, j = index[source], index[target]
            if i == j:
                raise BadInput("conversions", f"{quoted(source)} is converted into itself")
            if np.isfinite(costs[i, j]):
                raise BadInput(
                    "conversions", f"{quoted(source)} to {quoted(target)} is given twice"
                )
            costs[i, j] = cost
        return cls(names, np.array([size for _, size in pairs], dtype=np.float64), costs)

    @property
    def format_count(self) -> int:
        """How many formats there are."""
        return len(self.names)

    @cached_property
    def conversion_count(self) -> int:
        """How many direct conversions are possible."""
        return int(np.isfinite(self.costs).sum())

    @cached_property
    def chain_costs(self) -> FloatArray:
        """The cheapest chain of conversions from `i` to `j`; 0 on the diagonal."""
        costs = self.costs.copy()
        np.fill_diagonal(costs, 0.0)
        for k in range(self.format_count):
            np.minimum(costs, costs[:, k, None] + costs[None, k, :], out=costs)
        costs.flags.writeable = False
        return costs

    @cached_property
    def makeable(self) -> BoolArray:
        """`makeable[i, j]`: can `j` be made from `i`, directly or by a chain?"""
        return np.isfinite(self.chain_costs)

    def restricted_to(self, kept: Sequence[int]) -> AdaptationGraph:
        """Return the graph on the formats with these indices, in this order."""
        chosen = np.asarray(kept, dtype=np.intp)
        return AdaptationGraph(
            tuple(self.names[k] for k in kept),
            self.sizes[chosen].copy(),
            self.costs[np.ix_(chosen, chosen)].copy(),
        )
