"""Videos that are not as usual: how long they last, which way up, and what is heard."""

from __future__ import annotations

from fractions import Fraction

import pytest
from tests.video_files import Look, clip, look_at

from distributary.content.media_type import MediaType
from distributary.media.converters.clock import tick_rate
from distributary.media.converters.video import Video
from distributary.media.formats import VIDEO_TYPES
from distributary.media.limits import Limits

VIDEO = Video()
MP4 = "video/mp4"
UNEVEN = [Fraction(ms, 1000) for ms in (0, 40, 80, 200, 233, 300, 700, 710, 760, 1000, 1500)]


def _converted(content: bytes, source: str, target: str) -> Look:
    return look_at(
        VIDEO.convert(content, MediaType.parse(source), MediaType.parse(target), Limits())
    )


def _shown(times: tuple[float, ...]) -> list[float]:
    return [time - times[0] for time in times]


@pytest.mark.parametrize("target", VIDEO_TYPES)
@pytest.mark.parametrize(
    "rate", [Fraction(30000, 1001), Fraction(24), Fraction(240), Fraction(1, 2)], ids=str
)
def test_a_constant_rate_keeps_every_frame_in_its_place(rate: Fraction, target: str) -> None:
    count = max(4, round(rate / 4))
    content = clip(size=(64, 48), rate=rate, frames=count, sound_codec=None)
    seen = _converted(content, MP4, target)
    assert seen.times == pytest.approx([float(index / rate) for index in range(count)], abs=0.001)
    assert seen.seconds == pytest.approx(float(count / rate), abs=0.001)


@pytest.mark.parametrize("target", VIDEO_TYPES)
@pytest.mark.parametrize("sound_codec", ["aac", None])
def test_frames_that_come_as_they_please_keep_their_times(
    sound_codec: str | None, target: str
) -> None:
    content = clip(
        size=(64, 48),
        times=UNEVEN,
        time_base=Fraction(1, 1000),
        sound_codec=sound_codec,
        options={"bf": "0"},
    )
    seen = _converted(content, MP4, target)
    expected = [float(time) for time in UNEVEN[:-1]]
    assert seen.times[: len(expected)] == pytest.approx(expected, abs=1 / 120)
    # A container without times shows the last frame for longer by writing it again.
    assert len(seen.times) - len(expected) == (target == "video/x-msvideo")
    assert seen.seconds == pytest.approx(1.5, abs=1 / 25)


@pytest.mark.parametrize("target", VIDEO_TYPES)
def test_frames_that_refer_to_later_ones_come_out_in_order(target: str) -> None:
    content = clip(size=(64, 48), options={"bf": "3", "b_strategy": "0"})
    assert _converted(content, MP4, target).times == pytest.approx(
        [index / 25 for index in range(12)], abs=0.001
    )


@pytest.mark.parametrize("target", VIDEO_TYPES)
@pytest.mark.parametrize(
    ("container", "codec", "sound_codec", "source"),
    [("mp4", "libx264", "aac", MP4), ("flv", "flv", "libmp3lame", "video/x-flv")],
)
def test_a_source_that_starts_late_starts_at_once(
    container: str, codec: str, sound_codec: str, source: str, target: str
) -> None:
    content = clip(
        container, codec=codec, sound_codec=sound_codec, size=(64, 48), start=Fraction(5)
    )
    seen = _converted(content, source, target)
    assert seen.times == pytest.approx([index / 25 for index in range(12)], abs=0.001)
    assert seen.seconds == pytest.approx(12 / 25, abs=1 / 25)
    assert seen.sound is not None
    assert seen.sound.seconds == pytest.approx(12 / 25, abs=0.05)


@pytest.mark.parametrize("target", VIDEO_TYPES)
def test_a_video_without_sound_stays_so(target: str) -> None:
    assert _converted(clip(size=(64, 48), sound_codec=None), MP4, target).sound is None


@pytest.mark.parametrize("target", VIDEO_TYPES)
@pytest.mark.parametrize("seconds", [0.2, 1.5])
def test_sound_may_end_before_the_pictures_and_after_them(seconds: float, target: str) -> None:
    seen = _converted(clip(size=(64, 48), sound_seconds=seconds), MP4, target)
    assert seen.sound is not None
    assert seen.sound.seconds == pytest.approx(seconds, abs=0.07)
    assert len(seen.times) == 12


@pytest.mark.parametrize("target", VIDEO_TYPES)
def test_one_frame_is_a_video_too(target: str) -> None:
    seen = _converted(clip(size=(64, 48), frames=1, sound_codec=None), MP4, target)
    assert seen.times == (0.0,)


@pytest.mark.parametrize("target", VIDEO_TYPES)
def test_odd_sizes_become_even_without_growing(target: str) -> None:
    content = clip("avi", codec="mpeg4", sound_codec=None, size=(161, 97))
    assert _converted(content, "video/x-msvideo", target).size == (160, 96)


@pytest.mark.parametrize("target", VIDEO_TYPES)
@pytest.mark.parametrize(
    ("rotation", "size", "bright", "dark"),
    [
        (90, (96, 160), (-8, None, 0, None), (0, 8, 0, None)),
        (-90, (96, 160), (0, 8, 0, None), (-8, None, 0, None)),
        (180, (160, 96), (0, None, -8, None), (0, None, 0, 8)),
    ],
)
def test_pictures_are_turned_the_way_they_are_meant_to_be_seen(
    rotation: int,
    size: tuple[int, int],
    bright: tuple[int | None, ...],
    dark: tuple[int | None, ...],
    target: str,
) -> None:
    """The source is bright at its left; a quarter turn to the left puts that at the bottom."""
    seen = _converted(clip(size=(160, 96), rotation=rotation), MP4, target)
    assert seen.size == size
    assert seen.picture[bright[0] : bright[1], bright[2] : bright[3]].mean() > 150
    assert seen.picture[dark[0] : dark[1], dark[2] : dark[3]].mean() < 60


@pytest.mark.parametrize(
    ("aspect", "size"), [(Fraction(4, 3), (160, 72)), (Fraction(1, 2), (80, 96))], ids=str
)
def test_pixels_become_square_by_shrinking(aspect: Fraction, size: tuple[int, int]) -> None:
    seen = _converted(clip(size=(160, 96), aspect=aspect), MP4, "video/x-flv")
    assert seen.size == size


def test_two_channels_become_one_without_overflow() -> None:
    """Their mean: a sum would be louder than both."""
    seen = _converted(clip(size=(64, 48), frames=25), MP4, "video/3gpp;bitrate=1M")
    assert seen.sound is not None
    assert seen.sound.channels == 1
    assert seen.sound.level == pytest.approx(1 / 3 / 2**0.5, rel=0.1)


def test_a_clock_ticks_at_the_first_rate_that_holds() -> None:
    frames = [round(index / 30, 3) for index in range(300)]
    assert tick_rate(frames, proposed=[None, Fraction(25), Fraction(30)]) == 30


def test_a_clock_ticks_faster_than_frames_that_fit_no_rate() -> None:
    assert tick_rate([0.0, 0.013, 0.11], proposed=[Fraction(25)]) == 120
    assert tick_rate([0.0, 0.002, 0.11], proposed=[Fraction(25)]) == 1000


def test_a_clock_counts_in_16_bits() -> None:
    rate = tick_rate([0.0, 100 / 2997], proposed=[Fraction(2_997_003, 100_000)])
    assert rate.numerator < 1 << 16
    assert float(rate) == pytest.approx(29.97003, rel=1e-6)
