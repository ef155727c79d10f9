"""Writing SVG: text made safe, numbers made short, and widths of text estimated."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from html import escape

__all__ = ["element", "named", "number", "readable", "shortened", "text", "text_width"]

# XML forbids most control characters and lone surrogates outright; direction marks
# would let one name rearrange the text around it.
_UNREADABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufffe\uffff]"
)
_BLANK = re.compile(r"\s+")
_LABEL_CHARACTERS = 22

_NARROW = frozenset("iIjlrft.,:;'|!()[]{}/\\-` ")
_BROAD = frozenset("mwMW@%&—…→\ufffd")


def readable(name: str) -> str:
    """Return `name` on one line, with what cannot or must not be drawn replaced."""
    return _BLANK.sub(" ", _UNREADABLE.sub("\ufffd", name))


def text(content: str) -> str:
    """Return untrusted `content` as XML or HTML text, fit for attribute values too."""
    return escape(readable(content), quote=True)


def shortened(name: str, characters: int) -> str:
    """Return `name` cut in the middle to at most `characters`.

    Both ends stay: names of brokers and media types often differ only in one of them.
    """
    name = readable(name)
    if len(name) <= characters:
        return name
    tail = (characters - 1) // 2
    return f"{name[: characters - 1 - tail]}…{name[len(name) - tail :]}"


def number(value: float) -> str:
    """Return a coordinate to a tenth, as short as it can be written."""
    written = f"{value:.1f}"
    if written.endswith(".0"):
        written = written[:-2]
    return "0" if written == "-0" else written


def text_width(content: str, size: float, *, bold: bool = False) -> float:
    """Estimate how wide `content` is at a font size; errs on the wide side.

    The reader's fonts are unknown, so the widest of the usual sans-serif fonts is
    assumed.
    """
    ems = 0.0
    for character in content:
        if character in _NARROW:
            ems += 0.41
        elif character in _BROAD:
            ems += 1.0
        elif unicodedata.east_asian_width(character) in "WF":
            ems += 1.05
        elif unicodedata.combining(character):
            continue
        elif character.isupper():
            ems += 0.73
        else:
            ems += 0.64
    return ems * size * (1.1 if bold else 1.0)


def element(tag: str, content: str | None = None, /, **attributes: str | float) -> str:
    """Return one element; underscores in attribute names stand for hyphens.

    `content` is markup and goes in as it is; attribute values are escaped here.
    """
    written = [f"<{tag}"]
    for name, value in attributes.items():
        shown = text(value) if isinstance(value, str) else number(value)
        written.append(f' {name.rstrip("_").replace("_", "-")}="{shown}"')
    written.append("/>" if content is None else f">{content}</{tag}>")
    return "".join(written)


def named(
    places: Iterable[tuple[str, float, float]],
    size: float,
    *,
    most: int,
    apart: float = 1.4,
    bold: bool = False,
) -> tuple[float, str]:
    """Return names beside what they belong to, the first ones that cover no other.

    A picture of a thousand nodes cannot name them all. Beside the markup comes how far to the
    right it reaches.

    Each place is a name, where it begins and its middle height, the most important first; lines are
    so many font sizes apart.
    """
    taken: list[tuple[float, float, float]] = []
    drawn: list[str] = []
    for name, left, middle in places:
        label = shortened(name, _LABEL_CHARACTERS)
        right = left + text_width(label, size, bold=bold)
        if any(left < r and x < right and abs(middle - y) < apart * size for x, r, y in taken):
            continue
        taken.append((left, right, middle))
        drawn.append(element("text", text(label), x=left, y=middle + 0.35 * size, font_size=size))
        if len(drawn) == most:
            break
    return max((right for _, right, _ in taken), default=0.0), "".join(drawn)
