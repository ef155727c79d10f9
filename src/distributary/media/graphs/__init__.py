"""The calibrated graphs that come with distributary, one for each family.

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

__all__ = ["GRAPHS", "DefaultCosts", "default_costs", "default_graph"]

GRAPHS = ("map", "video")
"""The names of the graphs: all that can be made from a PDF, and from a video."""

_ENTRIES_MAX = 1_000_000


@dataclass(frozen=True)
class DefaultCosts:
    """Megabytes of formats and seconds of conversions, of all the graphs together."""

    sizes: Mapping[str, Line]
    seconds: Mapping[tuple[str, str], Line]


def default_graph(name: str) -> dict[str, object]:
    """Return a calibrated graph as a document, for `content.calibrated_graph.graph_for`."""
    if name not in GRAPHS:
        raise no_such_name("graph", name, GRAPHS, "a graph that comes with distributary")
    data = (files(__name__) / f"{name}.json").read_bytes()
    return cast("dict[str, object]", parse_document(data))


@lru_cache(maxsize=1)
def default_costs() -> DefaultCosts:
    """Return what the graphs say about formats and conversions.

    No format is in two of them.
    """
    sizes: dict[str, Line] = {}
    seconds: dict[tuple[str, str], Line] = {}
    for graph in GRAPHS:
        document = Record(default_graph(graph))
        for entry in document.records("formats", count_max=_ENTRIES_MAX):
            sizes[entry.name("name")] = _line(entry.record("size"))
        for entry in document.records("conversions", count_max=_ENTRIES_MAX):
            seconds[entry.name("from"), entry.name("to")] = _line(entry.record("cost"))
    return DefaultCosts(sizes, seconds)


def _line(record: Record) -> Line:
    return Line(record.number("fixed"), record.number("per_mb"))
