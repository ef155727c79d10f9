"""Text of other types as plain text: JSON, XML, tables, source code, as they stand."""

from __future__ import annotations

from collections.abc import Iterator

from distributary.content.media_type import MediaType
from distributary.media.converter import Converter
from distributary.media.converters.declared_charset import declared_text
from distributary.media.failure import Unconvertible
from distributary.media.formats import HTML, JSON, SVG, TEXT, XML, is_textual
from distributary.media.limits import Limits

__all__ = ["PlainText"]

_REVISION = "1"
# The words of a page stand between markup, and are taken out. A drawing has hardly any.
_OTHERS = (TEXT.essence, HTML.essence, SVG.essence)


class PlainText(Converter):
    """Hands on text that goes by another name, in UTF-8.

    Nothing is parsed, so that nothing in it (entities, references to other files) is followed.
    """

    name = "plain-text"

    @property
    def version(self) -> str:
        """Our revision; nothing else matters."""
        return _REVISION

    def conversions(self) -> Iterator[tuple[MediaType, MediaType]]:
        """Yield those of the types that are published as such."""
        yield JSON, TEXT
        yield XML, TEXT

    def converts(self, source: MediaType, target: MediaType) -> bool:
        """Whether a text is to become plain text in UTF-8."""
        return (
            is_textual(source)
            and source.essence not in _OTHERS
            and target in (TEXT, MediaType("text", "plain"))
        )

    def convert(
        self, content: bytes, source: MediaType, target: MediaType, limits: Limits
    ) -> bytes:
        """Return the text in UTF-8."""
        text = declared_text(content, source)
        if not text:
            raise Unconvertible("damaged", "it is empty")
        return text.encode("utf-8", "replace")
