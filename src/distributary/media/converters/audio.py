"""Sound between wav, mp3, aac and ogg, and the sound of a video.

Sound keeps its sample rate and channels where the codec has them. A result lasts as long as
its source to within one frame of its codec (1152 samples of mp3, 1024 of aac, 20 ms of ogg; wav
is exact): what encoders put in front is noted in mp3 and ogg files, and left out of aac, which
cannot note it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import ClassVar, Final

from distributary.content.media_type import MediaType
from distributary.media.converter import Converter
from distributary.media.converters.audio_track import AudioTrack, check_rate, check_samples
from distributary.media.converters.containers import (
    AUDIO_CONTAINERS,
    VIDEO_CONTAINERS,
    bits_per_second,
)
from distributary.media.converters.header_duration import header_seconds
from distributary.media.converters.streams import (
    BoundedOutput,
    Decoding,
    audio_stream,
    created,
    damage_as_failure,
    opened,
)
from distributary.media.converters.video_info import read_video_info
from distributary.media.failure import FailureKind, Unconvertible
from distributary.media.formats import AUDIO_FORMATS, SPEECH, SPEECH_PARAMETERS, VIDEO_FORMATS
from distributary.media.limits import Limits

__all__ = ["Audio"]

_REVISION: Final = 1
_BITS: Final = range(16_000, 320_001)
_BITS_PER_CHANNEL = 64_000
# How many samples count as one frame towards the limit.
_SAMPLES_PER_FRAME = 1000
# A wav file that ends before this share of its promised length was cut off. Lengths of the
# others are estimates.
_SHARE_MIN = 0.9
_READERS: Final = {**AUDIO_CONTAINERS, **VIDEO_CONTAINERS}


class Audio(Converter):
    """Sound as wav (16 bits a sample), mp3, aac and ogg (Opus), also that of a video.

    All but the first may have a `bitrate`. What was said in which language stays so: targets
    may repeat what a source says of its speech.
    """

    name: ClassVar[str] = "audio"
    packages: ClassVar[tuple[tuple[str, str], ...]] = (("av", "video"),)
    parameters: ClassVar[Mapping[str, str]] = {"bitrate": "16k to 320k, and none of audio/wav"}

    @property
    def version(self) -> str:
        """Our own revision, and that of the libraries."""
        import av

        return f"{_REVISION};av={av.__version__}"

    def conversions(self) -> Iterator[tuple[MediaType, MediaType]]:
        """List every pair of the formats of sound, and wav for every format of video."""
        yield from permutations(AUDIO_FORMATS, 2)
        for video in VIDEO_FORMATS:
            yield video, SPEECH

    def converts(self, source: MediaType, target: MediaType) -> bool:
        """Whether both are formats we know, and the target a bit rate we make."""
        if source == target or target.essence not in AUDIO_CONTAINERS:
            return False
        if source.essence not in _READERS:
            return False
        said = {name: source.parameters.get(name) for name in SPEECH_PARAMETERS}
        asked = {
            name: value for name, value in target.parameters.items() if said.get(name) != value
        }
        if not asked:
            return True
        return (
            target.essence != "audio/wav"
            and asked.keys() == {"bitrate"}
            and bits_per_second(asked["bitrate"]) in _BITS
        )

    def convert(
        self, content: bytes, source: MediaType, target: MediaType, limits: Limits
    ) -> bytes:
        """Return the sound in another format or bit rate."""
        reader, writer = _READERS[source.essence], AUDIO_CONTAINERS[target.essence]
        if source.type == "video":
            # Refuses one that was cut off, which its sound alone does not show.
            read_video_info(content, reader, limits)
        output = BoundedOutput(limits.output_bytes)
        with (
            damage_as_failure(),
            opened(content, reader) as given,
            created(output, writer) as made,
        ):
            stream = audio_stream(given)
            if stream is None or not stream.codec_context.channels:
                silent: FailureKind = "damaged" if source.type == "audio" else "impossible"
                raise Unconvertible(silent, "it has no sound")
            rate, channel_count = stream.codec_context.sample_rate, stream.codec_context.channels
            check_rate(rate)
            claimed = float(header_seconds(content, reader, given, stream))
            samples_max = limits.frames * _SAMPLES_PER_FRAME
            check_samples(claimed * rate, samples_max)
            channel_count = min(channel_count, writer.channels_max)
            track = AudioTrack(
                made,
                writer,
                rate=writer.sample_rate(rate),
                channel_count=channel_count,
                bits=bits_per_second(target.parameters.get("bitrate", ""))
                or min(channel_count, 2) * _BITS_PER_CHANNEL,
                start=None,
                seconds_max=None,
                samples_max=samples_max,
            )
            decoding = Decoding()
            for packet in given.demux(stream):
                for frame in decoding.audio(packet):
                    track.take(frame)
            decoding.check()
            if not track.samples_read:
                raise Unconvertible("damaged", "none of its sound can be decoded")
            if reader.writer == "wav" and track.samples_read < _SHARE_MIN * claimed * rate:
                raise Unconvertible("damaged", "it is cut short: it ends before its header says")
            track.finish()
        return output.getvalue()
