"""The text of a page of the web, without its markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

from distributary.content.media_type import MediaType
from distributary.media.converter import Converter
from distributary.media.converters.declared_charset import declared_text
from distributary.media.failure import Unconvertible
from distributary.media.formats import HTML, TEXT
from distributary.media.limits import Limits

__all__ = ["HtmlToText"]

_REVISION = "1"


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


# What a browser does not show as text of the page, with all that is inside.
_UNSEEN = _names(
    "applet audio canvas frameset iframe math noembed noframes object script select style svg "
    "template textarea title video"
)
# Those around which a line ends, and those that stand apart from what is before and behind them.
_LINES = _names(
    "address article aside body dd div dt fieldset figcaption figure footer form header hr html li "
    "main nav option section tr"
)
_PARAGRAPHS = _names("blockquote caption details dl h1 h2 h3 h4 h5 h6 ol p pre summary table ul")
_CELLS = _names("td th")
# Elements that have no end, and those whose end need not be written.
_VOID = _names("area base br col embed hr img input link meta param source track wbr")
_OPEN = _names("body dd dt html li option p td th tr")
_SPACES = re.compile(r"[ \t\r\n\f\v]+")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")
# Lists inside of lists; whoever nests them deeper gets no numbers.
_DEPTH_MAX = 100


class HtmlToText(Converter):
    """Takes the text out of a page, in lines and paragraphs.

    Scripts, styles and what else a browser does not show are left out, items of ordered lists
    get their numbers, and pictures their descriptions. Nothing is loaded or run, and no link is
    followed. A page without text is refused: an empty file would look like a success.
    """

    name = "html-to-text"

    @property
    def version(self) -> str:
        """Our revision; the parser comes with Python."""
        return _REVISION

    def conversions(self) -> Iterator[tuple[MediaType, MediaType]]:
        """Yield the one conversion, to UTF-8; other charsets are a step further."""
        yield HTML, TEXT

    def converts(self, source: MediaType, target: MediaType) -> bool:
        """Whether a page is to become text in UTF-8."""
        return source.essence == HTML.essence and target in (TEXT, MediaType("text", "plain"))

    def convert(
        self, content: bytes, source: MediaType, target: MediaType, limits: Limits
    ) -> bytes:
        """Return the text of the page, in UTF-8."""
        page = _Page()
        page.feed(declared_text(content, source))
        page.close()
        text = page.text()
        if not text:
            raise Unconvertible("damaged", "the page has no text; it may be made by a script")
        return text.encode("utf-8", "replace") + b"\n"


class _Page(HTMLParser):
    """Collects the text that a page shows."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._lines: list[str] = []
        self._line: list[str] = []
        self._preformatted = 0
        # The element that hides everything, and how many of its name are open inside of it.
        self._unseen: tuple[str, int] | None = None
        # For each list that is open, the number of its next item; None without numbers.
        self._lists: list[int | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._unseen is not None:
            name, count = self._unseen
            if tag == name:
                self._unseen = name, count + 1
            return
        said = dict(attrs)
        if tag in _UNSEEN or ("hidden" in said and tag not in _VOID | _OPEN):
            self._unseen = tag, 1
            return
        if tag in _PARAGRAPHS:
            self._end_paragraph()
        elif tag in _LINES:
            self._end_line()
        if tag == "pre":
            self._preformatted += 1
        elif tag in ("ol", "ul") and len(self._lists) < _DEPTH_MAX:
            self._lists.append(_number(said.get("start"), 1) if tag == "ol" else None)
        elif tag == "li":
            self._line.append(self._mark(said.get("value")))
        elif tag == "br":
            self._end_line(keep_blank=True)
        elif tag in _CELLS and self._line:
            self._line.append("\t")
        elif tag == "img":
            self.handle_data(f" {said.get('alt') or ''} ")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # In pages that are XML, any element may end where it begins.
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._unseen is not None:
            name, count = self._unseen
            if tag == name:
                self._unseen = (name, count - 1) if count > 1 else None
            return
        if tag == "pre":
            self._end_line()
            self._preformatted = max(0, self._preformatted - 1)
        if tag in _PARAGRAPHS:
            self._end_paragraph()
        elif tag in _LINES:
            self._end_line()
        if tag in ("ol", "ul") and self._lists:
            self._lists.pop()

    def handle_data(self, data: str) -> None:
        if self._unseen is not None:
            return
        if self._preformatted:
            *whole, last = data.replace("\r\n", "\n").split("\n")
            for line in whole:
                self._line.append(line)
                self._end_line(keep_blank=True)
            self._line.append(last)
        else:
            self._line.append(_SPACES.sub(" ", data))

    def text(self) -> str:
        """Return what was collected: lines, and one blank line between paragraphs."""
        self._end_line()
        return "\n".join(self._lines).strip("\n")

    def _mark(self, value: str | None) -> str:
        """Return what stands before an item of a list."""
        number = self._lists[-1] if self._lists else None
        if number is None:
            return "- "
        number = _number(value, number)
        self._lists[-1] = number + 1
        return f"{number}. "

    def _end_line(self, *, keep_blank: bool = False) -> None:
        line = "".join(self._line)
        self._line.clear()
        if not self._preformatted:
            # Each piece of text had its own spaces.
            cells = [_SPACES.sub(" ", cell).strip() for cell in line.split("\t")]
            line = "\t".join(cells).strip()
        line = _CONTROLS.sub("", line.rstrip())
        if line or (keep_blank and self._lines and self._lines[-1]):
            self._lines.append(line)

    def _end_paragraph(self) -> None:
        self._end_line()
        if self._lines and self._lines[-1]:
            self._lines.append("")


def _number(text: str | None, otherwise: int) -> int:
    # Longer numbers count nothing, and take time to read.
    return int(text) if text and re.fullmatch(r"[0-9]{1,9}", text) else otherwise
