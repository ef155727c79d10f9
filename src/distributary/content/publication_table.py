"""Publications as an Arrow table: what brokers and Spark's executors match in batches.

Needs pyarrow, which is imported when a function is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, cast

from distributary.content.attributes import attribute_text, attribute_type
from distributary.content.publication import Publication
from distributary.errors import BadInput, MissingPackage

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PUBLICATIONS_VERSION", "publications_schema", "to_arrow"]

PUBLICATIONS_VERSION = 1


def publications_schema() -> pa.Schema:
    """Return the schema of the table `publications`.

    `attributes` holds every attribute, `source`, `id` and `time` among them, with the type
    that CESQL sees; `numbers` and `texts` hold the leaves of JSON data; `bytes` counts the
    data alone, or what an event says of data that it does not carry.
    """
    arrow = _pyarrow()
    attribute = arrow.struct([("type", arrow.string()), ("text", arrow.string())])
    return arrow.schema(
        [
            ("source", arrow.string()),
            ("event_id", arrow.string()),
            ("publisher", arrow.string()),
            ("time", arrow.timestamp("us", tz="UTC")),
            ("attributes", arrow.map_(arrow.string(), attribute)),
            ("numbers", arrow.map_(arrow.string(), arrow.float64())),
            ("texts", arrow.map_(arrow.string(), arrow.string())),
            ("media_type", arrow.string()),
            ("bytes", arrow.int64()),
        ],
        metadata={"version": str(PUBLICATIONS_VERSION)},
    )


def to_arrow(
    publications: Iterable[Publication], *, publishers: Sequence[str | None] | None = None
) -> pa.RecordBatch:
    """Return publications as one batch of the table, in their order.

    `publishers` are the users who published them; without it, `Publication.publisher` says.
    """
    arrow = _pyarrow()
    rows = list(publications)
    if publishers is None:
        publishers = [row.publisher for row in rows]
    elif len(publishers) != len(rows):
        raise BadInput(
            "publishers", f"has {len(publishers):,} entries for {len(rows):,} publications"
        )
    schema = publications_schema()

    def column(name: str, values: Iterable[object]) -> pa.Array:
        return arrow.array(list(values), type=schema.field(name).type)

    def maps(name: str, entries: Sequence[Mapping[str, object]]) -> pa.Array:
        kind = schema.field(name).type
        offsets = [0]
        for entry in entries:
            offsets.append(offsets[-1] + len(entry))
        return arrow.MapArray.from_arrays(
            arrow.array(offsets, arrow.int32()),
            arrow.array([key for entry in entries for key in entry], kind.key_type),
            arrow.array([value for entry in entries for value in entry.values()], kind.item_type),
        )

    attributes = [
        {
            name: {"type": attribute_type(value), "text": attribute_text(value)}
            for name, value in row.attributes.items()
        }
        for row in rows
    ]
    return arrow.record_batch(
        [
            column("source", (row.source for row in rows)),
            column("event_id", (row.id for row in rows)),
            column("publisher", publishers),
            column("time", (_microseconds(row) for row in rows)),
            maps("attributes", attributes),
            maps("numbers", [row.numbers for row in rows]),
            maps("texts", [row.texts for row in rows]),
            column("media_type", (row.media_type for row in rows)),
            column("bytes", (row.content_bytes for row in rows)),
        ],
        schema=schema,
    )


def _pyarrow() -> ModuleType:
    try:
        import pyarrow
    except ImportError:
        raise MissingPackage("pyarrow", extra="arrow", purpose="a table of events") from None
    return cast(ModuleType, pyarrow)


def _microseconds(publication: Publication) -> int | None:
    time_ns = publication.time_ns
    return None if time_ns is None else time_ns // 1000
