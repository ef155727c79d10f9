"""Adaptation graphs for publications of any format and size, a few microseconds each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distributary.arrays import FloatArray
from distributary.content.adaptation_graph import AdaptationGraph
from distributary.content.fields import Record
from distributary.content.format_choice import format_index
from distributary.content.graph_file import graph_from
from distributary.content.payload import CONTENT_BYTES_MAX
from distributary.errors import BadInput

__all__ = ["CalibratedFormats", "SourceGraph"]

_MEGABYTE = 1e6
# Readings of a sensor are of few sizes; photographs never are.
_REMEMBERED_MAX = 256


@dataclass(frozen=True, eq=False)
class SourceGraph:
    """What can be made of content of one format and size.

    The formats that can be made of it, itself among them, the index of its own, and the
    indices of all by name.
    """

    graph: AdaptationGraph
    source: int
    index_of: dict[str, int]


@dataclass(frozen=True, eq=False)
class _Lines:
    """Sizes and costs of the formats that can be made of one format: fixed, and per MB."""

    fixed: AdaptationGraph
    per_mb: AdaptationGraph
    possible: FloatArray
    source: int
    index_of: dict[str, int]


class CalibratedFormats:
    """A calibrated graph, read once.

    `content.calibrated_graph.graph_for` reads the whole document for each size; the graphs
    here are equal to its graphs on the formats that can be made of the source, digit by
    digit. No plan uses others.
    """

    def __init__(self, document: object) -> None:
        record = Record(document)
        self._fixed = graph_from(record, amount=lambda e, key: e.record(key).number("fixed"))
        self._per_mb = graph_from(record, amount=lambda e, key: e.record(key).number("per_mb"))
        self._lines: dict[str, _Lines] = {}
        self._graphs: dict[tuple[str, int], SourceGraph] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """All formats."""
        return self._fixed.names

    def graph(self, media_type: str, content_bytes: int) -> SourceGraph:
        """Return what can be made of content of a format and size.

        A format that the calibration does not know can be passed on as it is.
        """
        if not 0 <= content_bytes <= CONTENT_BYTES_MAX:
            raise BadInput(
                "bytes", f"must be between 0 and {CONTENT_BYTES_MAX}, not {content_bytes}"
            )
        found = self._graphs.get((media_type, content_bytes))
        if found is None:
            while len(self._graphs) >= _REMEMBERED_MAX:
                self._graphs.pop(next(iter(self._graphs)))
            found = self._made(media_type, content_bytes / _MEGABYTE)
            self._graphs[media_type, content_bytes] = found
        return found

    def _made(self, media_type: str, megabytes: float) -> SourceGraph:
        if media_type not in self._lines:
            while len(self._lines) >= _REMEMBERED_MAX:
                self._lines.pop(next(iter(self._lines)))
            self._lines[media_type] = self._lines_of(media_type)
        lines = self._lines[media_type]
        graph = AdaptationGraph(
            lines.fixed.names,
            lines.fixed.sizes + lines.per_mb.sizes * megabytes,
            # Impossible conversions stay so; infinity times zero megabytes is not a number.
            lines.fixed.costs + lines.possible * megabytes,
        )
        return SourceGraph(graph, lines.source, lines.index_of)

    def _lines_of(self, media_type: str) -> _Lines:
        index = format_index(self._fixed, media_type)
        if index is None:
            one = AdaptationGraph((media_type,), np.zeros(1), np.full((1, 1), np.inf))
            size = AdaptationGraph((media_type,), np.ones(1), np.full((1, 1), np.inf))
            return _Lines(one, size, np.zeros((1, 1)), 0, {media_type: 0})
        kept = np.flatnonzero(self._fixed.makeable[index])
        fixed = self._fixed.restricted_to(kept.tolist())
        per_mb = self._per_mb.restricted_to(kept.tolist())
        source = int(np.searchsorted(kept, index))
        # A subscriber without a profile wants the original, under the publication's name.
        index_of = {name: k for k, name in enumerate(fixed.names)} | {media_type: source}
        possible = np.where(np.isfinite(per_mb.costs), per_mb.costs, 0.0)
        return _Lines(fixed, per_mb, possible, source, index_of)
