"""Lines of CSV: comma-separated values as in RFC 4180, with a line of names at the top.

Columns are found by name, in any order and among others. A field without quotes that is
empty has no value; `""` is an empty text. A line break inside of quotes is not read: it would
need every executor to read the file from its beginning, and one quote too many would take
the rest of the file with it. Such lines go to quarantine.
"""

from __future__ import annotations

import codecs
import csv
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from distributary.arrays import BoolArray
from distributary.errors import BadInput, quoted
from distributary.pipeline.sources.files import open_bytes
from distributary.pipeline.sources.lines import Readable
from distributary.pipeline.sources.source_rows import Faults, Layout, SourceRows
from distributary.pipeline.sources.texts import typed

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Header", "csv_rows", "read_header"]

_HEADER_BYTES_MAX = 2**20
_QUOTED = r'"(?:[^"]|"")*"'
_FIELD = rf'(?:[^",\r\n]*|{_QUOTED})'
_SOUND_LINE = rf"\A{_FIELD}(?:,{_FIELD})*\r?\n?\z"


class Header(NamedTuple):
    """The names of the columns of a file, in its order."""

    names: tuple[str, ...]

    def check(self, path: str, layout: Layout) -> list[str]:
        """Return the names that mean nothing; raise `BadInput` when one is missing."""
        for name in layout.schema.names:
            if self.names.count(name) != 1:
                problem = "is given twice" if name in self.names else "is missing"
                raise BadInput(
                    path,
                    f"column {quoted(name)} {problem}",
                    hint=f"{layout.table} has the columns {', '.join(layout.schema.names)}",
                )
        return [name for name in self.names if name not in layout.schema.names]


def read_header(path: str, compression: str | None) -> Header | None:
    """Return the names in the first line of a file; None when the file is empty."""
    with open_bytes(path, compression) as file:
        begin = file.read(_HEADER_BYTES_MAX)
    line, end, _ = begin.removeprefix(codecs.BOM_UTF8).partition(b"\n")
    if not line.strip() and not end:
        return None
    if not end and len(begin) == _HEADER_BYTES_MAX:
        raise BadInput(path, f"has a first line of more than {_HEADER_BYTES_MAX:,} bytes")
    try:
        text = line.decode().removesuffix("\r")
        fields = next(csv.reader([text], strict=True), [])
    except UnicodeDecodeError:
        raise BadInput(path, "has a first line that is not UTF-8 text") from None
    except csv.Error as error:
        raise BadInput(path, f"has a first line that is not CSV: {error}") from None
    return Header(tuple(field.strip() for field in fields))


def csv_rows(lines: Readable, header: Header, layout: Layout) -> SourceRows:
    """Return the rows that lines of CSV hold."""
    import pyarrow as pa

    faults = Faults(len(lines.texts))
    sound = _sound_quotes(lines.texts)
    faults.mark(~sound, "line has a quoted field that does not end in it, or a stray quote")
    counts = _field_counts(lines.texts)
    for count in np.unique(counts[sound]).tolist():
        if count != len(header.names):
            faults.mark(
                sound & (counts == count),
                f"line has {count:,} fields where {len(header.names):,} are expected",
            )
    columns = _columns(lines.texts, header, layout, ~faults.bad)
    typed_columns = [
        typed(field.name, columns[field.name], field.type, faults) for field in layout.schema
    ]
    return lines.rows(pa.record_batch(typed_columns, schema=layout.schema), faults)


def _sound_quotes(texts: pa.StringArray) -> BoolArray:
    """Return which lines are CSV by themselves."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # A carriage return in the middle would end the line for Arrow.
    returns = pc.count_substring(texts, "\r").to_numpy()
    sound: BoolArray = returns == 0
    if not sound.all():
        ends = pc.match_substring_regex(texts, r"\r\n?\z").to_numpy(zero_copy_only=False)
        sound = returns == ends
    quotes = pc.match_substring(texts, '"').to_numpy(zero_copy_only=False)
    if quotes.any():
        sound = np.array(sound)
        quoting = texts.filter(pa.array(quotes))
        sound[quotes] = pc.match_substring_regex(quoting, _SOUND_LINE).to_numpy(
            zero_copy_only=False
        )
    return sound


def _field_counts(texts: pa.StringArray) -> np.ndarray:
    import pyarrow.compute as pc

    if pc.any(pc.match_substring(texts, '"')).as_py():
        texts = pc.replace_substring_regex(texts, _QUOTED, "")
    counts: np.ndarray = pc.count_substring(texts, ",").to_numpy() + 1
    return counts


def _columns(
    texts: pa.StringArray, header: Header, layout: Layout, sound: BoolArray
) -> dict[str, pa.StringArray]:
    """Return the table's columns as texts, null in lines that are not sound."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    wanted = layout.schema.names
    chosen = texts if sound.all() else texts.filter(pa.array(sound))
    if not len(chosen):
        return {name: pa.nulls(len(texts), pa.string()) for name in wanted}
    data = _data(chosen)
    # Names that the table does not have may be empty, or be there twice.
    names = [name if name in wanted else f"\0{place}" for place, name in enumerate(header.names)]
    table = arrow_csv.read_csv(
        pa.BufferReader(data),
        read_options=arrow_csv.ReadOptions(
            column_names=names, use_threads=False, block_size=data.size + 1
        ),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=False, ignore_empty_lines=False),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(wanted, pa.string()),
            include_columns=wanted,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    assert table.num_rows == len(chosen), "a sound line is one row"
    columns = {name: table.column(name).combine_chunks() for name in wanted}
    if len(chosen) == len(texts):
        return columns
    places = pa.array(np.cumsum(sound) - 1, pa.int64(), mask=~sound)
    return {name: column.take(places) for name, column in columns.items()}


def _data(texts: pa.StringArray) -> pa.Buffer:
    """Return the bytes of texts that stand one after the other."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int32)[[texts.offset, texts.offset + len(texts)]]
    buffer: pa.Buffer = data.slice(int(bounds[0]), int(bounds[1] - bounds[0]))
    return buffer
