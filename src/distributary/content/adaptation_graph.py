"""The adaptation graph: formats, their sizes, and the conversions between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from distributary.arguments import check_entries, check_names, checked, kind_of, no_such_name
from distributary.arrays import BoolArray, FloatArray, amounts_of, check_amounts
from distributary.errors import BadInput, WrongType, quoted

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
        check_names("names", self.names)
        count, names = len(self.names), self.names
        check_amounts("sizes", self.sizes, (count,), lambda k: f"formats: {quoted(names[k])}: size")
        check_amounts(
            "costs",
            self.costs,
            (count, count),
            lambda i, j: f"conversions: {quoted(names[i])} to {quoted(names[j])}: cost",
            unlimited=True,
        )
        if (self.costs.diagonal() != np.inf).any():
            raise BadInput("costs", "must be infinite on the diagonal: no format is made of itself")

    @classmethod
    @checked
    def from_conversions(
        cls,
        formats: Iterable[tuple[str, float]],
        conversions: Iterable[tuple[str, str, float]],
    ) -> AdaptationGraph:
        """Build a graph from (name, size) pairs and (from, to, cost) triples.

        Formats are put in the order of their names, so that no planner's result
        depends on the order in which somebody wrote them down.

        Messages call them by their place in the order given, as a file of them does.
        """
        given = _columns("formats", formats, ("name", "size"))
        sizes: dict[str, float] = {}
        for at, (name, size) in enumerate(
            zip(given[0], amounts_of(given[1], lambda at: f"formats[{at}].size"), strict=True)
        ):
            if name in sizes:
                raise BadInput(f"formats[{at}].name", f"format {quoted(name)} is given twice")
            sizes[name] = float(size)
        names = tuple(sorted(sizes))
        index = {name: k for k, name in enumerate(names)}
        costs = np.full((len(names), len(names)), np.inf)
        sources, targets, amounts = _columns("conversions", conversions, ("from", "to", "cost"))
        values = amounts_of(amounts, lambda at: f"conversions[{at}].cost").tolist()
        for at, (source, target, cost) in enumerate(zip(sources, targets, values, strict=True)):
            for key, name in (("from", source), ("to", target)):
                if name not in index:
                    raise no_such_name(f"conversions[{at}].{key}", name, index, "a format")
            if source == target:
                place = f"conversions[{at}].to"
                raise BadInput(place, f"{quoted(source)} is converted into itself")
            i, j = index[source], index[target]
            if costs[i, j] != np.inf:
                raise BadInput(
                    f"conversions[{at}]",
                    f"conversion from {quoted(source)} to {quoted(target)} is given twice",
                )
            costs[i, j] = cost
        return cls(names, np.array([sizes[name] for name in names], dtype=np.float64), costs)

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
        # A part of what was checked is not checked again: brokers restrict for every publication.
        graph = object.__new__(AdaptationGraph)
        sizes, costs = self.sizes[chosen], self.costs[np.ix_(chosen, chosen)]
        sizes.flags.writeable = costs.flags.writeable = False
        vars(graph).update(names=tuple(self.names[k] for k in kept), sizes=sizes, costs=costs)
        return graph


def _columns(
    argument: str, rows: Iterable[Sequence[Any]], keys: tuple[str, ...]
) -> list[list[Any]]:
    """Return rows that somebody wrote down as a list for each key; all but the last are names."""
    listed = list(rows)
    for at, row in enumerate(listed):
        if not isinstance(row, tuple | list) or len(row) != len(keys):
            wanted = ", ".join(keys)
            raise WrongType(f"{argument}[{at}]", f"must be ({wanted}), not {kind_of(row)}")
    columns = [[row[k] for row in listed] for k in range(len(keys))]
    for key, column in zip(keys[:-1], columns, strict=False):
        check_entries(f"{argument}: {key}", column, str)
    return columns
