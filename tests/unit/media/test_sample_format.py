"""Samples count as listed formats: pictures and videos as one that they need not grow for."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from distributary.content.media_type import MediaType
from distributary.errors import BadInput
from distributary.media.failure import ConversionFailed, Unconvertible
from distributary.media.limits import Limits
from distributary.media.registry import installed
from distributary.media.result import ConversionResult
from distributary.media.sample_format import sample_format


def directly(content: bytes, source: MediaType, target: MediaType) -> ConversionResult:
    """Convert right here: these samples are our own."""
    converter = installed().converter(source, target)
    assert converter is not None
    try:
        return ConversionResult(
            converter.convert(content, source, target, Limits()), target, 0.0, False
        )
    except Unconvertible as error:
        raise ConversionFailed(
            source, target, kind=error.kind, reason=error.reason, limits=Limits()
        ) from None


def picture(width: int, kind: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, 20), "teal").save(file, kind)
    return file.getvalue()


def counts_as(content: bytes, name: str = "sample") -> str:
    return sample_format(content, name, registry=installed(), convert=directly)


@pytest.mark.parametrize(
    ("width", "kind", "expected"),
    [
        (3000, "JPEG", "image/jpeg;width=2560"),
        (2560, "PNG", "image/png;width=2560"),
        (2559, "PNG", "image/png;width=1280"),
        (700, "WEBP", "image/webp;width=640"),
        (320, "JPEG", "image/jpeg;width=320"),
    ],
)
def test_a_picture_counts_as_the_widest_that_it_covers(
    width: int, kind: str, expected: str
) -> None:
    assert counts_as(picture(width, kind)) == expected


def test_a_picture_below_every_width_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^small\.jpg: "):
        counts_as(picture(100, "JPEG"), "small.jpg")


def test_text_counts_as_what_its_encoding_is() -> None:
    assert counts_as("Grüße\n".encode()) == "text/plain;charset=utf-8"
    assert counts_as("Grüße\n".encode("utf-16")) == "text/plain;charset=utf-16"


def test_a_document_counts_as_its_type_without_being_read() -> None:
    assert counts_as(b"%PDF-1.7\nnothing more") == "application/pdf"


def test_damaged_pictures_are_refused_with_the_reason() -> None:
    with pytest.raises(BadInput, match=r"^half\.png: "):
        counts_as(picture(700, "PNG")[:60], "half.png")
