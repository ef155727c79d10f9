"""The text of PDF documents, compared with what was written into them."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from reportlab.pdfgen.canvas import Canvas

from distributary.content.media_type import MediaType
from distributary.media.converters.pdf_text import PdfToText
from distributary.media.failure import Unconvertible
from distributary.media.formats import PDF, TEXT
from distributary.media.limits import Limits
from distributary.media.spoken_text import first_item

LEADING = 14.0


def document(*pages: Sequence[str]) -> bytes:
    """Return a document with these lines on its pages; an empty line is space."""
    written = io.BytesIO()
    canvas = Canvas(written, pagesize=(595, 842), invariant=1)
    for page in pages:
        canvas.setFont("Helvetica", 12)
        for number, line in enumerate(page):
            canvas.drawString(72, 760 - LEADING * number, line)
        canvas.showPage()
    canvas.save()
    return written.getvalue()


def text_of(content: bytes, **limits: int) -> str:
    assert PdfToText().converts(PDF, TEXT)
    result = PdfToText().convert(content, PDF, TEXT, Limits(**limits))
    assert PdfToText().convert(content, PDF, TEXT, Limits(**limits)) == result
    return result.decode("utf-8")


def refusal(content: bytes, **limits: int) -> Unconvertible:
    with pytest.raises(Unconvertible) as raised:
        text_of(content, **limits)
    return raised.value


def test_only_text_in_utf_8_is_made() -> None:
    assert list(PdfToText().conversions()) == [(PDF, TEXT)]
    assert PdfToText().converts(PDF, MediaType.parse("text/plain"))
    for target in ("text/plain;charset=utf-16", "text/html", "text/plain;charset=utf-8;page=2"):
        assert not PdfToText().converts(PDF, MediaType.parse(target))


def test_lines_paragraphs_and_pages_come_out_as_they_were_written() -> None:
    first = ["Map of the harbour", "", "1. The old mill", "by the river.", "2. The lighthouse."]
    second = ["Published by the town", "", "", "Price: 5 \u20ac, caf\u00e9 included"]
    assert text_of(document(first, second)) == (
        "Map of the harbour\n\n1. The old mill\nby the river.\n2. The lighthouse.\n\n"
        "Published by the town\n\nPrice: 5 \u20ac, caf\u00e9 included\n"
    )


def test_pages_without_text_leave_no_trace() -> None:
    assert text_of(document([], ["one"], [], [], ["two"], [])) == "one\n\ntwo\n"


def test_a_hyphen_at_the_end_of_a_line_stays_where_the_page_shows_it() -> None:
    text = text_of(document(["1. For exam-", "ple the well-", "known mill"]))
    assert text == "1. For exam-\nple the well-\nknown mill\n"
    assert first_item(text) == "For example the wellknown mill"


def test_the_next_column_is_a_paragraph_of_its_own() -> None:
    written = io.BytesIO()
    canvas = Canvas(written, pagesize=(595, 842), invariant=1)
    canvas.setFont("Helvetica", 12)
    for x, lines in ((72, ("left one", "left two")), (320, ("right one", "right two"))):
        for number, line in enumerate(lines):
            canvas.drawString(x, 760 - LEADING * number, line)
    canvas.save()
    assert text_of(written.getvalue()) == "left one\nleft two\n\nright one\nright two\n"


def test_the_size_of_letters_counts_as_it_is_seen_whatever_scale_it_is_written_in() -> None:
    """Many programs write letters of size 1, and scale them by the matrix of the page."""
    written = io.BytesIO()
    canvas = Canvas(written, pagesize=(595, 842), invariant=1)
    canvas.scale(12, 12)
    canvas.setFont("Helvetica", 1)
    for line, y in (("one", 60.0), ("two", 58.8), ("three", 56.0)):
        canvas.drawString(6, y, line)
    canvas.save()
    assert text_of(written.getvalue()) == "one\ntwo\n\nthree\n"


def test_a_document_without_text_is_refused() -> None:
    failure = refusal(document([], []))
    assert failure.kind == "damaged"
    assert failure.reason == "the document has no text; it may be a scan"


def test_limits_hold_for_pages_and_for_the_text_that_comes_out() -> None:
    content = document(["word " * 10], ["word " * 10], ["word " * 10])
    assert refusal(content, pages=2).kind == "pages"
    assert refusal(content, output_bytes=100).kind == "output"
    assert refusal(content, output_bytes=100).reason.startswith("page 2 takes its text beyond 100")
    assert len(text_of(content, output_bytes=1000, pages=3).split()) == 30


@pytest.mark.parametrize("content", [b"", b"1. plain text", document(["one"])[:400]])
def test_what_is_no_pdf_has_no_text(content: bytes) -> None:
    assert refusal(content).kind == "damaged"
