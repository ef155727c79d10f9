"""Rows on their way from a file into a table: their columns, where they stood, what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import BoolArray, IntArray
from distributary.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

    from distributary.pipeline.schemas import TableSchema

__all__ = [
    "ORIGIN",
    "RAW_CHARACTERS_MAX",
    "Faults",
    "Layout",
    "SourceRows",
    "layout_of",
    "read_each",
    "refused_file",
    "refused_rows",
    "with_origin",
]

T = TypeVar("T")

ORIGIN = ("file", "line", "raw", "reason")
"""The columns that rows have besides those of their table, until they are told apart."""

RAW_CHARACTERS_MAX = 4096
"""So much of a line is kept in quarantine."""


@dataclass(frozen=True)
class Layout:
    """A table as executors need it, where there is no Spark to ask.

    `publisher` is the attribute that names the publisher of an event; None stands for the
    extension of that name, and the source of events without it.
    """

    table: str
    schema: pa.Schema
    required: frozenset[str]
    publisher: str | None = None


def layout_of(declared: TableSchema, *, publisher: str | None = None) -> Layout:
    """Return the layout of a table."""
    import pyarrow as pa

    required = frozenset(field.name for field in declared.arrow if not field.nullable)
    kinds = [(field.name, field.type) for field in declared.arrow]
    return Layout(declared.name, pa.schema(kinds), required, publisher)


class Faults:
    """What is wrong with rows: the first thing that was found, for each."""

    def __init__(self, rows: int) -> None:
        self.bad: BoolArray = np.zeros(rows, bool)
        self._reasons: NDArray[np.object_] = np.empty(0, object)

    def mark(self, rows: BoolArray, reason: str) -> None:
        """Note one thing about all rows where `rows` is true."""
        new = rows & ~self.bad
        if new.any():
            self._texts[new] = reason
            self.bad |= new

    def mark_each(self, rows: Iterable[int], reasons: Iterable[str]) -> None:
        """Note something else about each row."""
        for row, reason in zip(rows, reasons, strict=True):
            if not self.bad[row]:
                self._texts[row] = reason
                self.bad[row] = True

    def reasons(self) -> pa.StringArray:
        """Return the reasons of the rows that are bad, in their order."""
        import pyarrow as pa

        return pa.array(self._reasons[self.bad] if self.bad.any() else [], pa.string())

    @property
    def _texts(self) -> NDArray[np.object_]:
        if len(self._reasons) < len(self.bad):
            self._reasons = np.empty(len(self.bad), object)
        return self._reasons


def read_each(texts: pa.StringArray, faults: Faults, read: Callable[[str], T]) -> list[T | None]:
    """Return what `read` makes of each text; a fault and None where it raises `BadInput`."""
    found: list[T | None] = []
    for row, text in enumerate(texts.to_pylist()):
        try:
            found.append(None if text is None else read(text))
        except BadInput as error:
            found.append(None)
            faults.mark_each([row], [str(error)])
    return found


@dataclass(frozen=True)
class SourceRows:
    """Some rows of a file.

    Columns are null where something could not be read. `numbers` are lines, or rows of a
    Parquet file, and `raws` returns how some of them stand in the file.
    """

    columns: pa.RecordBatch
    numbers: IntArray
    raws: Callable[[IntArray], pa.StringArray]
    faults: Faults


def refused_rows(
    layout: Layout, raws: Sequence[bytes], numbers: IntArray, reasons: Sequence[str]
) -> SourceRows:
    """Return lines of which nothing could be read."""
    import pyarrow as pa

    count = len(raws)
    faults = Faults(count)
    faults.mark_each(range(count), reasons)
    columns = [pa.nulls(count, field.type) for field in layout.schema]
    # Four bytes are enough for any character.
    texts = pa.array(
        [raw[: RAW_CHARACTERS_MAX * 4].decode("utf-8", "replace") for raw in raws], pa.string()
    )
    return SourceRows(
        pa.record_batch(columns, schema=layout.schema),
        numbers,
        lambda rows: texts.take(pa.array(rows)),
        faults,
    )


def with_origin(rows: SourceRows, file: str, *, origins: bool) -> pa.RecordBatch:
    """Return rows as the transform yields them: the table's columns, then `ORIGIN`.

    Good rows say where they come from if `origins` are asked for: it takes longer than
    reading most of them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    count = len(rows.numbers)
    bad = rows.faults.bad
    shown = np.ones(count, bool) if origins else bad
    if not shown.any():
        origin = [pa.nulls(count, kind) for kind in _origin_types()]
    else:
        raws = pc.utf8_slice_codeunits(
            pc.utf8_rtrim(rows.raws(np.flatnonzero(shown)), "\r\n"), 0, RAW_CHARACTERS_MAX
        )
        origin = [
            _scattered(shown, pa.repeat(file, int(shown.sum()))),
            _scattered(shown, pa.array(rows.numbers[shown], pa.int64())),
            _scattered(shown, raws),
            _scattered(bad, rows.faults.reasons()),
        ]
    return pa.RecordBatch.from_arrays(
        [*rows.columns.columns, *origin], names=[*rows.columns.schema.names, *ORIGIN]
    )


def refused_file(layout: Layout, file: str, reason: str) -> pa.RecordBatch:
    """Return the one row that stands for a file of which nothing more could be read."""
    import pyarrow as pa

    kinds = [*(field.type for field in layout.schema), pa.string(), pa.int64(), pa.string()]
    values = [pa.nulls(1, kind) for kind in kinds]
    values[len(layout.schema)] = pa.array([file])
    return pa.RecordBatch.from_arrays(
        [*values, pa.array([reason])], names=[*layout.schema.names, *ORIGIN]
    )


def _scattered(rows: BoolArray, values: pa.Array) -> pa.Array:
    """Return an array that has the values where `rows` is true, and is null elsewhere."""
    import pyarrow as pa

    if rows.all():
        return values
    places = np.cumsum(rows) - 1
    return values.take(pa.array(places, pa.int64(), mask=~rows))


def _origin_types() -> tuple[pa.DataType, ...]:
    import pyarrow as pa

    return pa.string(), pa.int64(), pa.string(), pa.string()
