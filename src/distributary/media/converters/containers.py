"""The containers of video and sound: how they are recognised, and what goes into them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["AUDIO_CONTAINERS", "VIDEO_CONTAINERS", "Container", "available", "bits_per_second"]

_BIT_RATE = re.compile(r"([1-9][0-9]{0,8})([kKmM]?)")
_FACTORS: Final = {"": 1, "k": 1000, "m": 1_000_000}
_MP3_RATES = (48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000)
_AAC_RATES = (48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000)


@dataclass(frozen=True)
class Container:
    """A container, and which of its many possible contents we write.

    Attributes
    ----------
    reader, writer
        What FFmpeg calls it. Readers are always named and never guessed: guessing would
        let content choose to be a playlist, which opens other files.
    signature
        How its content begins. FFmpeg reads some containers from anywhere in any file.
    audio_encoder
        The encoder for sound.
    video_encoders
        Encoders for pictures, the best first; the first that FFmpeg was built with is used.
    sample_rates
        Samples a second that it takes, the highest first; empty if it takes any.
    channels_max
        How many channels of sound it takes.
    records_delay
        Whether it records how many samples the sound encoder put in front. Elsewhere
        sound would come late by as much, so those samples have to go.
    has_timestamps
        Whether it says when each frame is shown. Otherwise frames come at a constant rate,
        and what lasts longer is written again.
    audio_options
        Options of the sound encoder.
    """

    reader: str
    writer: str
    signature: re.Pattern[bytes]
    audio_encoder: str
    video_encoders: tuple[str, ...] = ()
    sample_rates: tuple[int, ...] = ()
    channels_max: int = 2
    records_delay: bool = True
    has_timestamps: bool = True
    audio_options: Mapping[str, str] = field(default_factory=dict)

    def recognises(self, content: bytes) -> bool:
        """Whether content begins as this container does."""
        return self.signature.match(content) is not None

    def sample_rate(self, wanted: int) -> int:
        """Return the sample rate that loses the least: the next one up, else the highest."""
        if not self.sample_rates or wanted in self.sample_rates:
            return wanted
        higher = [rate for rate in self.sample_rates if rate > wanted]
        return min(higher) if higher else self.sample_rates[0]


_ISO_MEDIA = re.compile(rb".{4}(?:ftyp|moov|mdat|free|skip|wide|pnot)", re.DOTALL)
# Frames of mp3 that are dropped for their delay must not hold bits of later ones.
_ALONE: Final = {"reservoir": "0"}

VIDEO_CONTAINERS: Final[Mapping[str, Container]] = {
    "video/mp4": Container(
        "mp4",
        "mp4",
        _ISO_MEDIA,
        "aac",
        ("libx264", "libopenh264", "mpeg4"),
        sample_rates=_AAC_RATES,
    ),
    "video/x-msvideo": Container(
        "avi",
        "avi",
        re.compile(rb"RIFF.{4}AVI[ X\x19]", re.DOTALL),
        "libmp3lame",
        ("mpeg4",),
        sample_rates=_MP3_RATES,
        records_delay=False,
        has_timestamps=False,
        audio_options=_ALONE,
    ),
    "video/x-flv": Container(
        "flv",
        "flv",
        re.compile(rb"FLV[\x00-\x05]", re.DOTALL),
        "libmp3lame",
        ("flv",),
        sample_rates=(44100, 22050, 11025),
        records_delay=False,
        audio_options=_ALONE,
    ),
    "video/3gpp": Container(
        "3gp",
        "3gp",
        _ISO_MEDIA,
        "aac",
        # H.263, the first codec of this container, knows five frame sizes only.
        ("mpeg4",),
        sample_rates=_AAC_RATES,
        channels_max=1,
    ),
}

AUDIO_CONTAINERS: Final[Mapping[str, Container]] = {
    "audio/wav": Container(
        "wav",
        "wav",
        re.compile(rb"(?:RIFF|RF64).{4}WAVE", re.DOTALL),
        "pcm_s16le",
        channels_max=8,
    ),
    "audio/mpeg": Container(
        "mp3",
        "mp3",
        # A frame begins with eleven bits set, a version and a layer other than 0.
        re.compile(rb"ID3|\xff[\xe2-\xe7\xf2-\xf7\xfa-\xff]", re.DOTALL),
        "libmp3lame",
        sample_rates=_MP3_RATES,
    ),
    "audio/aac": Container(
        "aac",
        "adts",
        # Twelve bits set, and layer 0.
        re.compile(rb"ID3|\xff[\xf0\xf1\xf8\xf9]", re.DOTALL),
        "aac",
        sample_rates=(96000, 88200, 64000, *_AAC_RATES),
        channels_max=8,
        records_delay=False,
    ),
    "audio/ogg": Container(
        "ogg",
        "ogg",
        re.compile(rb"OggS\0"),
        "libopus",
        # All that Opus knows. What it reads may also be Vorbis, FLAC or Speex.
        sample_rates=(48000, 24000, 16000, 12000, 8000),
        # Left to itself, the encoder takes half as much again for speech.
        audio_options={"vbr": "constrained"},
    ),
}


def available(encoders: tuple[str, ...]) -> str:
    """Return the first of some encoders that FFmpeg was built with."""
    import av

    for name in encoders[:-1]:
        try:
            return av.Codec(name, "w").name
        except ValueError:
            continue
    # The last is part of FFmpeg itself.
    return encoders[-1]


def bits_per_second(text: str) -> int | None:
    """Return the bit rate that a format names, as in `200k` or `1M`, or None if it names none."""
    match = _BIT_RATE.fullmatch(text)
    return None if match is None else int(match[1]) * _FACTORS[match[2].lower()]
