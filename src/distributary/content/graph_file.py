"""Adaptation graphs in files: formats and conversions, read entry by entry."""

from __future__ import annotations

from collections.abc import Callable

from distributary.content.adaptation_graph import AdaptationGraph
from distributary.content.fields import Record
from distributary.errors import BadInput

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

    `amount` reads the size of a format and the cost of a conversion; `visit` is called with every
    entry, to look at the fields that are not read here.
    """
    formats: list[tuple[str, float]] = []
    for entry in document.records("formats", count_max=FORMATS_MAX):
        formats.append((entry.name("name"), amount(entry, "size")))
        visit(entry)
    if not formats:
        raise BadInput("formats", "is empty", hint="there is at least the source format")
    conversions: list[tuple[str, str, float]] = []
    for entry in document.records("conversions", count_max=CONVERSIONS_MAX):
        conversions.append((entry.name("from"), entry.name("to"), amount(entry, "cost")))
        visit(entry)
    return AdaptationGraph.from_conversions(formats, conversions)
