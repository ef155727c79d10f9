"""Small videos and sounds made for tests, and a look at what came out, by other means.

Nothing here uses the converters: files are written and read with PyAV alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import av
import numpy as np

if TYPE_CHECKING:
    from av.audio.stream import AudioStream
    from av.video.stream import VideoStream

__all__ = ["Heard", "Look", "clip", "hear", "look_at", "tone"]

_SOUND_RATE = 44100


def clip(
    container: str = "mp4",
    *,
    codec: str = "libx264",
    sound_codec: str | None = "aac",
    size: tuple[int, int] = (640, 96),
    rate: Fraction | int = 25,
    frames: int = 12,
    times: Sequence[Fraction] | None = None,
    time_base: Fraction | None = None,
    start: Fraction = Fraction(0),
    sound_seconds: float | None = None,
    options: dict[str, str] | None = None,
    aspect: Fraction | None = None,
    rotation: int = 0,
    bits: int = 600_000,
) -> bytes:
    """Return a video of a moving gradient with a tone of 440 Hz at a third of full level.

    Parameters
    ----------
    times
        When frames are shown; the last says when the video ends. Otherwise at the rate.
    start
        Added to the times of pictures and sound alike.
    """
    shown = list(times or (Fraction(index) / rate for index in range(frames + 1)))
    base = time_base or 1 / Fraction(rate)
    file = BytesIO()
    with av.open(file, "w", format=container) as made:
        pictures = cast(
            "VideoStream",
            made.add_stream(
                codec,
                rate=Fraction(rate),
                options=options or {},
                width=size[0],
                height=size[1],
                bit_rate=bits,
                time_base=base,
            ),
        )
        pictures.codec_context.flags |= int(av.codec.context.Flags.frame_duration)
        if aspect is not None:
            pictures.codec_context.sample_aspect_ratio = aspect
        if rotation:
            pictures.set_display_rotation(rotation)
        voice = None
        if sound_codec is not None:
            voice = cast(
                "AudioStream", made.add_stream(sound_codec, rate=_SOUND_RATE, layout="stereo")
            )
        for index, (now, after) in enumerate(pairwise(shown)):
            frame = av.VideoFrame.from_ndarray(_picture(size, index), format="rgb24")
            frame.time_base = base
            frame.pts = round((now + start) / base)
            frame.duration = round((after - now) / base)
            made.mux(pictures.encode(frame))
        made.mux(pictures.encode(None))
        if voice is not None:
            seconds = float(shown[-1]) if sound_seconds is None else sound_seconds
            for stretch in _sound(seconds, _SOUND_RATE, 2, start):
                made.mux(voice.encode(stretch))
            made.mux(voice.encode(None))
    return file.getvalue()


def tone(
    container: str = "wav",
    codec: str = "pcm_s16le",
    *,
    seconds: float = 1.0,
    rate: int = _SOUND_RATE,
    channels: int = 2,
    options: dict[str, str] | None = None,
) -> bytes:
    """Return a tone of 440 Hz at a third of full level."""
    file = BytesIO()
    with av.open(file, "w", format=container) as made:
        voice = cast(
            "AudioStream",
            made.add_stream(
                codec,
                rate=rate,
                layout="stereo" if channels == 2 else "mono",
                options=options or {},
            ),
        )
        for stretch in _sound(seconds, rate, channels, Fraction(0)):
            made.mux(voice.encode(stretch))
        made.mux(voice.encode(None))
    return file.getvalue()


@dataclass(frozen=True)
class Heard:
    """What a decoder hears: rate, channels, seconds and level (1 is full scale)."""

    codec: str
    rate: int
    channels: int
    seconds: float
    level: float


@dataclass(frozen=True)
class Look:
    """What a decoder sees: `times` has the second of every frame, `seconds` of the end."""

    container: str
    codec: str
    size: tuple[int, int]
    times: tuple[float, ...]
    seconds: float
    sound: Heard | None
    picture: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]


def look_at(content: bytes) -> Look:
    """Decode a whole video, in whichever container it turns out to be."""
    with av.open(BytesIO(content), "r") as source:
        stream = source.streams.video[0]
        frames = list(source.decode(stream))
        first = frames[0].to_ndarray(format="gray")
        sizes = {(frame.width, frame.height) for frame in frames}
        assert len(sizes) == 1
        return Look(
            container=source.format.name,
            codec=stream.codec.canonical_name,
            size=sizes.pop(),
            times=tuple(float(frame.time) for frame in frames),
            seconds=(source.duration or 0) / av.time_base,
            sound=hear(content) if source.streams.audio else None,
            picture=cast("np.ndarray[tuple[int, ...], np.dtype[np.uint8]]", first),
        )


def hear(content: bytes) -> Heard:
    """Decode all sound of a file."""
    with av.open(BytesIO(content), "r") as source:
        stream = source.streams.audio[0]
        resampler = av.AudioResampler(format="fltp")
        blocks = [
            ready.to_ndarray()
            for frame in source.decode(stream)
            for ready in resampler.resample(frame)
        ]
        samples = np.concatenate(blocks, axis=1)
        return Heard(
            codec=stream.codec.canonical_name,
            rate=stream.codec_context.sample_rate,
            channels=samples.shape[0],
            seconds=samples.shape[1] / stream.codec_context.sample_rate,
            level=float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))),
        )


def _picture(size: tuple[int, int], index: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Return a picture that is bright at its left and dark at its right, with a moving bar."""
    width, height = size
    pixels = np.empty((height, width, 3), np.uint8)
    pixels[...] = np.linspace(220, 30, width).astype(np.uint8)[None, :, None]
    left = (index * 16) % max(1, width - 16)
    pixels[: height // 3, left : left + 16] = (200, 40, 40)
    return pixels


def _sound(seconds: float, rate: int, channels: int, start: Fraction) -> Iterable[av.AudioFrame]:
    count = round(seconds * rate)
    for begin in range(0, count, 1024):
        places = np.arange(begin, min(begin + 1024, count))
        wave = (np.sin(2 * np.pi * 440 * places / rate) / 3).astype(np.float32)
        frame = av.AudioFrame.from_ndarray(
            np.stack([wave] * channels),
            format="fltp",
            layout="stereo" if channels == 2 else "mono",
        )
        frame.sample_rate = rate
        frame.time_base = Fraction(1, rate)
        frame.pts = begin + round(start * rate)
        yield frame
