"""The calibrated graphs that come with distributary: of maps, of videos, and of all there is.

They were measured, not made up: each names the machine and the command. On another
machine, `distributary calibrate` measures again; what follows here is good enough to plan
with before anybody has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import cast

from distributary.content.documents import parse_document
from distributary.content.fields import Record, no_such_name
from distributary.media.line_fit import Line

__all__ = [
    "ALL_GRAPHS",
    "GRAPHS",
    "DefaultCosts",
    "default_costs",
    "default_graph",
    "joined_graphs",
    "measured_graph",
]

GRAPHS = ("map", "video")
"""The names of the graphs: all that can be made from a PDF, and from a video."""
ALL_GRAPHS = "all"
"""The name of the graph with both and all that is beyond them, such as the sound of a video."""

# What the other two lack, measured apart; no graph by itself.
_MORE = "more"

_ENTRIES_MAX = 1_000_000


@dataclass(frozen=True)
class DefaultCosts:
    """Megabytes of formats and seconds of conversions, of all the graphs together."""

    sizes: Mapping[str, Line]
    seconds: Mapping[tuple[str, str], Line]


def default_graph(name: str) -> dict[str, object]:
    """Return a calibrated graph as a document, for `content.calibrated_graph.graph_for`."""
    if name == ALL_GRAPHS:
        return joined_graphs(*GRAPHS, _MORE)
    if name not in GRAPHS:
        known = (*GRAPHS, ALL_GRAPHS)
        raise no_such_name("graph", name, known, "a graph that comes with distributary")
    return measured_graph(name)


def measured_graph(name: str) -> dict[str, object]:
    """Return what one calibration found: a graph, or `more`, which goes on where both end."""
    data = (files(__name__) / f"{name}.json").read_bytes()
    return cast("dict[str, object]", parse_document(data))


def joined_graphs(*names: str) -> dict[str, object]:
    """Return graphs side by side in one document; no format is in two of them."""
    documents = [measured_graph(name) for name in names or GRAPHS]
    return {
        field: [entry for document in documents for entry in cast("list[object]", document[field])]
        for field in ("formats", "conversions")
    }


@lru_cache(maxsize=1)
def default_costs() -> DefaultCosts:
    """Return what the graphs say about formats and conversions.

    No format is in two of them.
    """
    sizes: dict[str, Line] = {}
    seconds: dict[tuple[str, str], Line] = {}
    document = Record(default_graph(ALL_GRAPHS))
    for entry in document.records("formats", count_max=_ENTRIES_MAX):
        sizes[entry.name("name")] = _line(entry.record("size"))
    for entry in document.records("conversions", count_max=_ENTRIES_MAX):
        seconds[entry.name("from"), entry.name("to")] = _line(entry.record("cost"))
    return DefaultCosts(sizes, seconds)


def _line(record: Record) -> Line:
    return Line(record.number("fixed"), record.number("per_mb"))
