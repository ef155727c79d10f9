"""Lines of publications: CloudEvents in JSON, or rows of the table itself.

Events are read one by one by the rule that brokers use. No attribute of an event can be
called `event_id`, as their names have no underscore, so that a row is told from an event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from distributary.content.publication import Publication, parse_event
from distributary.content.publication_table import to_arrow
from distributary.errors import BadInput
from distributary.pipeline.sources.json_lines import line_document, row_values
from distributary.pipeline.sources.lines import Readable
from distributary.pipeline.sources.source_rows import Faults, Layout, SourceRows

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["event_rows"]

_ROW_SIGN = "event_id"


def event_rows(lines: Readable, layout: Layout) -> SourceRows:
    """Return the publications that lines of JSON hold."""
    import pyarrow as pa

    faults = Faults(len(lines.texts))
    events: list[Publication] = []
    rows: list[list[Any]] = []
    # Where each line's publication will stand: among the events, or after them.
    event_lines: list[int] = []
    row_lines: list[int] = []
    for line, text in enumerate(lines.texts.to_pylist()):
        try:
            read = _event_or_row(text, layout)
        except BadInput as error:
            faults.mark_each([line], [str(error)])
            continue
        if isinstance(read, Publication):
            events.append(read)
            event_lines.append(line)
        else:
            rows.append(read)
            row_lines.append(line)
    batch = pa.Table.from_batches([to_arrow(events).cast(layout.schema), _table(rows, layout)])
    places = np.full(len(lines.texts), -1, np.int64)
    places[[*event_lines, *row_lines]] = np.arange(batch.num_rows)
    taken = batch.take(pa.array(places, mask=places < 0)).combine_chunks()
    return SourceRows(
        taken.to_batches()[0] if len(places) else _table([], layout),
        lines.numbers,
        lambda chosen: lines.texts.take(pa.array(chosen)),
        faults,
    )


def _event_or_row(text: str, layout: Layout) -> Publication | list[object]:
    text = text.rstrip("\r\n")
    if _ROW_SIGN not in text:
        try:
            return parse_event(text)
        except BadInput as error:
            place = error.place.removeprefix("line 1, ")
            raise BadInput(place, error.problem, hint=error.hint) from None
    document = line_document(text)
    if isinstance(document, dict) and _ROW_SIGN in document:
        return row_values(document, layout)
    return Publication.parse(document)


def _table(rows: list[list[Any]], layout: Layout) -> pa.RecordBatch:
    import pyarrow as pa

    columns = list(zip(*rows, strict=True)) or [()] * len(layout.schema)
    return pa.record_batch(
        [
            pa.array(list(values), field.type)
            for values, field in zip(columns, layout.schema, strict=True)
        ],
        schema=layout.schema,
    )
