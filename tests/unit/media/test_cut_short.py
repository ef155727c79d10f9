"""Content that was cut short is called so, at whatever length it ends."""

from __future__ import annotations

import pytest
from tests.tiny_media import tiny

from distributary.content.media_type import MediaType
from distributary.media.cut_short import is_cut_short, with_length
from distributary.media.failure import ConversionFailed
from distributary.media.limits import Limits
from distributary.media.pool import Pool

CHECKED = (
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "audio/wav",
    "audio/ogg",
    "video/mp4",
    "video/3gpp",
    "video/x-msvideo",
    "application/pdf",
)
# An end may lie between two pieces: whether more was to come, only the pieces say.
BETWEEN_PIECES = {"video/mp4": 4, "video/3gpp": 4, "audio/ogg": 60, "image/gif": 1}


@pytest.mark.parametrize("essence", CHECKED)
def test_a_whole_file_is_not_cut_short_and_all_shorter_ones_are(essence: str) -> None:
    source = MediaType.parse(essence)
    content = tiny(essence)
    assert not is_cut_short(content, source)
    assert not is_cut_short(content + b"\0" * 100, source)
    step = max(1, len(content) // 2000)
    lengths = range(12, len(content) - 10, step)
    missed = [end for end in lengths if not is_cut_short(content[:end], source)]
    assert len(missed) <= BETWEEN_PIECES.get(essence, 0), missed


@pytest.mark.parametrize("essence", CHECKED)
def test_something_else_is_not_cut_short(essence: str) -> None:
    """It is damaged or another type, and a reason that says otherwise would mislead."""
    if essence not in ("video/mp4", "video/3gpp"):
        assert not is_cut_short(b"something else entirely" * 100, MediaType.parse(essence))


def test_types_that_do_not_say_where_they_end_are_never_cut_short() -> None:
    for essence in ("audio/mpeg", "audio/aac", "video/x-flv", "text/plain", "text/html"):
        assert not is_cut_short(tiny(essence)[:50], MediaType.parse(essence))


def test_a_reason_says_that_content_was_cut_short_once() -> None:
    png = MediaType.parse("image/png")
    cut = tiny("image/png")[:1000]
    assert with_length("it is broken", cut, png) == "it is cut short: it is broken"
    again = "it is cut short: it ends before its header says"
    assert with_length(again, cut, png) == again
    assert with_length("it is broken", tiny("image/png"), png) == "it is broken"
    assert with_length("it is broken", b"", png) == "it is empty"


@pytest.mark.parametrize(
    ("source", "target", "share"),
    [
        ("image/png", "image/jpeg", 0.5),
        ("image/jpeg", "image/png", 0.5),
        ("image/gif", "image/png", 0.5),
        ("image/webp", "image/png", 0.5),
        ("audio/wav", "audio/mpeg", 0.5),
        ("video/mp4", "image/png", 0.5),
        ("video/mp4", "audio/wav", 0.5),
        ("video/x-msvideo", "audio/wav", 0.5),
    ],
)
def test_whoever_converts_it_is_told_so(source: str, target: str, share: float) -> None:
    content = tiny(source)
    with Pool(1, limits=Limits(seconds=60)) as pool, pytest.raises(ConversionFailed) as raised:
        pool.convert(content[: int(len(content) * share)], source, target)
    assert raised.value.kind == "damaged"
    assert raised.value.reason.startswith("it is cut short")


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("image/gif", "image/png"),
        ("audio/ogg", "audio/wav"),
        ("text/html", "text/plain"),
        ("application/json", "text/plain"),
        ("application/xml", "text/plain"),
    ],
)
def test_a_file_cut_at_any_length_is_answered(source: str, target: str) -> None:
    content = tiny(source)
    step = max(1, len(content) // 150)
    with Pool(1, limits=Limits(seconds=60)) as pool:
        for end in (*range(min(40, len(content))), *range(40, len(content), step)):
            future = pool.submit(content[:end], source, target)
            failure = future.exception()
            if failure is None:
                assert len(future.result().content) > 0
            else:
                assert isinstance(failure, ConversionFailed)
                assert failure.kind == "damaged", (end, failure)
