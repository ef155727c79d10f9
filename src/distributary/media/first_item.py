"""Which part of a text is read aloud: its first item, or else its first paragraph."""

from __future__ import annotations

import re

__all__ = ["first_item"]

# The ways to number an item at the beginning of a line: 1. 1) (1) [1] 1 - and dashes. What
# follows is set off by a space, so that 1.5 km is no item.
_MARK = re.compile(
    r"""^[ \t]*(?:
        (?P<point>\d{1,3})\.
        | (?P<bracket>\d{1,3})\)
        | \((?P<brackets>\d{1,3})\)
        | \[(?P<square>\d{1,3})\]
        | (?P<dash>\d{1,3})[ \t]+[-\u2013\u2014]
    )(?=[ \t]|$)""",
    re.MULTILINE | re.VERBOSE | re.ASCII,
)
_LINE_ENDS = re.compile(r"\r\n?|[\v\x85\u2028]")
# Ends of pages and paragraphs, as some texts write them, are blank lines to us.
_PARAGRAPH_ENDS = re.compile(r"[\f\u2029]")
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_SPACES = re.compile(r"\s+")
# Hyphens of typesetters: between a letter and the end of a line, and those that show
# only there.
_BROKEN_WORD = re.compile(
    r"(?<=[^\W\d_])-[^\S\n]*\n\s*(?=[a-z\u00df-\u00f6\u00f8-\u00ff])"
    r"|\u00ad(?:[^\S\n]*\n\s*)?"
)


def first_item(text: str) -> str:
    """Return the first numbered item of a text, on one line and without its number.

    The item is the first that is numbered 1; the first with any number, if none is. It
    goes on over line breaks to the next item that is numbered in the same way, to a blank
    line or to the end. A text without items gives its first paragraph. Items and
    paragraphs without a letter or digit are passed over; if nothing else is left, the
    result is empty. Takes time in proportion to the text.
    """
    text = _PARAGRAPH_ENDS.sub("\n\n", _LINE_ENDS.sub("\n", text))
    return _first_numbered(text) or _first_paragraph(text)


def _first_numbered(text: str) -> str:
    marks = list(_MARK.finditer(text))
    # Where the next item begins that is numbered in the same way, for every mark.
    ends: list[int] = []
    next_of: dict[str | None, int] = {}
    for mark in reversed(marks):
        ends.append(next_of.get(mark.lastgroup, len(text)))
        next_of[mark.lastgroup] = mark.start()
    candidates = list(zip(marks, reversed(ends), strict=True))
    # Sorting is stable: the first with number 1, and then the first of all the others.
    for mark, end in sorted(candidates, key=lambda item: int(item[0][item[0].lastindex or 0]) != 1):
        blank = _BLANK_LINE.search(text, mark.end(), end)
        item = _joined(text[mark.end() : blank.start() if blank else end])
        if item:
            return item
    return ""


def _first_paragraph(text: str) -> str:
    start = 0
    while start < len(text):
        blank = _BLANK_LINE.search(text, start)
        paragraph = _joined(text[start : blank.start() if blank else len(text)])
        if paragraph:
            return paragraph
        # The second line end may begin the next blank line.
        start = blank.end() - 1 if blank else len(text)
    return ""


def _joined(lines: str) -> str:
    """Return the lines as one; an empty one if there is nothing in them to say."""
    joined = _SPACES.sub(" ", _BROKEN_WORD.sub("", lines)).strip()
    return joined if any(character.isalnum() for character in joined) else ""
