"""Video between containers, widths and bit rates.

Frames keep their times, so that a result lasts as long as its source to within one frame;
at a constant rate it has as many frames. A result is the same bytes every time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import TYPE_CHECKING, ClassVar, Final, cast

from distributary.content.media_type import MediaType
from distributary.media.converter import Converter
from distributary.media.converters.audio_track import AudioTrack
from distributary.media.converters.containers import (
    VIDEO_CONTAINERS,
    Container,
    available,
    bits_per_second,
)
from distributary.media.converters.streams import (
    BoundedOutput,
    Decoding,
    audio_stream,
    created,
    damage_as_failure,
    opened,
    video_stream,
)
from distributary.media.converters.video_info import VideoInfo, read_video_info
from distributary.media.converters.video_track import VideoTrack
from distributary.media.failure import Unconvertible
from distributary.media.formats import VIDEO_FORMATS
from distributary.media.limits import Limits

if TYPE_CHECKING:
    from av.audio.stream import AudioStream
    from av.container import OutputContainer
    from av.packet import Packet
    from av.video.stream import VideoStream

__all__ = ["Video"]

_REVISION: Final = 1
_NUMBER = re.compile(r"[1-9][0-9]{0,5}")
_WIDTHS: Final = range(16, 4097, 2)
_BITS: Final = range(32_000, 20_000_001)
# What a format without a bit rate gets; the listed formats have about as much.
_BITS_PER_PIXEL = 0.11


class Video(Converter):
    """Moving pictures and their sound in mp4, avi, flv and 3gp.

    Targets may have a `width` (an even number) and a `bitrate` (of pictures and sound
    together); without them a video keeps its width and gets a usual bit rate.
    """

    name: ClassVar[str] = "video"
    packages: ClassVar[tuple[tuple[str, str], ...]] = (("av", "video"),)
    parameters: ClassVar[Mapping[str, str]] = {
        "width": "an even number of pixels from 16 to 4,096",
        "bitrate": "32k to 20M",
    }

    @property
    def version(self) -> str:
        """Our own revision, the libraries', and the one encoder that depends on the build."""
        import av

        encoder = available(VIDEO_CONTAINERS["video/mp4"].video_encoders)
        return f"{_REVISION};av={av.__version__};{encoder}"

    def conversions(self) -> Iterator[tuple[MediaType, MediaType]]:
        """List every pair of the sixteen formats that does not enlarge."""
        return (pair for pair in permutations(VIDEO_FORMATS, 2) if self.converts(*pair))

    def converts(self, source: MediaType, target: MediaType) -> bool:
        """Whether both are containers we know, and the target a size and rate we make."""
        if source == target or not {source.essence, target.essence} <= VIDEO_CONTAINERS.keys():
            return False
        if not target.parameters.keys() <= {"width", "bitrate"}:
            return False
        width, bits = target.parameters.get("width"), target.parameters.get("bitrate")
        if bits is not None and bits_per_second(bits) not in _BITS:
            return False
        if width is not None and not (_NUMBER.fullmatch(width) and int(width) in _WIDTHS):
            return False
        own = source.parameters.get("width")
        if own is None:
            return True
        return _NUMBER.fullmatch(own) is not None and (width is None or int(width) <= int(own))

    def convert(
        self, content: bytes, source: MediaType, target: MediaType, limits: Limits
    ) -> bytes:
        """Return the video in another container, width or bit rate."""
        reader, writer = VIDEO_CONTAINERS[source.essence], VIDEO_CONTAINERS[target.essence]
        info = read_video_info(content, reader, limits)
        width, height = _size(info, target)
        bits = bits_per_second(target.parameters.get("bitrate", ""))
        if bits is None:
            usual = width * height * min(info.average_rate, 60) * _BITS_PER_PIXEL
            bits = min(max(round(usual), _BITS[0]), _BITS[-1])
        output = BoundedOutput(limits.output_bytes)
        with damage_as_failure(), created(output, writer) as made:
            _transcode(content, reader, made, writer, info, width, height, bits, limits)
        return output.getvalue()


def _transcode(
    content: bytes,
    reader: Container,
    made: OutputContainer,
    writer: Container,
    info: VideoInfo,
    width: int,
    height: int,
    bits: int,
    limits: Limits,
) -> None:
    audio_bits = min(max(bits // 5, 16_000), 96_000) if info.sample_rate else 0
    video_track = VideoTrack(
        made, writer, info, width=width, height=height, bits=max(bits - audio_bits, 8_000)
    )
    audio_track = _audio_track(made, writer, info, audio_bits) if info.sample_rate else None
    decoding = Decoding()
    with opened(content, reader) as source:
        video, audio = video_stream(source, limits), audio_stream(source)
        for packet in source.demux([stream for stream in (video, audio) if stream is not None]):
            # The last packets, which empty the decoders, know their stream but not its index.
            if packet.stream.index == video.index:
                for frame in decoding.video(cast("Packet[VideoStream]", packet)):
                    video_track.take(frame)
            elif audio_track is not None:
                for stretch in decoding.audio(cast("Packet[AudioStream]", packet)):
                    audio_track.take(stretch)
    decoding.check()
    video_track.finish()
    if audio_track is not None:
        audio_track.finish()


def _audio_track(
    made: OutputContainer, writer: Container, info: VideoInfo, bits: int
) -> AudioTrack:
    """Return a track for sound that makes the best of few bits: fewer channels, then samples."""
    channel_count = min(info.channel_count, writer.channels_max, 1 if bits < 64_000 else 2)
    rate = min(info.sample_rate, 22_050 if bits < 32_000 else 48_000)
    return AudioTrack(
        made,
        writer,
        rate=writer.sample_rate(rate),
        channel_count=channel_count,
        bits=bits,
        start=info.start,
        seconds_max=info.tick_count / info.rate if info.ends_together else None,
        # Sound that claims to come later than any packet did is not waited for in silence.
        samples_max=math.ceil((info.seconds + 1) * info.sample_rate),
    )


def _size(info: VideoInfo, target: MediaType) -> tuple[int, int]:
    """Return width and height of the result, even numbers and no larger than the source."""
    asked = target.parameters.get("width")
    width = info.width // 2 * 2 if asked is None else int(asked)
    if width > info.width or min(info.width, info.height) < 2:
        raise Unconvertible(
            "enlarges", f"it is {info.width} pixels wide and {info.height} pixels high"
        )
    height = round(width * info.height / info.width / 2) * 2
    return width, max(2, min(height, info.height // 2 * 2))
