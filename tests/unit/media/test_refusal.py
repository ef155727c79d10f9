"""Why nothing makes a format: the parameter that is to blame is named."""

from __future__ import annotations

import pytest

from distributary.content.media_type import MediaType
from distributary.errors import BadInput
from distributary.media.failure import ConversionFailed
from distributary.media.pool import Pool
from distributary.media.registry import installed

WRONG = [
    ("image/jpeg", "image/png;wdith=5", "has no parameter 'wdith'", "did you mean width?"),
    ("image/jpeg", "image/png;width=0", "'width=0' is out of range", "from 1 to 99,999"),
    ("image/jpeg", "image/png;page=2", "has no parameter 'page'", "it has width"),
    ("application/pdf", "image/png;pgae=2", "has no parameter 'pgae'", "did you mean page?"),
    ("application/pdf", "image/png;width=5;page=0", "'page=0' is out of range", "from 1"),
    ("application/pdf", "audio/mpeg;itm=2", "has no parameter 'itm'", "did you mean item?"),
    ("application/pdf", "audio/mpeg;item=two", "'item=two' is out of range", "or all"),
    ("application/pdf", "audio/ogg;language=English", "'language=English'", "two or three letters"),
    ("application/pdf", "text/plain;charset=klingon", "'charset=klingon'", "utf-8, "),
    ("video/mp4", "video/x-flv;width=33", "'width=33' is out of range", "even number"),
    ("video/mp4", "image/jpeg;at=noon", "'at=noon' is out of range", "2.5"),
    ("video/mp4", "audio/wav;bitrate=64k", "'bitrate=64k' is out of range", "none of audio/wav"),
    ("image/jpeg;width=640", "image/png;width=1280", "640 pixels wide", "640 or less"),
    ("text/plain;charset=klingon", "audio/wav", "not known here: charset", "leave it out"),
    ("audio/wav", "audio/mpeg;item=2", "has no parameter 'item'", "it has bitrate"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target", "problem", "hint"), WRONG)
def test_the_parameter_to_blame_is_named(source: str, target: str, problem: str, hint: str) -> None:
    with pytest.raises(BadInput) as raised:
        installed().route(MediaType.parse(source), MediaType.parse(target))
    assert problem in raised.value.problem
    assert raised.value.hint is not None
    assert hint in raised.value.hint
    with Pool(1) as pool, pytest.raises(ConversionFailed) as failed:
        pool.convert_along(b"content", source, target)
    assert failed.value.kind == "impossible"
    assert problem in failed.value.reason
    assert hint in failed.value.reason


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("image/jpeg", "text/plain"),
        ("image/svg+xml", "image/png"),
        ("image/jpeg", "video/mp4;width=640"),
        ("x/y", "x/y;z=1"),
    ],
)
def test_without_a_way_between_the_types_no_parameter_is_blamed(source: str, target: str) -> None:
    with pytest.raises(BadInput, match=r"nothing converts '\S+' to '\S+'; hint: distributary"):
        installed().route(MediaType.parse(source), MediaType.parse(target))


def test_a_message_stays_one_short_line_whatever_the_parameter() -> None:
    target = MediaType("image", "png", {"width": "9" * 500 + "\n"})
    with pytest.raises(BadInput) as raised:
        installed().route(MediaType.parse("image/jpeg"), target)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400
