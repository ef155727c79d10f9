"""Plain text from one character encoding to another."""

from __future__ import annotations

import codecs
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import permutations
from typing import ClassVar

from distributary.content.media_type import MediaType
from distributary.media.converter import Converter
from distributary.media.converters.transliteration import TRANSLITERATION
from distributary.media.failure import Unconvertible
from distributary.media.formats import TEXT_FORMATS
from distributary.media.limits import Limits

__all__ = ["TextEncodings", "decoded", "encoded"]

_REVISION = "1"

# The names that charsets go by, and the codec of each. A list of our own: looking up any
# name that Python knows would accept codecs that are not encodings of text at all.
_CODECS = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "utf-16": "utf-16",
    "utf-16le": "utf-16-le",
    "utf-16be": "utf-16-be",
    "iso-8859-1": "iso-8859-1",
    "latin1": "iso-8859-1",
    "us-ascii": "ascii",
    "ascii": "ascii",
    "windows-1252": "cp1252",
    "cp1252": "cp1252",
}
_DEFAULT_CHARSET = "utf-8"


class TextEncodings(Converter):
    """Writes plain text in another charset, transliterating what the charset lacks."""

    name = "text-encoding"
    parameters: ClassVar[Mapping[str, str]] = {"charset": ", ".join(_CODECS)}

    @property
    def version(self) -> str:
        """Our revision and the Unicode tables that decompose characters."""
        return f"{_REVISION} unicode-{unicodedata.unidata_version}"

    def conversions(self) -> Iterator[tuple[MediaType, MediaType]]:
        """Yield every pair of the listed charsets."""
        return permutations(TEXT_FORMATS, 2)

    def converts(self, source: MediaType, target: MediaType) -> bool:
        """Whether both are plain text, in charsets that differ and that we know.

        A target that names no charset is UTF-8.
        """
        return (
            source.essence == target.essence == "text/plain"
            and set(target.parameters) <= {"charset"}
            and _charset(target) in _CODECS
            and _charset(source) in _CODECS
            and source.parameters.get("charset") != target.parameters.get("charset")
        )

    def convert(
        self, content: bytes, source: MediaType, target: MediaType, limits: Limits
    ) -> bytes:
        """Return the text in the target's charset. A text takes no limit but its size."""
        return encoded(decoded(content, source), target)


def decoded(content: bytes, source: MediaType) -> str:
    """Return the text in `content`, without a byte order mark.

    A source that names no charset is UTF-8, unless it opens with the mark of UTF-16. A
    text that says UTF-16 and has no mark is big-endian, as RFC 2781 has it. Text holds
    no NUL: where there is one, the content is something else or in another charset.
    """
    codec = _CODECS[_charset(source)]
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and (
        codec == "utf-16" or "charset" not in source.parameters
    ):
        codec = "utf-16-le" if content.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
    elif codec == "utf-16":
        codec = "utf-16-be"
    try:
        text = content.decode(codec)
    except UnicodeDecodeError as error:
        raise Unconvertible(
            "damaged", f"byte {error.start + 1:,} is not {codec} text: {error.reason}"
        ) from error
    if "\0" in text:
        raise Unconvertible("damaged", f"it holds NUL characters, so it is not {codec} text")
    if codec.startswith("utf"):
        text = text.removeprefix("\ufeff")
    return text


def encoded(text: str, target: MediaType) -> bytes:
    """Return the text in the target's charset.

    Characters that the charset lacks are written as their nearest relatives in it: without
    accents, or as the table of transliterations has it; as a question mark if there are none.
    UTF-16 is little-endian with a mark on every machine, so that results do not depend
    on where they were made.
    """
    codec = _CODECS[_charset(target)]
    if codec == "utf-16":
        return codecs.BOM_UTF16_LE + text.encode("utf-16-le")
    if codec.startswith("utf"):
        return text.encode(codec)
    try:
        return text.encode(codec)
    except UnicodeEncodeError:
        # Accents that stand by themselves first join their letters, which the charset
        # may well have.
        text = unicodedata.normalize("NFC", text)
        table = {ord(character): _nearest(character, codec) for character in _lacking(text, codec)}
        return text.translate(table).encode(codec)


def _charset(media_type: MediaType) -> str:
    return media_type.parameters.get("charset", _DEFAULT_CHARSET).lower()


def _lacking(text: str, codec: str) -> Iterable[str]:
    return (character for character in set(text) if not _has(codec, character))


def _has(codec: str, text: str) -> bool:
    try:
        text.encode(codec)
    except UnicodeEncodeError:
        return False
    return True


def _nearest(character: str, codec: str) -> str:
    """Return how to write one character that the charset lacks, in characters it has."""
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return ""  # accents, joiners and direction marks say nothing by themselves
    transliterated = character.translate(TRANSLITERATION)
    parts = unicodedata.normalize("NFKD", transliterated).translate(TRANSLITERATION)
    written = "".join(part for part in parts if not unicodedata.combining(part))
    # One mark for one character, whatever it decomposes into.
    return written if written and _has(codec, written) else "?"
