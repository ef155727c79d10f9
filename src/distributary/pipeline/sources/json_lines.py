"""Lines of JSON: an object each, with the table's columns by name; null may be left out.

Arrow reads all lines at once where each is an object of the expected types. Lines that are
not, and tables with maps, are read one by one.

Lines of publications are CloudEvents, or rows of the table itself. Events are read by the rule
that brokers use. No attribute of an event can be called `event_id`, as their names have no
underscore, so that a row is told from an event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from distributary.content.attributes import attribute_text
from distributary.content.documents import parse_document
from distributary.content.fields import described
from distributary.content.publication import PUBLISHER, Publication, parse_event
from distributary.content.publication_table import to_arrow
from distributary.errors import BadInput
from distributary.pipeline.sources.documents import value_of
from distributary.pipeline.sources.lines import Readable
from distributary.pipeline.sources.source_rows import Faults, Layout, SourceRows, read_each
from distributary.pipeline.sources.texts import times_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["event_rows", "json_rows", "publisher_of"]

_NOT_NUMBERS = (b"NaN", b"Inf")
_ROW_SIGN = "event_id"


def json_rows(lines: Readable, layout: Layout) -> SourceRows:
    """Return the rows that lines of JSON hold."""
    import pyarrow as pa

    faults = Faults(len(lines.texts))
    table = _read_at_once(lines.texts, layout)
    if table is None:
        read = read_each(lines.texts, faults, lambda text: _values(_document(text), layout))
        missing: list[Any] = [None] * len(layout.schema)
        return lines.rows(_batch([values or missing for values in read], layout), faults)
    columns = [
        times_of(field.name, table.column(field.name).combine_chunks(), faults)
        if pa.types.is_timestamp(field.type)
        else table.column(field.name).combine_chunks().cast(field.type)
        for field in layout.schema
    ]
    return lines.rows(pa.record_batch(columns, schema=layout.schema), faults)


def event_rows(lines: Readable, layout: Layout) -> SourceRows:
    """Return the publications that lines of JSON hold."""
    import pyarrow as pa

    faults = Faults(len(lines.texts))
    read = read_each(lines.texts, faults, lambda text: _event_or_values(text, layout))
    events = {line: item for line, item in enumerate(read) if isinstance(item, Publication)}
    publishers = [publisher_of(event, layout.publisher) for event in events.values()]
    rows = {line: item for line, item in enumerate(read) if isinstance(item, list)}
    batch = pa.Table.from_batches(
        [
            to_arrow(list(events.values()), publishers=publishers).cast(layout.schema),
            _batch(list(rows.values()), layout),
        ]
    )
    # Where each line's publication stands: among the events, or after them.
    places = np.full(len(read), -1, np.int64)
    places[[*events, *rows]] = np.arange(batch.num_rows)
    taken = batch.take(pa.array(places, mask=places < 0)).combine_chunks()
    return lines.rows(taken.to_batches()[0] if len(places) else _batch([], layout), faults)


def publisher_of(event: Publication, attribute: str | None) -> str:
    """Return who published an event, or raise `BadInput`: an attribute has to name somebody."""
    if attribute is None and PUBLISHER not in event.attributes:
        return event.source
    name = attribute or PUBLISHER
    if name not in event.attributes:
        raise BadInput(name, "is missing, and names the publisher")
    found = attribute_text(event.attributes[name])
    if not found:
        raise BadInput(name, "is empty, and names the publisher")
    return found


def _event_or_values(text: str, layout: Layout) -> Publication | list[object]:
    text = text.rstrip("\r\n")
    if _ROW_SIGN not in text:
        try:
            event = parse_event(text)
        except BadInput as error:
            place = error.place.removeprefix("line 1, ")
            raise BadInput(place, error.problem, hint=error.hint) from None
    else:
        document = _document(text)
        if isinstance(document, dict) and _ROW_SIGN in document:
            return _values(document, layout)
        event = Publication.parse(document)
    publisher_of(event, layout.publisher)
    return event


def _document(line: str) -> object:
    """Return the document in a line; an error does not repeat that it is one line."""
    try:
        return parse_document(line.rstrip("\r\n"))
    except BadInput as error:
        place = error.place.removeprefix("line 1, ")
        raise BadInput("line" if place == "document" else place, error.problem) from None


def _values(document: object, layout: Layout) -> list[object]:
    """Return the values of the table's columns in a document, or raise `BadInput`."""
    if not isinstance(document, dict):
        raise BadInput("line", f"must be an object, not {described(document)}")
    return [value_of(field.name, document.get(field.name), field.type) for field in layout.schema]


def _batch(rows: list[list[Any]], layout: Layout) -> pa.RecordBatch:
    import pyarrow as pa

    columns = list(zip(*rows, strict=True)) or [()] * len(layout.schema)
    return pa.record_batch(
        [
            pa.array(list(values), field.type)
            for values, field in zip(columns, layout.schema, strict=True)
        ],
        schema=layout.schema,
    )


def _read_at_once(texts: pa.StringArray, layout: Layout) -> pa.Table | None:
    """Return all lines, or None if Arrow does not read each of them as one object."""
    import pyarrow as pa
    from pyarrow import json as arrow_json

    if not len(texts) or any(pa.types.is_map(field.type) for field in layout.schema):
        return None
    _, offset_buffer, data = texts.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = data.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    if not _are_objects(np.frombuffer(data, np.uint8), offsets - offsets[0]):
        return None
    content = data.to_pybytes()
    # Arrow takes them for numbers, and JSON has none such.
    if any(sign in content for sign in _NOT_NUMBERS):
        return None
    schema = pa.schema(
        [
            (field.name, pa.string() if pa.types.is_timestamp(field.type) else field.type)
            for field in layout.schema
        ]
    )
    try:
        table = arrow_json.read_json(
            pa.BufferReader(data),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=data.size + 1),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="ignore"
            ),
        )
    except pa.ArrowInvalid:
        return None
    return table if table.num_rows == len(texts) else None


def _are_objects(data: np.ndarray, offsets: np.ndarray) -> bool:
    """Whether each line begins and ends with a brace.

    An object that goes on in the next line then cannot pass for two: what follows a brace
    that closes is never one that opens. Two objects in a line are one row too many.
    """
    ends = offsets[1:] - 1
    ends = ends - (data[ends] == ord("\n"))
    ends = ends - (data[np.maximum(ends, 0)] == ord("\r"))
    return bool((data[offsets[:-1]] == ord("{")).all() and (data[ends] == ord("}")).all())
