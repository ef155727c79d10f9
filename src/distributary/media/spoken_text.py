"""Which part of a text is read aloud: an item of it, all of it, or what tells the most."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["first_item", "numbered_item", "whole_text"]

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

# Items of a list stand where the text begins to matter. What is numbered further back (terms of
# a licence, references) is not what the text is about.
_LIST_CHARACTERS_MAX = 4000
# A heading is short and no sentence; what is below it is longer than what parts two items.
_HEADING_CHARACTERS_MAX = 100
_CHAPTER_CHARACTERS_MIN = 100
_SENTENCE_END = re.compile(r"[.!?:;\u2026\u3002][\"'\u201d\u2019)\]]*$")
# A line of a table of contents: dots and a page; or a page alone, with another below.
_LEADERS = re.compile(r"(?:\.[ \t]?){4,}[ \t]*\d{1,4}$", re.MULTILINE)
_PAGE = re.compile(r"[ \t](\d{1,3})[ \t]*$", re.MULTILINE)
# What stands before a text because it has to, not because anybody would read it aloud.
_FORMALITY = re.compile(
    r"(?:copyright\b|\(c\)\s|\u00a9|licen[sc]ed under|all rights reserved|spdx-|redistributions? "
    r"|permission (?:is|to) |this (?:file|document|work) is (?:licen[sc]ed|part of)"
    r"|doi:|arxiv:|https?://|skip to |issn\b|isbn\b|page \d)",
    re.IGNORECASE,
)
_PARAGRAPHS_MAX = 200


@dataclass(frozen=True)
class _Item:
    """A numbered item: its number, where its text begins, and where the next of its kind does."""

    number: int
    begin: int
    end: int


def first_item(text: str) -> str:
    """Return what tells the most of a text in the fewest words, on one line.

    A list of items, such as the annotations of a map, gives its first item without the number:
    the first that is numbered 1, or the first with any number if none is. The item goes on
    over line breaks to the next that is numbered in the same way, to a blank line or to the end.

    Any other text gives its first paragraph of sentences, after its title if it has one. Chapters
    that are numbered are no items, and neither is a table of contents or what comes late.

    What has no letter or digit is passed over; if nothing else is left, the result is empty.
    Takes time in proportion to the text.
    """
    text = _with_line_ends(text)
    return _first_numbered(text) or _first_paragraph(text)


def numbered_item(text: str, number: int) -> str | None:
    """Return the item or chapter of that number on one line; None if there is none.

    A chapter goes on to the next number of its kind, over blank lines.
    """
    text = _with_line_ends(text)
    for item in _items(text):
        if item.number == number:
            short = _until_blank_line(text, item)
            if short and not _is_contents(text, item):
                return _joined(text[item.begin : item.end]) if _heads(text, item) else short
    return None


def whole_text(text: str) -> str:
    """Return all of a text that can be read aloud; a paragraph is a line."""
    return "\n".join(_paragraphs(_with_line_ends(text)))


def _with_line_ends(text: str) -> str:
    return _PARAGRAPH_ENDS.sub("\n\n", _LINE_ENDS.sub("\n", text))


def _items(text: str) -> Iterator[_Item]:
    """Yield the items of a text in their order."""
    marks = list(_MARK.finditer(text))
    # Where the next item begins that is numbered in the same way, for every mark.
    ends: list[int] = []
    next_of: dict[str | None, int] = {}
    for mark in reversed(marks):
        ends.append(next_of.get(mark.lastgroup, len(text)))
        next_of[mark.lastgroup] = mark.start()
    for mark, end in zip(marks, reversed(ends), strict=True):
        yield _Item(int(mark[mark.lastindex or 0]), mark.end(), end)


def _first_numbered(text: str) -> str:
    near = [item for item in _items(text) if item.begin <= _LIST_CHARACTERS_MAX]
    # Sorting is stable: the first with number 1, and then the first of all the others.
    for item in sorted(near, key=lambda item: item.number != 1):
        words = _until_blank_line(text, item)
        if words and not _is_contents(text, item) and not _heads(text, item):
            return words
    return ""


def _until_blank_line(text: str, item: _Item) -> str:
    blank = _BLANK_LINE.search(text, item.begin, item.end)
    return _joined(text[item.begin : blank.start() if blank else item.end])


def _is_contents(text: str, item: _Item) -> bool:
    """Whether an item is a line of a table of contents."""
    here, below = _line(text, item.begin), _line(text, item.end)
    if _LEADERS.search(here):
        return True
    page, next_page = _PAGE.search(here), _PAGE.search(below)
    adjacent = text.find("\n", item.begin) + 1 >= item.end
    return bool(adjacent and page and next_page and int(page[1]) <= int(next_page[1]))


def _heads(text: str, item: _Item) -> bool:
    """Whether an item is the heading of a chapter: short, no sentence, and above more text."""
    blank = _BLANK_LINE.search(text, item.begin, item.end)
    heading = _until_blank_line(text, item)
    return (
        blank is not None
        and item.end - blank.end() >= _CHAPTER_CHARACTERS_MIN
        and len(heading) <= _HEADING_CHARACTERS_MAX
        and not _is_sentence(heading)
    )


def _first_paragraph(text: str) -> str:
    title = ""
    for place, paragraph in enumerate(_paragraphs(text)):
        if place == _PARAGRAPHS_MAX:
            break
        if _FORMALITY.match(paragraph):
            continue
        if _is_sentence(paragraph) or len(paragraph) > _HEADING_CHARACTERS_MAX:
            return f"{title}. {paragraph}" if title else paragraph
        title = title or paragraph
    return title or next(_paragraphs(text), "")


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs that have something to say, each on one line."""
    start = 0
    while start < len(text):
        blank = _BLANK_LINE.search(text, start)
        paragraph = _joined(text[start : blank.start() if blank else len(text)])
        if paragraph:
            yield paragraph
        # The second line end may begin the next blank line.
        start = blank.end() - 1 if blank else len(text)


def _line(text: str, begin: int) -> str:
    """Return a line from a place in it."""
    end = text.find("\n", begin)
    return text[begin : end if end >= 0 else len(text)]


def _is_sentence(words: str) -> bool:
    return _SENTENCE_END.search(words) is not None


def _joined(lines: str) -> str:
    """Return the lines as one; an empty one if there is nothing in them to say."""
    joined = _SPACES.sub(" ", _BROKEN_WORD.sub("", lines)).strip()
    return joined if any(character.isalnum() for character in joined) else ""
