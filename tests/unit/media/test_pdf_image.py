"""Pages of PDF documents as pictures, which are looked at by another library."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import pytest
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas
from tests.pictures import PILLOW_NAMES, pixels

from distributary.content.media_type import MediaType
from distributary.media.converters.pdf_image import PdfToImage
from distributary.media.failure import Unconvertible
from distributary.media.formats import IMAGE_FORMATS, PDF
from distributary.media.limits import Limits

COLOURS = {"red": (1, 0, 0), "lime": (0, 1, 0), "blue": (0, 0, 1)}


def document(
    colours: Sequence[str] = ("red", "lime", "blue"), *, size: tuple[float, float] = (400, 300)
) -> bytes:
    """Return a document whose pages have their lower left quarter in one colour each."""
    written = io.BytesIO()
    canvas = Canvas(written, pagesize=size, invariant=1)
    for colour in colours:
        canvas.setFillColorRGB(*COLOURS[colour])
        canvas.rect(0, 0, size[0] / 2, size[1] / 2, stroke=0, fill=1)
        canvas.showPage()
    canvas.save()
    return written.getvalue()


def converted(content: bytes, target: str, **limits: int) -> bytes:
    assert PdfToImage().converts(PDF, MediaType.parse(target))
    return PdfToImage().convert(content, PDF, MediaType.parse(target), Limits(**limits))


def refusal(content: bytes, target: str = "image/jpeg;width=320", **limits: int) -> Unconvertible:
    with pytest.raises(Unconvertible) as raised:
        converted(content, target, **limits)
    return raised.value


def test_a_document_becomes_every_listed_picture() -> None:
    assert [target for _, target in PdfToImage().conversions()] == list(IMAGE_FORMATS)
    assert all(source == PDF for source, _ in PdfToImage().conversions())


@pytest.mark.parametrize("target", PILLOW_NAMES)
@pytest.mark.parametrize("width", [320, 333, 1280])
def test_the_first_page_is_drawn_on_white_exactly_as_wide_as_asked_for(
    target: str, width: int
) -> None:
    content = document()
    result = converted(content, f"{target};width={width}")
    seen = pixels(result, essence=target).astype(int)
    assert seen.shape == (round(width * 3 / 4), width, 3)
    height = seen.shape[0]
    assert np.abs(seen[height * 3 // 4, width // 4] - (255, 0, 0)).max() < 6
    assert seen[height // 4, width // 4].min() > 250
    assert seen[height * 3 // 4, width * 3 // 4].min() > 250
    assert converted(content, f"{target};width={width}") == result


@pytest.mark.parametrize("page_width", [400, 595.2756, 612, 841.8898, 33.33, 1000 / 3])
def test_no_page_makes_the_width_come_out_one_pixel_off(page_width: float) -> None:
    content = document(size=(page_width, 200))
    for width in (320, 640, 997, 1280):
        result = converted(content, f"image/png;width={width}")
        assert pixels(result, essence="image/png").shape[1] == width


def test_another_page_is_drawn_when_it_is_asked_for() -> None:
    for page, colour in enumerate(COLOURS.values(), start=1):
        seen = pixels(
            converted(document(), f"image/png;width=100;page={page}"), essence="image/png"
        )
        assert seen[60, 20].tolist() == [255 * part for part in colour]
    failure = refusal(document(), "image/png;width=100;page=4")
    assert failure.kind == "impossible"
    assert failure.reason == "it has no page 4, only 3 pages"


def test_a_picture_without_a_width_has_one_nevertheless() -> None:
    assert pixels(converted(document(), "image/png"), essence="image/png").shape == (960, 1280, 3)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("application/pdf", "image/tiff;width=320"),
        ("application/pdf", "image/jpeg;width=0"),
        ("application/pdf", "image/jpeg;page=0"),
        ("application/pdf", "image/jpeg;page=last"),
        ("application/pdf", "image/jpeg;dpi=300"),
        ("image/jpeg", "image/jpeg;width=320"),
    ],
)
def test_other_pages_and_pictures_do_not_exist(source: str, target: str) -> None:
    assert not PdfToImage().converts(MediaType.parse(source), MediaType.parse(target))


def test_annotations_and_fields_of_forms_are_drawn() -> None:
    written = io.BytesIO()
    canvas = Canvas(written, pagesize=(400, 300), invariant=1)
    canvas.drawString(10, 280, "Form")
    blank = io.BytesIO()
    empty = Canvas(blank, pagesize=(400, 300), invariant=1)
    empty.drawString(10, 280, "Form")
    empty.save()
    canvas.acroForm.textfield(
        name="answer", value="HELLO", x=100, y=100, width=200, height=60, fontSize=40
    )
    canvas.save()
    with_field = pixels(converted(written.getvalue(), "image/png;width=400"), essence="image/png")
    without = pixels(converted(blank.getvalue(), "image/png;width=400"), essence="image/png")
    assert (with_field[145:195, 105:295] < 128).any()
    assert (without[145:195, 105:295] > 250).all()


def test_an_encrypted_document_says_so() -> None:
    written = io.BytesIO()
    canvas = Canvas(written, encrypt=StandardEncryption("secret"))
    canvas.drawString(72, 72, "hidden")
    canvas.save()
    failure = refusal(written.getvalue())
    assert failure.kind == "damaged"
    assert failure.reason == "the document is encrypted and asks for a password"


@pytest.mark.parametrize(
    "content", [b"", b"%PDF-1.7\n", b"not a document", document()[:300], document()[200:]]
)
def test_what_is_no_document_is_damaged(content: bytes) -> None:
    assert refusal(content).kind == "damaged"


def test_more_pages_than_allowed_are_refused() -> None:
    assert refusal(document(), pages=2).kind == "pages"
    assert refusal(document(), pages=2).reason == "the document has 3 pages; at most 2 are allowed"
    assert converted(document(), "image/png;width=100", pages=3)


@pytest.mark.parametrize(
    ("size", "kind"),
    [
        ((14_400_000.0, 14_400_000.0), None),  # enormous, but 320 x 320 pixels when drawn
        ((1.0, 1_000_000.0), "pixels"),
        ((0.001, 14_400.0), "pixels"),
    ],
)
def test_pixels_are_counted_before_a_page_is_drawn(
    size: tuple[float, float], kind: str | None
) -> None:
    content = document(["red"], size=size)
    if kind is None:
        assert pixels(converted(content, "image/jpeg;width=320"), essence="image/jpeg").shape == (
            320,
            320,
            3,
        )
    else:
        assert refusal(content).kind == kind


def test_a_wide_picture_of_a_modest_page_is_counted_too() -> None:
    assert refusal(document(), "image/png;width=99999").kind == "pixels"
    assert refusal(document(), pixels=320 * 240 - 1).kind == "pixels"
    assert converted(document(), "image/png;width=320", pixels=320 * 240)
