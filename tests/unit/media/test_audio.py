"""Sound in wav, mp3, aac, ogg and video: what is kept, how long it lasts, what is refused."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from tests.video_files import clip, hear, tone

from distributary.content.media_type import MediaType
from distributary.media.converters.audio import Audio
from distributary.media.failure import Unconvertible
from distributary.media.formats import AUDIO_FORMATS, VIDEO_FORMATS
from distributary.media.limits import Limits

AUDIO = Audio()
CODECS = {
    "audio/wav": ("wav", "pcm_s16le"),
    "audio/mpeg": ("mp3", "libmp3lame"),
    "audio/aac": ("adts", "aac"),
}
NAMES = {"audio/wav": "pcm_s16le", "audio/mpeg": "mp3", "audio/aac": "aac", "audio/ogg": "opus"}
# Samples that a result may be longer or shorter by: a frame of the codec; wav has none.
FRAME = {"audio/wav": 0, "audio/mpeg": 1152, "audio/aac": 1024}
TONE_LEVEL = 1 / 3 / 2**0.5


def _converted(content: bytes, source: str, target: str, limits: Limits | None = None) -> bytes:
    return AUDIO.convert(
        content, MediaType.parse(source), MediaType.parse(target), limits or Limits()
    )


def _failure(content: bytes, source: str, limits: Limits | None = None) -> Unconvertible:
    target = "audio/mpeg" if source == "audio/wav" else "audio/wav"
    with pytest.raises(Unconvertible) as failure:
        _converted(content, source, target, limits)
    return failure.value


def test_every_pair_and_the_sound_of_every_video_is_listed() -> None:
    pairs = {(str(source), str(target)) for source, target in AUDIO.conversions()}
    assert pairs == {
        (str(source), str(target))
        for source in AUDIO_FORMATS
        for target in AUDIO_FORMATS
        if source != target
    } | {(str(source), "audio/wav") for source in VIDEO_FORMATS}


@pytest.mark.parametrize("target", CODECS)
@pytest.mark.parametrize("source", CODECS)
@pytest.mark.parametrize(("rate", "channels"), [(44100, 2), (22050, 1), (8000, 1)])
def test_sound_keeps_rate_channels_level_and_length(
    source: str, target: str, rate: int, channels: int
) -> None:
    if source == target:
        target = f"{target};bitrate=32k" if target != "audio/wav" else "audio/aac"
    content = tone(*CODECS[source], seconds=1.3, rate=rate, channels=channels)
    before, after = hear(content), hear(_converted(content, source, target))
    essence = target.partition(";")[0]
    assert after.codec == NAMES[essence]
    assert (after.rate, after.channels) == (rate, channels)
    assert after.level == pytest.approx(TONE_LEVEL, rel=0.15)
    assert abs(after.seconds - before.seconds) * rate <= FRAME[essence]


def test_a_wav_file_to_mp3_and_back_has_as_many_samples() -> None:
    """An mp3 file notes what its encoder put in front and behind."""
    content = tone(seconds=0.777)
    back = _converted(_converted(content, "audio/wav", "audio/mpeg"), "audio/mpeg", "audio/wav")
    assert round(hear(back).seconds * 44100) == round(0.777 * 44100)


def test_a_rate_that_mp3_does_not_have_becomes_the_next_one() -> None:
    content = tone(rate=18_000, channels=1)
    heard = hear(_converted(content, "audio/wav", "audio/mpeg"))
    assert heard.rate == 22_050
    assert heard.seconds == pytest.approx(1.0, abs=0.06)
    assert hear(_converted(tone(rate=96_000), "audio/wav", "audio/mpeg")).rate == 48_000
    assert hear(_converted(tone(rate=96_000), "audio/wav", "audio/aac")).rate == 96_000


@pytest.mark.parametrize("target", ["audio/mpeg", "audio/aac"])
def test_fewer_bits_make_smaller_files(target: str) -> None:
    noise = np.random.default_rng(3).integers(-9000, 9000, 44_100, dtype=np.int16).tobytes()
    silence = tone(seconds=0.5)
    content = silence[: silence.index(b"data") + 4] + struct.pack("<I", len(noise)) + noise
    large = _converted(content, "audio/wav", f"{target};bitrate=128k")
    small = _converted(content, "audio/wav", f"{target};bitrate=48k")
    assert len(small) < 0.6 * len(large)
    assert len(large) == pytest.approx(128_000 / 8 / 2, rel=0.35)


@pytest.mark.parametrize("target", CODECS)
def test_the_same_sound_gives_the_same_bytes(target: str) -> None:
    source = "audio/wav" if target != "audio/wav" else "audio/aac"
    content = tone(*CODECS[source], seconds=0.5)
    assert _converted(content, source, target) == _converted(content, source, target)


@pytest.mark.parametrize(
    "target",
    [
        "audio/mpeg",
        "audio/wav;bitrate=64k",
        "audio/aac;bitrate=1k",
        "audio/aac;bitrate=999k",
        "audio/aac;bitrate=much",
        "audio/aac;rate=8000",
        "audio/ogg;bitrate=1k",
        "audio/ogg;item=2",
        "audio/flac",
        "video/mp4",
    ],
)
def test_what_is_unknown_or_out_of_range_is_no_conversion(target: str) -> None:
    assert not AUDIO.converts(MediaType.parse("audio/mpeg"), MediaType.parse(target))
    assert AUDIO.converts(MediaType.parse("audio/mpeg"), MediaType.parse("audio/aac;bitrate=96k"))


def test_limits_on_samples_and_output_hold() -> None:
    content = tone(seconds=1)
    assert _failure(content, "audio/wav", Limits(frames=44)).kind == "frames"
    assert _converted(content, "audio/wav", "audio/mpeg", Limits(frames=45))
    assert _failure(content, "audio/wav", Limits(output_bytes=1000)).kind == "output"


def test_samples_are_counted_whatever_the_header_says() -> None:
    content = tone("adts", "aac", seconds=1)
    assert _failure(content, "audio/aac", Limits(frames=40)).kind == "frames"


def _wav_with(chunk: bytes, offset: int, data: bytes) -> bytes:
    """Return a wav file with bytes replaced, so far behind the name of a chunk."""
    content = tone(seconds=0.5)
    place = content.index(chunk) + 4 + offset
    return content[:place] + data + content[place + len(data) :]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (_wav_with(b"data", 0, struct.pack("<I", 0xFFFF_FF00)), "frames"),
        (_wav_with(b"fmt ", 8, struct.pack("<I", 7)), "damaged"),
        (_wav_with(b"fmt ", 8, struct.pack("<I", 0)), "damaged"),
        (_wav_with(b"fmt ", 6, struct.pack("<H", 65_535)), "damaged"),
        (_wav_with(b"fmt ", 4, struct.pack("<H", 0x7777)), "damaged"),
        (tone(seconds=0.5)[:2000], "damaged"),
        (tone(seconds=0.5)[:30], "damaged"),
        (b"", "damaged"),
        (tone("mp3", "libmp3lame"), "damaged"),
        (b"RIFF\xff\xff\xff\xffWAVE" + bytes(1000), "damaged"),
    ],
    ids=[
        "claims hours",
        "seven samples a second",
        "no samples a second",
        "65,535 channels",
        "unknown codec",
        "cut off",
        "cut off in the header",
        "empty",
        "mp3",
        "zeros",
    ],
)
def test_a_wav_file_that_is_not_right_is_refused(content: bytes, kind: str) -> None:
    assert _failure(content, "audio/wav").kind == kind


def test_a_wav_file_that_was_written_to_a_pipe_is_read_to_its_end() -> None:
    """Its header could not know how long it would be."""
    content = _wav_with(b"data", 0, struct.pack("<I", 0xFFFF_FFFF))
    assert hear(_converted(content, "audio/wav", "audio/mpeg")).seconds == pytest.approx(
        0.5, abs=0.03
    )


@pytest.mark.parametrize("source", ["audio/mpeg", "audio/aac"])
def test_what_only_begins_like_sound_is_damaged(source: str) -> None:
    start = {"audio/mpeg": b"\xff\xfb\x90\x00", "audio/aac": b"\xff\xf1\x50\x80"}[source]
    assert _failure(start + bytes(3000), source).kind == "damaged"
    assert _failure(b"hello " * 500, source).kind == "damaged"


def test_sound_whose_rate_nobody_knows_is_damaged() -> None:
    """Cut off before the first frame is whole, its decoder says 0."""
    failure = _failure(tone("adts", "aac", seconds=0.5)[:100], "audio/aac")
    assert (failure.kind, failure.reason) == ("damaged", "its sound has 0 samples a second")


@pytest.mark.parametrize("source", CODECS)
def test_flipped_bits_of_sound_give_a_failure_or_sound(source: str) -> None:
    rng = np.random.default_rng(7)
    target = "audio/aac" if source == "audio/wav" else "audio/wav"
    healthy = tone(*CODECS[source], seconds=0.5)
    outcomes: set[str] = set()
    for _ in range(20):
        content = bytearray(healthy)
        for place in rng.integers(0, int(rng.choice([60, len(content)])), int(rng.choice([1, 50]))):
            content[place] ^= 1 << int(rng.integers(8))
        try:
            made = _converted(bytes(content), source, target)
        except Unconvertible as failure:
            outcomes.add(failure.kind)
        else:
            assert hear(made).seconds > 0
            outcomes.add("converted")
    assert {"converted", "damaged"} <= outcomes


@pytest.mark.parametrize(("rate", "kept"), [(48_000, 48_000), (44_100, 48_000), (16_000, 16_000)])
@pytest.mark.parametrize("channels", [1, 2])
def test_ogg_is_opus_and_lasts_as_long(rate: int, kept: int, channels: int) -> None:
    """Opus plays at 48,000 samples a second, whatever it was made from."""
    content = tone(seconds=1.3, rate=rate, channels=channels)
    made = _converted(content, "audio/wav", "audio/ogg")
    assert made.startswith(b"OggS")
    # The rate of the sound that went in is noted in the header of the stream.
    assert struct.unpack_from("<I", made, made.index(b"OpusHead") + 12) == (kept,)
    after = hear(made)
    assert (after.codec, after.rate, after.channels) == ("opus", 48_000, channels)
    assert after.level == pytest.approx(TONE_LEVEL, rel=0.15)
    assert after.seconds == pytest.approx(1.3, abs=0.021)
    back = hear(_converted(made, "audio/ogg", "audio/wav"))
    assert back.seconds == pytest.approx(1.3, abs=0.021)
    assert made == _converted(content, "audio/wav", "audio/ogg")
    smaller = _converted(content, "audio/wav", "audio/ogg;bitrate=16k")
    assert len(smaller) < 0.6 * len(made)


@pytest.mark.parametrize("codec", ["vorbis", "flac"])
def test_other_codecs_in_ogg_are_read(codec: str) -> None:
    # FFmpeg calls its encoder of Vorbis an experiment.
    content = tone("ogg", codec, seconds=0.7, options={"strict": "experimental"})
    heard = hear(_converted(content, "audio/ogg", "audio/mpeg"))
    assert heard.seconds == pytest.approx(0.7, abs=0.03)
    assert heard.level == pytest.approx(TONE_LEVEL, rel=0.15)


@pytest.mark.parametrize("target", ["audio/wav", "audio/mpeg", "audio/aac", "audio/ogg"])
@pytest.mark.parametrize(
    ("source", "container", "codecs"),
    [
        ("video/mp4", "mp4", ("libx264", "aac")),
        ("video/x-msvideo", "avi", ("mpeg4", "libmp3lame")),
        ("video/x-flv", "flv", ("flv", "libmp3lame")),
        ("video/3gpp", "3gp", ("mpeg4", "aac")),
    ],
)
def test_the_sound_of_a_video_is_what_is_heard_in_it(
    source: str, container: str, codecs: tuple[str, str], target: str
) -> None:
    content = clip(container, codec=codecs[0], sound_codec=codecs[1], size=(64, 48), frames=25)
    assert AUDIO.converts(MediaType.parse(source), MediaType.parse(target))
    heard = hear(_converted(content, source, target))
    assert heard.codec == NAMES[target]
    assert heard.channels == 2
    assert heard.seconds == pytest.approx(1.0, abs=0.08)
    assert heard.level == pytest.approx(TONE_LEVEL, rel=0.15)


def test_a_silent_film_has_no_sound_to_convert() -> None:
    content = clip(sound_codec=None, size=(64, 48))
    failure = _failure(content, "video/mp4")
    assert (failure.kind, failure.reason) == ("impossible", "it has no sound")


def test_a_video_that_was_cut_off_has_no_sound_worth_converting() -> None:
    """Its header comes first here, and promises as much as ever."""
    content = clip("avi", codec="mpeg4", sound_codec="libmp3lame", size=(64, 48), frames=100)
    assert _failure(content[: len(content) // 2], "video/x-msvideo").kind == "damaged"
