"""Adaptation graphs in files: formats and conversions, checked entry by entry."""

from __future__ import annotations

from collections.abc import Callable

from distributary.content.adaptation_graph import AdaptationGraph
from distributary.content.fields import Record, no_such_name
from distributary.errors import BadInput, quoted

__all__ = ["CONVERSIONS_MAX", "FORMATS_MAX", "graph_from"]

FORMATS_MAX = 2_000
CONVERSIONS_MAX = 1_000_000

Amount = Callable[[Record, str], float]
"""Reads the amount in one field: a plain number, or one worked out from measurements."""


def graph_from(
    document: Record,
    *,
    amount: Amount = Record.number,
    visit: Callable[[Record], None] = lambda record: None,
) -> AdaptationGraph:
    """Return the adaptation graph in the fields `formats` and `conversions`.

    Parameters
    ----------
    document
        The object that has the two fields.
    amount
        How the size of a format and the cost of a conversion are read.
    visit
        Called with every entry, to look at the fields that are not read here.
    """
    sizes: dict[str, float] = {}
    for entry in document.records("formats", count_max=FORMATS_MAX):
        name = entry.name("name")
        if name in sizes:
            raise BadInput(entry.place("name"), f"format {quoted(name)} is given twice")
        sizes[name] = amount(entry, "size")
        visit(entry)
    if not sizes:
        raise BadInput("formats", "is empty", hint="there is at least the source format")
    costs: dict[tuple[str, str], float] = {}
    for entry in document.records("conversions", count_max=CONVERSIONS_MAX):
        source, target = entry.name("from"), entry.name("to")
        for key, name in (("from", source), ("to", target)):
            if name not in sizes:
                raise no_such_name(entry.place(key), name, sizes, "a format")
        if source == target:
            raise BadInput(entry.place("to"), f"{quoted(source)} is converted into itself")
        if (source, target) in costs:
            raise BadInput(
                entry.place(),
                f"conversion from {quoted(source)} to {quoted(target)} is given twice",
            )
        costs[source, target] = amount(entry, "cost")
        visit(entry)
    return AdaptationGraph.from_conversions(
        sizes.items(), ((source, target, cost) for (source, target), cost in costs.items())
    )
