"""Lines of text files: which belong to a part of a file, and which can be read at all.

A record is one line. That is what lets executors share a file: each finds the lines that
begin in its part by looking for line breaks alone.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from distributary.arrays import BoolArray, IntArray
from distributary.content.publication import EVENT_BYTES_MAX
from distributary.pipeline.sources.source_rows import Faults, SourceRows

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LINE_BYTES_MAX", "LineBlock", "Readable", "line_blocks", "lines_begun", "readable"]

LINE_BYTES_MAX = EVENT_BYTES_MAX
"""A longer line is not read; memory is bounded by it."""

_BLOCK_BYTES = 4 * 2**20
_REST_BYTES = 2**16
_LINE_FEED = 10


class LineBlock(NamedTuple):
    """Lines that stand one after the other.

    Their bytes with what ends them, where each begins and the last one ends, and the number
    of the first one.
    """

    data: bytes
    offsets: IntArray
    first: int


class Readable(NamedTuple):
    """What can be read of some lines.

    Those that are text, with what ends them, and those that are refused, as bytes. Empty
    lines are in neither.
    """

    texts: pa.StringArray
    numbers: IntArray
    refused: list[bytes]
    refused_numbers: IntArray
    reasons: list[str]

    def rows(self, columns: pa.RecordBatch, faults: Faults) -> SourceRows:
        """Return what the texts hold, with where they stand."""
        import pyarrow as pa

        return SourceRows(
            columns, self.numbers, lambda rows: self.texts.take(pa.array(rows)), faults
        )


def lines_begun(file: pa.NativeFile, start: int, end: int) -> int:
    """Return how many lines begin in a part of a file."""
    position = max(start - 1, 0)
    file.seek(position)
    # A line begins after each line break, and the first one where the file does.
    count = 1 if start == 0 and end > 0 else 0
    while position < end - 1 and (block := file.read(min(_BLOCK_BYTES, end - 1 - position))):
        count += block.count(b"\n")
        position += len(block)
    return count


def line_blocks(
    file: pa.NativeFile, *, start: int, end: int | None, first_line: int
) -> Iterator[LineBlock]:
    """Yield the lines that begin in a part of a file, some megabytes at a time.

    To the end of the file when `end` is None; one that is unpacked on the way has only one
    part. `first_line` is the number of the first line that begins there.
    """
    if start > 0:
        start = _first_begin(file, start, end)
    remaining = None if end is None else max(end - start, 0)
    if remaining == 0:
        return
    if start > 0:
        file.seek(start)
    at_beginning = start == 0
    for data in _whole_lines(file, remaining):
        begun = data.removeprefix(codecs.BOM_UTF8) if at_beginning else data
        at_beginning = False
        lines = _split(begun, first_line)
        yield lines
        first_line += len(lines.offsets) - 1


def readable(lines: LineBlock) -> Readable:
    """Return the lines that are text and not too long."""
    import pyarrow as pa

    count = len(lines.offsets) - 1
    texts = pa.StringArray.from_buffers(
        count, pa.py_buffer(lines.offsets.astype(np.int32)), pa.py_buffer(lines.data)
    )
    numbers = lines.first + np.arange(count, dtype=np.int64)
    faults = _faults(lines, texts)
    refused = np.flatnonzero(faults)
    blank = _blank(lines, texts, faults == 0)
    if len(refused) or blank.any():
        kept = (faults == 0) & ~blank
        # Filtered as bytes: what is not text must not be taken for it.
        texts = texts.view(pa.binary()).filter(pa.array(kept)).view(pa.string())
        numbers, refused_numbers = numbers[kept], numbers[refused]
    else:
        refused_numbers = numbers[:0]
    return Readable(
        texts,
        numbers,
        [lines.data[lines.offsets[row] : lines.offsets[row + 1]] for row in refused.tolist()],
        refused_numbers,
        [_REASONS[faults[row]] for row in refused.tolist()],
    )


_REASONS = (
    "",
    f"line is longer than {LINE_BYTES_MAX:,} bytes",
    "line has a NUL byte",
    "line is not UTF-8 text",
)


def _first_begin(file: pa.NativeFile, start: int, end: int | None) -> int:
    """Return where the first line begins that does so at `start` or later."""
    position = start - 1
    file.seek(position)
    while block := file.read(_REST_BYTES):
        found: int = block.find(b"\n")
        if found >= 0:
            return position + found + 1
        position += len(block)
        if end is not None and position >= end:
            break
    return position


def _whole_lines(file: pa.NativeFile, remaining: int | None) -> Iterator[bytes]:
    """Yield blocks that end where a line does; of a line that is too long, only the begin."""
    rest = b""
    while remaining is None or remaining > 0:
        block = file.read(_BLOCK_BYTES if remaining is None else min(_BLOCK_BYTES, remaining))
        if not block:
            remaining = 0
            break
        if remaining is not None:
            remaining -= len(block)
        cut = block.rfind(b"\n") + 1
        if cut:
            # The line that began before may be too long: it is cut before its end.
            ending = block.find(b"\n")
            if len(rest) > LINE_BYTES_MAX:
                rest, block, cut = rest + b"\n", block[ending + 1 :], cut - ending - 1
            yield rest + block[:cut]
            rest = block[cut:]
        else:
            rest = (rest + block)[: LINE_BYTES_MAX + 1]
    # The last line ends beyond the part that it began in.
    while rest:
        block = file.read(_REST_BYTES)
        ending = block.find(b"\n") + 1
        rest = (rest + (block[:ending] if ending else block))[: LINE_BYTES_MAX + 1]
        if ending or not block:
            yield rest
            return


def _split(data: bytes, first_line: int) -> LineBlock:
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _LINE_FEED) + 1
    if data and not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    return LineBlock(data, np.concatenate([np.zeros(1, np.int64), ends]), first_line)


def _faults(lines: LineBlock, texts: pa.StringArray) -> IntArray:
    """Return what is wrong with each line, as a number in the list of reasons."""
    import pyarrow as pa

    faults = np.zeros(len(texts), np.int64)
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        faults[_undecodable(lines)] = 3
    if b"\0" in lines.data:
        nul = np.flatnonzero(np.frombuffer(lines.data, np.uint8) == 0)
        faults[np.searchsorted(lines.offsets, nul, side="right") - 1] = 2
    faults[np.diff(lines.offsets) > LINE_BYTES_MAX] = 1
    return faults


def _undecodable(lines: LineBlock) -> list[int]:
    """Return the lines that are not UTF-8; takes time for those and not for the others."""
    found: list[int] = []
    view = memoryview(lines.data)
    position = 0
    while position < len(view):
        try:
            codecs.utf_8_decode(view[position:], "strict", True)
            break
        except UnicodeDecodeError as error:
            wrong = position + error.start
            found.append(int(np.searchsorted(lines.offsets, wrong, side="right")) - 1)
            position = int(lines.offsets[found[-1] + 1])
    return found


def _blank(lines: LineBlock, texts: pa.StringArray, sound: BoolArray) -> BoolArray:
    """Return which lines hold nothing but white space."""
    import pyarrow as pa
    import pyarrow.compute as pc

    data = np.frombuffer(lines.data, np.uint8)
    opening = data[lines.offsets[:-1]] if len(texts) else data[:0]
    blank = np.isin(opening, np.frombuffer(b" \t\r\n\v\f", np.uint8)) & sound
    if blank.any():
        trimmed = pc.ascii_trim_whitespace(texts.filter(pa.array(blank)))
        blank[blank] = pc.equal(trimmed, "").to_numpy(zero_copy_only=False)
    return blank
