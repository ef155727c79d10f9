"""The text of a PDF document."""

from __future__ import annotations

from collections.abc import Iterator

from distributary.content.media_type import MediaType
from distributary.media.converter import Converter
from distributary.media.converters.pdf_document import opened, pdfium_version
from distributary.media.converters.pdf_lines import page_text
from distributary.media.failure import Unconvertible
from distributary.media.formats import PDF, TEXT
from distributary.media.limits import Limits

__all__ = ["PdfToText"]

_REVISION = "1"


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
                text = page_text(words).encode()
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
