"""The text of a PDF document, in lines and paragraphs."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from typing import Any

from distributary.content.media_type import MediaType
from distributary.media.converter import Converter
from distributary.media.converters.pdf_document import opened, pdfium_version
from distributary.media.failure import Unconvertible
from distributary.media.formats import PDF, TEXT
from distributary.media.limits import Limits

__all__ = ["PdfToText"]

_REVISION = "1"

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


class PdfToText(Converter):
    """Takes the text out of all pages, line by line as the pages show it.

    Pages are set apart by a blank line, like paragraphs, rather than by a form feed, which
    most devices show as a box. A document without text, such as a scan, is refused: an
    empty file would look like a success.
    """

    name = "pdf-to-text"
    packages = (("pypdfium2", "media"),)

    @property
    def version(self) -> str:
        """Our revision and the library that reads the document."""
        return f"{_REVISION} {pdfium_version()}"

    def conversions(self) -> Iterator[tuple[MediaType, MediaType]]:
        """Yield the one conversion, to UTF-8; other charsets are a step further."""
        yield PDF, TEXT

    def converts(self, source: MediaType, target: MediaType) -> bool:
        """Whether a document is to become text in UTF-8."""
        return source.essence == PDF.essence and target in (TEXT, MediaType("text", "plain"))

    def convert(
        self, content: bytes, source: MediaType, target: MediaType, limits: Limits
    ) -> bytes:
        """Return the text of all pages, in UTF-8."""
        texts: list[bytes] = []
        size = 0
        with opened(content, limits=limits) as document:
            for index in range(len(document)):
                page = document[index]
                words = page.get_textpage()
                text = _page_text(words).encode()
                # Pages are let go one by one: together they take more than their text.
                words.close()
                page.close()
                if text:
                    texts.append(text)
                    size += len(text) + 2
                if size > limits.output_bytes:
                    raise Unconvertible(
                        "output",
                        f"page {index + 1:,} takes its text beyond "
                        f"{limits.output_bytes:,} bytes, which is what is allowed",
                    )
        if not texts:
            raise Unconvertible("damaged", "the document has no text; it may be a scan")
        return b"\n\n".join(texts) + b"\n"


def _page_text(words: Any) -> str:
    """Return the text of a page, without blanks at the ends of lines.

    Lines come in the order of the document. PDFium knows nothing of paragraphs: a blank
    line is put where the page leaves that much space, and where the text jumps up, as to
    the next column.
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
