"""Every listed conversion of video, done for real and decoded by somebody else."""

from __future__ import annotations

import ctypes
from functools import cache, lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.video_files import Look, clip, look_at

from distributary.content.media_type import MediaType
from distributary.media.converters.video import Video
from distributary.media.failure import Unconvertible
from distributary.media.formats import VIDEO_FORMATS, VIDEO_TYPES
from distributary.media.limits import Limits

VIDEO = Video()
LIMITS = Limits()
FRAMES = 12
CODECS = {"mp4": "h264", "x-msvideo": "mpeg4", "x-flv": "flv1", "3gpp": "mpeg4"}
SOUND_CODECS = {"mp4": "aac", "x-msvideo": "mp3", "x-flv": "mp3", "3gpp": "aac"}
CONTAINERS = {"mp4": "mov,mp4", "x-msvideo": "avi", "x-flv": "flv", "3gpp": "mov,mp4"}
TONE_LEVEL = 1 / 3 / 2**0.5


@lru_cache(maxsize=1)
def _first() -> bytes:
    return clip(size=(640, 96), frames=FRAMES)


@cache
def _made(target: str) -> bytes:
    """Return the clip in a listed format."""
    return VIDEO.convert(_first(), MediaType.parse("video/mp4"), MediaType.parse(target), LIMITS)


def _check(seen: Look, target: MediaType) -> None:
    assert seen.container.startswith(CONTAINERS[target.subtype])
    assert seen.codec == CODECS[target.subtype]
    width = int(target.parameters["width"])
    assert seen.size == (width, round(width * 96 / 640 / 2) * 2)
    assert seen.times == pytest.approx([index / 25 for index in range(FRAMES)], abs=0.002)
    assert seen.seconds == pytest.approx(FRAMES / 25, abs=1 / 25)
    # The gradient is still bright at its left, and dark at its right.
    assert seen.picture[:, :8].mean() > 150
    assert seen.picture[:, -8:].mean() < 60
    assert seen.sound is not None
    assert seen.sound.codec == SOUND_CODECS[target.subtype]
    assert seen.sound.seconds == pytest.approx(FRAMES / 25, abs=0.07)
    assert 0.7 * TONE_LEVEL < seen.sound.level < 1.2 * TONE_LEVEL


def test_there_are_144_conversions_none_of_which_enlarges() -> None:
    pairs = list(VIDEO.conversions())
    assert len(pairs) == len({(str(source), str(target)) for source, target in pairs}) == 144
    for source, target in pairs:
        assert source != target
        assert int(target.parameters["width"]) <= int(source.parameters["width"])


@pytest.mark.parametrize("source", VIDEO_FORMATS, ids=str)
def test_every_listed_conversion_gives_what_it_promises(source: MediaType) -> None:
    for start, target in VIDEO.conversions():
        if start == source:
            _check(look_at(VIDEO.convert(_made(str(source)), source, target, LIMITS)), target)


@pytest.mark.parametrize("essence", VIDEO_TYPES)
def test_without_parameters_a_video_keeps_its_width(essence: str) -> None:
    source = MediaType.parse("video/x-flv;width=320;bitrate=200k")
    seen = look_at(VIDEO.convert(_made(str(source)), source, MediaType.parse(essence), LIMITS))
    assert seen.size == (320, 48)


@pytest.mark.parametrize("essence", VIDEO_TYPES)
def test_results_are_the_same_bytes_whatever_lies_in_memory(essence: str) -> None:
    """An encoder that reads memory which it never wrote gives different results by chance.

    The C library can fill what it hands out with any byte, so that chance is no excuse.
    """
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallopt"):
        pytest.skip("this C library does not fill memory")
    fill_memory = -6
    source, target = MediaType.parse("video/mp4"), MediaType.parse(f"{essence};width=300")
    results = set()
    try:
        for byte in (0, 1, 90, 255):
            library.mallopt(fill_memory, byte)
            results.add(VIDEO.convert(_first(), source, target, LIMITS))
    finally:
        library.mallopt(fill_memory, 0)
    assert len(results) == 1


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("video/mp4", "video/mp4;width=400"),
        ("video/mp4", "video/x-flv"),
        ("video/mp4;width=640", "video/mp4"),
        ("video/mp4;width=640", "video/mp4;width=640;bitrate=50k"),
        ("video/mp4;width=640;bitrate=1M", "video/3gpp;bitrate=1M"),
        ("video/mp4;codecs=avc1", "video/x-msvideo;width=16;bitrate=32k"),
    ],
)
def test_formats_with_other_parameters_are_converted(source: str, target: str) -> None:
    assert VIDEO.converts(MediaType.parse(source), MediaType.parse(target))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("video/mp4", "video/mp4"),
        ("video/mp4;width=320", "video/mp4;width=322"),
        ("video/mp4;width=wide", "video/x-flv"),
        ("video/mp4", "video/mp4;width=401"),
        ("video/mp4", "video/mp4;width=14"),
        ("video/mp4", "video/mp4;width=5000"),
        ("video/mp4", "video/mp4;width=0320"),
        ("video/mp4", "video/mp4;width=-320"),
        ("video/mp4", "video/mp4;bitrate=1k"),
        ("video/mp4", "video/mp4;bitrate=100M"),
        ("video/mp4", "video/mp4;bitrate=fast"),
        ("video/mp4", "video/mp4;height=400"),
        ("video/mp4", "video/webm"),
        ("video/webm", "video/mp4"),
        ("image/png", "video/mp4"),
        ("video/mp4", "audio/wav"),
    ],
)
def test_what_is_unknown_or_out_of_range_or_enlarges_is_no_conversion(
    source: str, target: str
) -> None:
    assert not VIDEO.converts(MediaType.parse(source), MediaType.parse(target))


@given(own=st.integers(1, 5000), asked=st.integers(1, 5000))
def test_nothing_is_ever_wider_than_its_source(own: int, asked: int) -> None:
    source = MediaType.parse(f"video/mp4;width={own}")
    if VIDEO.converts(source, MediaType.parse(f"video/x-flv;width={asked}")):
        assert asked <= own


def test_content_that_is_narrower_than_it_says_is_not_enlarged_either() -> None:
    source = MediaType.parse("video/mp4;width=1280")
    with pytest.raises(Unconvertible) as failure:
        VIDEO.convert(_first(), source, MediaType.parse("video/mp4;width=642"), LIMITS)
    assert failure.value.kind == "enlarges"


def test_the_version_names_library_and_encoder() -> None:
    assert "av=" in VIDEO.version
    assert VIDEO.version == Video().version
