"""Opening PDF documents that may be anything but."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distributary.errors import counted
from distributary.media.failure import Unconvertible
from distributary.media.limits import Limits

__all__ = ["opened", "pdfium_version"]


@contextmanager
def opened(content: bytes, *, limits: Limits) -> Iterator[Any]:
    """Open a document, and close it afterwards.

    A document with too many pages is refused as a whole, as its table of pages alone may be a
    bomb. It has at least one page. What PDFium cannot make sense of inside the block becomes
    damaged content, too.
    """
    import pypdfium2
    from pypdfium2 import raw

    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:
            reason = "the document is encrypted and asks for a password"
        else:
            reason = f"it cannot be read as PDF ({error})"
        raise Unconvertible("damaged", reason) from error
    try:
        # Fields of forms are drawn only where forms are set up before the first page is read.
        document.init_forms()
        pages = len(document)
        if pages == 0:
            raise Unconvertible("damaged", "the document has no pages")
        if pages > limits.pages:
            raise Unconvertible(
                "pages",
                f"the document has {counted(pages, 'page')}; at most {limits.pages:,} are allowed",
            )
        yield document
    except pypdfium2.PdfiumError as error:
        raise Unconvertible("damaged", f"the document is broken ({error})") from error
    finally:
        document.close()


def pdfium_version() -> str:
    """Return the version of the library that reads the documents."""
    from pypdfium2 import PDFIUM_INFO

    return f"pdfium-{PDFIUM_INFO.version}"
