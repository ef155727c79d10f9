"""The characters of documents that say themselves how they are encoded: HTML and XML."""

from __future__ import annotations

import codecs
import re

from distributary.content.media_type import MediaType
from distributary.errors import quoted
from distributary.media.failure import Unconvertible

__all__ = ["declared_text"]

# Where the standards for HTML and XML look.
_START_BYTES = 1024
_DECLARATIONS = re.compile(
    rb"""<\?xml\b[^>]*?\bencoding\s*=\s*["']\s*([\w.:-]{1,40})"""
    rb"""|<meta\b[^>]*?\bcharset\s*=\s*["']?\s*([\w.:-]{1,40})""",
    re.IGNORECASE,
)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# What the web is and was written in. Any name that Python knows would include codecs that
# unpack, and some that are no encodings of text.
_CHARSET = re.compile(
    r"utf-?8|utf-?16(?:-?[lb]e)?|(?:us-)?ascii|iso-?8859-?(?:1[0-6]?|[2-9])|latin-?[1-9]"
    r"|windows-125[0-8]|cp125[0-8]|koi8-[ru]|macintosh|shift_jis|euc-(?:jp|kr)|iso-2022-jp"
    r"|gb2312|gbk|gb18030|big5|tis-620|windows-874",
    re.IGNORECASE,
)
# Names that stand for more than they say, as browsers have it.
_ACTUAL = {
    "ascii": "cp1252",
    "us-ascii": "cp1252",
    "iso-8859-1": "cp1252",
    "latin1": "cp1252",
    "utf-16": "utf-16-le",
    "macintosh": "mac-roman",
    "gb2312": "gb18030",
    "windows-874": "cp874",
}
_USUAL, _LAST_RESORT = "utf-8", "cp1252"


def declared_text(content: bytes, source: MediaType) -> str:
    """Return the text of a document.

    A byte order mark decides, then what its format says, and then what it says itself. Without
    any it is UTF-8; and if it is not, Windows-1252, as browsers have it. Characters that make
    no sense in a charset that was only declared are shown as such; NUL is none of text.
    """
    for mark, codec in _MARKS:
        if content.startswith(mark):
            return _without_nul(content[len(mark) :].decode(codec, "replace"))
    charset = source.parameters.get("charset")
    if charset is None:
        declared = _DECLARATIONS.search(content[:_START_BYTES])
        charset = None if declared is None else (declared[1] or declared[2]).decode("ascii")
    if charset is not None:
        if not _CHARSET.fullmatch(charset):
            raise Unconvertible("damaged", f"it is in the charset {quoted(charset)}, unknown here")
        if not charset.lower().startswith("utf-16") or b"\0" in content[:_START_BYTES]:
            codec = _ACTUAL.get(charset.lower(), charset)
            return _without_nul(content.decode(codec, "replace"))
        # It was read so far as if a character were a byte: it cannot be what it says.
    try:
        return _without_nul(content.decode(_USUAL))
    except UnicodeDecodeError:
        return _without_nul(content.decode(_LAST_RESORT, "replace"))


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise Unconvertible("damaged", "it holds NUL characters, so it is no text")
    return text
