"""Videos that are broken, lie about themselves or ask for too much."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from functools import cache
from io import BytesIO

import av
import numpy as np
import pytest
from tests.video_files import clip, look_at, tone

from distributary.content.media_type import MediaType
from distributary.media.converters.video import Video
from distributary.media.failure import Unconvertible
from distributary.media.limits import Limits

VIDEO = Video()
CODECS = {
    "video/mp4": ("mp4", "libx264", "aac"),
    "video/x-msvideo": ("avi", "mpeg4", "libmp3lame"),
    "video/x-flv": ("flv", "flv", "libmp3lame"),
    "video/3gpp": ("3gp", "mpeg4", "aac"),
}
HOURS = 36_000


@cache
def _clip(essence: str) -> bytes:
    container, codec, sound_codec = CODECS[essence]
    return clip(container, codec=codec, sound_codec=sound_codec, size=(160, 96), frames=24)


def _patched(content: bytes, name: bytes, offset: int, data: bytes) -> bytes:
    """Return content with bytes replaced, so far behind the first occurrence of a name."""
    place = content.index(name) + len(name) + offset
    return content[:place] + data + content[place + len(data) :]


def _failure(
    content: bytes,
    source: str,
    limits: Limits = Limits(),  # noqa: B008  (frozen)
) -> Unconvertible:
    target = "video/3gpp" if source == "video/mp4" else "video/mp4"
    with pytest.raises(Unconvertible) as failure:
        VIDEO.convert(content, MediaType.parse(source), MediaType.parse(target), limits)
    return failure.value


@pytest.mark.parametrize(
    ("source", "lie"),
    [
        ("video/mp4", lambda file: _patched(file, b"mvhd", 16, struct.pack(">I", HOURS * 1000))),
        ("video/3gpp", lambda file: _patched(file, b"mvhd", 16, struct.pack(">I", HOURS * 1000))),
        ("video/mp4", lambda file: _patched(file, b"stts", 8, struct.pack(">II", 24, 2**31 - 1))),
        ("video/mp4", lambda file: _patched(file, b"stts", 8, struct.pack(">II", 2**31 - 1, 512))),
        ("video/x-msvideo", lambda file: _patched(file, b"avih", 20, struct.pack("<I", 10**7))),
        ("video/x-msvideo", lambda file: _patched(file, b"strh", 36, struct.pack("<I", 10**7))),
        ("video/x-flv", lambda file: _patched(file, b"duration", 1, struct.pack(">d", HOURS))),
    ],
)
def test_a_video_that_claims_hours_is_refused_at_once(
    source: str, lie: Callable[[bytes], bytes]
) -> None:
    # Of the processor: a machine that is busy with something else may take longer.
    begin = time.process_time()
    assert _failure(lie(_clip(source)), source).kind == "frames"
    assert time.process_time() - begin < 2


def test_a_claim_within_the_limits_that_is_not_kept_is_damage() -> None:
    content = _patched(_clip("video/mp4"), b"mvhd", 16, struct.pack(">I", 60_000))
    failure = _failure(content, "video/mp4")
    assert failure.kind == "damaged"
    assert "60.0 seconds" in failure.reason


def test_frames_are_counted_whatever_the_header_says() -> None:
    """Here it says that there are none."""
    content = _patched(_clip("video/x-flv"), b"duration", 1, struct.pack(">d", 0))
    assert _failure(content, "video/x-flv", Limits(frames=23)).kind == "frames"


@pytest.mark.parametrize("source", CODECS)
def test_limits_on_pixels_frames_and_output_hold(source: str) -> None:
    content = _clip(source)
    assert _failure(content, source, Limits(pixels=160 * 96 - 1)).kind == "pixels"
    assert _failure(content, source, Limits(frames=23)).kind == "frames"
    assert _failure(content, source, Limits(output_bytes=2_000)).kind == "output"
    exact = Limits(pixels=160 * 96, frames=26)
    target = MediaType.parse("video/x-flv;width=64")
    assert VIDEO.convert(content, MediaType.parse(source), target, exact).startswith(b"FLV")


@pytest.mark.parametrize(("side", "kind"), [(16_000, "pixels"), (50_000, "damaged")])
def test_an_enormous_frame_is_refused_from_the_header(side: int, kind: str) -> None:
    """Beyond some size, FFmpeg says that a frame has none."""
    plain = clip("avi", codec="rawvideo", sound_codec=None, size=(64, 48))
    content = _patched(plain, b"strf", 8, struct.pack("<ii", side, side))
    assert _failure(content, "video/x-msvideo").kind == kind


def test_a_container_of_many_streams_is_refused() -> None:
    file = BytesIO()
    with av.open(file, "w", format="mp4") as made:
        streams = [made.add_stream("mpeg4", rate=25, width=16, height=16) for _ in range(40)]
        for stream in streams:
            made.mux(stream.encode(av.VideoFrame(16, 16, "yuv420p")))
            made.mux(stream.encode(None))
    assert _failure(file.getvalue(), "video/mp4").kind == "damaged"


@pytest.mark.parametrize("source", CODECS)
@pytest.mark.parametrize("share", [0.01, 0.3, 0.7])
def test_a_video_that_was_cut_off_is_damaged(source: str, share: float) -> None:
    content = _clip(source)
    assert _failure(content[: int(len(content) * share)], source).kind == "damaged"


@pytest.mark.parametrize("source", CODECS)
def test_nothing_and_noise_are_damaged(source: str) -> None:
    assert _failure(b"", source).kind == "damaged"
    noise = np.random.default_rng(5).integers(0, 256, 5000, dtype=np.uint8).tobytes()
    assert _failure(noise, source).kind == "damaged"
    assert _failure(_clip(source)[:16] + noise, source).kind == "damaged"


@pytest.mark.parametrize("source", CODECS)
@pytest.mark.parametrize("other", CODECS)
def test_a_video_of_another_container_is_damaged(source: str, other: str) -> None:
    """Except that mp4 and 3gp are one family, and told apart by nobody."""
    if source == other or {source, other} <= {"video/mp4", "video/3gpp"}:
        target = MediaType.parse("video/mp4;width=64")
        made = VIDEO.convert(_clip(other), MediaType.parse(source), target, Limits())
        assert len(look_at(made).times) == 24
    else:
        assert _failure(_clip(other), source).kind == "damaged"


@pytest.mark.parametrize(
    "content", [tone(), tone("mp4", "aac"), tone("adts", "aac")], ids=["wav", "m4a", "aac"]
)
def test_sound_alone_is_no_video(content: bytes) -> None:
    assert _failure(content, "video/mp4").kind == "damaged"


@pytest.mark.parametrize("source", CODECS)
@pytest.mark.parametrize(
    "text",
    [
        b"#EXTM3U\n#EXTINF:1,\nfile:///etc/hostname\n",
        b"ffconcat version 1.0\nfile /etc/hostname\n",
        b"<?xml version='1.0'?><MPD/>",
    ],
)
def test_lists_of_other_files_are_not_followed(source: str, text: bytes) -> None:
    assert _failure(text, source).kind == "damaged"


@pytest.mark.parametrize("source", CODECS)
def test_flipped_bits_give_a_failure_or_a_video(source: str) -> None:
    rng = np.random.default_rng(11)
    target = MediaType.parse("video/x-flv;width=64")
    outcomes: set[str] = set()
    for _ in range(12):
        content = bytearray(_clip(source))
        reach = int(rng.choice([200, 3_000, len(content)]))
        for place in rng.integers(0, min(reach, len(content)), int(rng.choice([1, 5, 60]))):
            content[place] ^= 1 << int(rng.integers(8))
        try:
            made = VIDEO.convert(bytes(content), MediaType.parse(source), target, Limits())
        except Unconvertible as failure:
            outcomes.add(failure.kind)
        else:
            assert look_at(made).size[0] == 64
            outcomes.add("converted")
    assert {"converted", "damaged"} <= outcomes
