"""Which format each device gets of each publication, worked out once for all that are alike.

The rule is that of `content.format_choice`. It asks for the largest format that fits, and
sizes depend on how large the publication is; but only the order of the sizes matters, and
there are few orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from distributary.arrays import IntArray
from distributary.content.adaptation_graph import AdaptationGraph
from distributary.content.calibrated_graph import graph_for
from distributary.content.fields import Record
from distributary.content.format_choice import NoFormat, choose_format, format_index
from distributary.content.graph_file import graph_from
from distributary.content.payload import CONTENT_BYTES_MAX
from distributary.content.profile import DeviceProfile

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FormatChoices", "Kinds"]

_REMEMBERED_MAX = 1_000_000
_MEGABYTE = 1e6


class _Kind(NamedTuple):
    """Publications that everybody gets in the same format.

    `order` has the formats that can be made of them, by size, as bytes.
    """

    media_type: str | None
    order: bytes


class Kinds(NamedTuple):
    """The kinds of the publications of a batch.

    The number of each publication's kind, the kinds by number, and how many bytes a
    publication of each has.
    """

    of_row: IntArray
    kinds: list[_Kind]
    examples: list[int]


class FormatChoices:
    """Chooses formats by profile and publication.

    Profiles are those of all subscribers by number; None takes the original.
    """

    def __init__(
        self, document: dict[str, object], profiles: Sequence[DeviceProfile | None]
    ) -> None:
        self._document = document
        self._profiles = tuple(profiles)
        self._graph = graph_for(document, 0)
        self._fixed = self._graph.sizes
        self._per_mb = graph_from(
            Record(document), amount=lambda entry, key: entry.record(key).number("per_mb")
        ).sizes
        self._chosen: dict[tuple[int, _Kind], str | None] = {}
        self._graphs: dict[int, AdaptationGraph] = {}

    def kinds(self, media_types: pa.Array, content_bytes: IntArray) -> Kinds:
        """Return the kinds of publications of these formats and sizes."""
        encoded = media_types.dictionary_encode()
        names: list[str | None] = [*encoded.dictionary.to_pylist(), None]
        codes = np.asarray(encoded.indices.fill_null(len(names) - 1), np.int64)
        by_name = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[by_name], np.arange(len(names)), side="right")
        found = Kinds(np.empty(len(codes), np.int64), [], [])
        begin = 0
        for name, end in zip(names, ends.tolist(), strict=True):
            rows = by_name[begin:end]
            if len(rows):
                self._sort_out(name, rows, content_bytes, found)
            begin = end
        return found

    def chosen(self, profiles: IntArray, rows: IntArray, kinds: Kinds) -> pa.Array:
        """Return the formats for these profiles of publications in these rows.

        Null where nothing that the device can use can be made, and where there is no
        content.
        """
        import pyarrow as pa

        count = len(kinds.kinds)
        pairs = pa.array(profiles * count + kinds.of_row[rows]).dictionary_encode()
        formats = [
            self._format(pair // count, pair % count, kinds)
            for pair in pairs.dictionary.to_pylist()
        ]
        return pa.array(formats, pa.string()).take(pairs.indices)

    def _sort_out(
        self, name: str | None, rows: IntArray, content_bytes: IntArray, found: Kinds
    ) -> None:
        """Find the kinds of the publications in `rows`, all of one format."""
        import pyarrow as pa

        held = None if name is None else format_index(self._graph, name)
        first = len(found.kinds)
        made = np.empty(0, np.int64) if held is None else np.flatnonzero(self._graph.makeable[held])
        if len(made) < 2:
            found.of_row[rows] = first
            found.kinds.append(_Kind(name, b""))
            found.examples.append(0)
            return
        # The very operations of `graph_for`, so that sizes are the same to the last bit.
        megabytes = np.clip(content_bytes[rows], 0, CONTENT_BYTES_MAX) / _MEGABYTE
        sizes = self._fixed[made] + self._per_mb[made] * megabytes[:, None]
        orders = np.argsort(-sizes, axis=1, kind="stable").astype(np.uint16)
        width = orders.dtype.itemsize * len(made)
        encoded = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(width), len(rows), [None, pa.py_buffer(np.ascontiguousarray(orders))]
        ).dictionary_encode()
        numbers = np.asarray(encoded.indices, np.int64)
        found.of_row[rows] = first + numbers
        _, firsts = np.unique(numbers, return_index=True)
        found.kinds.extend(_Kind(name, order) for order in encoded.dictionary.to_pylist())
        found.examples.extend(content_bytes[rows[firsts]].tolist())

    def _format(self, profile: int, number: int, kinds: Kinds) -> str | None:
        kind = kinds.kinds[number]
        if kind.media_type is None:
            return None
        key = (profile, kind)
        if key not in self._chosen:
            if len(self._chosen) >= _REMEMBERED_MAX:
                self._chosen.clear()
            graph = self._graph_for(kinds.examples[number])
            choice = choose_format(self._profiles[profile], graph, kind.media_type)
            self._chosen[key] = None if isinstance(choice, NoFormat) else choice.name
        return self._chosen[key]

    def _graph_for(self, content_bytes: int) -> AdaptationGraph:
        if content_bytes not in self._graphs:
            if len(self._graphs) >= 64:
                self._graphs.clear()
            size = min(max(content_bytes, 0), CONTENT_BYTES_MAX)
            self._graphs[content_bytes] = graph_for(self._document, size)
        return self._graphs[content_bytes]
