"""A page of a PDF document as a picture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import ClassVar

from distributary.content.media_type import MediaType
from distributary.errors import counted
from distributary.media.converter import Converter
from distributary.media.converters.pdf_document import opened, pdfium_version
from distributary.media.converters.picture import (
    PICTURE_PARAMETERS,
    check_pixels,
    codec_versions,
    is_picture,
    number,
    proportional,
    saved,
)
from distributary.media.failure import Unconvertible
from distributary.media.formats import IMAGE_FORMATS, PDF
from distributary.media.limits import Limits

__all__ = ["PdfToImage"]

_REVISION = "1"
# A page is a drawing and has no width in pixels; this is what a page without one asked for
# is drawn at.
_WIDTH_DEFAULT = 1280


class PdfToImage(Converter):
    """Draws the first page of a document, or the one that `page` asks for.

    A page is drawn on white, with its annotations and the fields of its forms, exactly as
    wide as asked for. No width enlarges a drawing.
    """

    name = "pdf-to-image"
    packages = (("pypdfium2", "media"), ("PIL", "media"))
    parameters: ClassVar[Mapping[str, str]] = {
        **PICTURE_PARAMETERS,
        "page": "a whole number from 1",
    }

    @property
    def version(self) -> str:
        """Our revision, the library that draws and the codecs of pictures."""
        return f"{_REVISION} {pdfium_version()} {codec_versions()}"

    def conversions(self) -> Iterator[tuple[MediaType, MediaType]]:
        """Yield one conversion to each of the listed pictures."""
        for target in IMAGE_FORMATS:
            yield PDF, target

    def converts(self, source: MediaType, target: MediaType) -> bool:
        """Whether a document is to become a picture, of any width and page."""
        return source.essence == PDF.essence and is_picture(target, parameters=("width", "page"))

    def convert(
        self, content: bytes, source: MediaType, target: MediaType, limits: Limits
    ) -> bytes:
        """Return the page as a picture."""
        import pypdfium2
        from pypdfium2 import raw

        page_number = number(target, "page") or 1
        width = number(target, "width") or _WIDTH_DEFAULT
        with opened(content, limits=limits) as document:
            if page_number > len(document):
                raise Unconvertible(
                    "impossible",
                    f"it has no page {page_number:,}, only {counted(len(document), 'page')}",
                )
            page = document[page_number - 1]
            page_width, page_height = page.get_size()
            # Sizes come from the document: a page of no width would be infinitely high.
            if not (0 < page_width < math.inf and 0 < page_height < math.inf):
                raise Unconvertible("damaged", f"page {page_number:,} has no size")
            height = proportional(page_width, page_height, asked=width)
            check_pixels(width, height, what=f"page {page_number:,}", limits=limits)
            # Beside `page.render`, which takes a scale and rounds its way to a width.
            bitmap = pypdfium2.PdfBitmap.new_native(
                width, height, raw.FPDFBitmap_BGR, rev_byteorder=True
            )
            bitmap.fill_rect((255, 255, 255, 255), 0, 0, width, height)
            whole = (bitmap, page, 0, 0, width, height, 0)
            flags = raw.FPDF_ANNOT | raw.FPDF_REVERSE_BYTE_ORDER
            raw.FPDF_RenderPageBitmap(*whole, flags)
            if document.formenv:
                raw.FPDF_FFLDraw(document.formenv, *whole, flags)
            return saved(bitmap.to_pil(), target)
