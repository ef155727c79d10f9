"""Stills of videos: the right frame, upright, and as wide as asked for."""

from __future__ import annotations

from fractions import Fraction
from io import BytesIO

import av
import numpy as np
import pytest
from tests.pictures import pixels
from tests.video_files import clip

from distributary.content.media_type import MediaType
from distributary.media.converters.video_still import VideoStill
from distributary.media.failure import Unconvertible
from distributary.media.formats import VIDEO_FORMATS
from distributary.media.limits import Limits

STILL = VideoStill()
MP4 = MediaType.parse("video/mp4")


def still(content: bytes, target: str, source: MediaType = MP4, **limits: int) -> bytes:
    asked = MediaType.parse(target)
    assert STILL.converts(source, asked)
    return STILL.convert(content, source, asked, Limits(**limits))


def refusal(content: bytes, target: str, **limits: int) -> Unconvertible:
    with pytest.raises(Unconvertible) as raised:
        still(content, target, MP4, **limits)
    return raised.value


def shown(content: bytes, seconds: float) -> np.ndarray:
    """Return the pixels that a player shows at a time."""
    with av.open(BytesIO(content), "r") as container:
        frames = [frame for frame in container.decode(video=0) if (frame.time or 0) <= seconds]
        return np.asarray(frames[-1].to_ndarray(format="rgb24"), np.int64)


def test_every_listed_video_has_a_picture_of_each_width_that_enlarges_nothing() -> None:
    pairs = list(STILL.conversions())
    assert len(pairs) == 16
    for source, target in pairs:
        assert source in VIDEO_FORMATS
        assert target.essence == "image/jpeg"
        assert int(target.parameters["width"]) <= int(source.parameters["width"])


@pytest.mark.parametrize(("at", "seconds"), [("", 0.2), (";at=0", 0), (";at=1.5", 1.5)])
def test_the_frame_is_the_one_that_is_shown_then(at: str, seconds: float) -> None:
    content = clip(size=(160, 96), frames=50)
    seen = pixels(still(content, f"image/png{at}"), essence="image/png").astype(np.int64)
    assert seen.shape == (96, 160, 3)
    assert np.abs(seen - shown(content, seconds)).mean() < 2
    if at:
        other = shown(content, 1.0)
        assert np.abs(seen - other).mean() > np.abs(seen - shown(content, seconds)).mean()
    assert still(content, f"image/png{at}") == still(content, f"image/png{at}")


@pytest.mark.parametrize(
    ("source", "container", "codec"),
    [
        ("video/x-msvideo", "avi", "mpeg4"),
        ("video/x-flv", "flv", "flv"),
        ("video/3gpp", "3gp", "mpeg4"),
    ],
)
@pytest.mark.parametrize("target", ["image/jpeg", "image/webp", "image/gif"])
def test_every_container_becomes_every_kind_of_picture(
    source: str, container: str, codec: str, target: str
) -> None:
    sound = "aac" if container == "3gp" else "libmp3lame"
    content = clip(container, codec=codec, sound_codec=sound, size=(160, 96))
    made = still(content, f"{target};width=80", MediaType.parse(source))
    seen = pixels(made, essence=target)
    assert seen.shape == (48, 80, 3)
    assert seen[:, :8].mean() > seen[:, -8:].mean() + 60


def test_frames_that_lie_on_their_side_or_have_flat_pixels_are_put_right() -> None:
    turned = pixels(still(clip(size=(160, 96), rotation=90), "image/png"), essence="image/png")
    assert turned.shape == (160, 96, 3)
    assert abs(turned[:16].mean() - turned[-16:].mean()) > 60
    wide = still(clip(size=(160, 96), aspect=Fraction(2)), "image/png;width=100")
    assert pixels(wide, essence="image/png").shape == (30, 100, 3)


def test_what_cannot_be_is_refused_with_its_reason() -> None:
    content = clip(size=(160, 96), frames=25)
    assert refusal(content, "image/png;width=161").kind == "enlarges"
    failure = refusal(content, "image/png;at=1")
    assert (failure.kind, failure.reason) == ("impossible", "the video ends after 1.0 seconds")
    assert refusal(content, "image/png", pixels=1000).kind == "pixels"
    assert refusal(content, "image/png", frames=10).kind == "frames"
    assert refusal(b"", "image/png").kind == "damaged"
    assert refusal(content[: len(content) // 2], "image/png").kind == "damaged"


@pytest.mark.parametrize(
    "target",
    ["image/png;at=-1", "image/png;at=1e3", "image/png;at=1.2345", "image/png;page=1", "image/bmp"],
)
def test_other_conversions_do_not_exist(target: str) -> None:
    assert not STILL.converts(MP4, MediaType.parse(target))
    assert not STILL.converts(MediaType.parse("audio/wav"), MediaType.parse("image/png"))
