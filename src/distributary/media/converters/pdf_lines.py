"""The text of one page of a PDF document, in lines and paragraphs."""

from __future__ import annotations

import ctypes
import re
from typing import Any

__all__ = ["page_text"]

# PDFium ends a line by CR LF, or by a mark of its own where the line ends in a hyphen: one
# that differs between its functions.
_LINE_END = re.compile(r"\r?\n|\r|([\x02\ufffe])")
# Fonts of hostile or clumsy documents map glyphs to anything; none of this is text.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")

# The space between two lines that sets paragraphs apart, by the height of a line. Lines at
# one and a half of the usual distance are closer, a blank line or the space after a
# paragraph in print is more.
_PARAGRAPH_GAP = 0.7
# How far up a line is from the one before it when it begins a column, by the same height.
_COLUMN_RISE = 0.5

_Box = tuple[float, float]


def page_text(words: Any) -> str:
    """Return the text of a page, without blanks at the ends of lines.

    Lines come in the order of the document. PDFium knows nothing of paragraphs: a blank
    line is put where the page leaves that much space, and where the text jumps up, as to
    the next column.

    Parameters
    ----------
    words
        The page's text, a `pypdfium2.PdfTextPage`.
    """
    # The functions of PDFium differ in what they are good for: this one has characters
    # beyond the first 65,536, the other one the positions.
    lines = _lines(words.get_text_bounded())
    boxes = _line_boxes(words)
    if len(boxes) != len(lines):
        boxes = [None] * len(lines)
    written: list[str] = []
    above: _Box | None = None
    for line, box in zip(lines, boxes, strict=True):
        if above and box and _apart(above, box):
            written.append("")
        written.append(_CONTROLS.sub("", line).rstrip())
        above = box or above
    return "\n".join(written).strip("\n")


def _lines(text: str) -> list[str]:
    pieces = _LINE_END.split(text)
    # Every other piece is the hyphen of the line before it, or None.
    return [
        line + ("-" if mark else "")
        for line, mark in zip(pieces[::2], [*pieces[1::2], None], strict=True)
    ]


def _line_boxes(words: Any) -> list[_Box | None]:
    """Return where each line stands, as (bottom, top) of its first character."""
    from pypdfium2 import raw

    count = words.count_chars()
    buffer = (ctypes.c_ushort * (2 * count + 2))()
    written = raw.FPDFText_GetText(words, 0, count, buffer)
    # As many characters as code units, so that a place in this is a place in the buffer.
    text = "".join(map(chr, buffer[: max(0, written - 1)]))
    starts = [0, *(end.end() for end in _LINE_END.finditer(text))]
    box = raw.FS_RECTF()
    boxes: list[_Box | None] = []
    for start in starts:
        index = raw.FPDFText_GetCharIndexFromTextIndex(words, start)
        known = index >= 0 and raw.FPDFText_GetLooseCharBox(words, index, box)
        boxes.append((box.bottom, box.top) if known else None)
    return boxes


def _apart(above: _Box, below: _Box) -> bool:
    """Whether two lines that follow each other belong to different paragraphs."""
    height = min(above[1] - above[0], below[1] - below[0])
    risen = (sum(below) - sum(above)) / 2
    return above[0] - below[1] > _PARAGRAPH_GAP * height or risen > _COLUMN_RISE * height
