"""Video between containers, widths and bit rates.

Frames keep their times, so that a result lasts as long as its source to within one frame;
at a constant rate it has as many frames. A result is the same bytes every time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Final, cast

from distributary.content.media_type import MediaType
from distributary.media.converter import Converter
from distributary.media.converters.bit_rates import bits_per_second
from distributary.media.converters.bounded_output import BoundedOutput
from distributary.media.converters.containers import VIDEO_CONTAINERS, Container, available
from distributary.media.converters.picture_track import PictureTrack
from distributary.media.converters.sound_track import SoundTrack
from distributary.media.converters.streams import (
    Decoding,
    created,
    damage_as_failure,
    opened,
    picture,
    sound,
)
from distributary.media.converters.survey import Survey, survey
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

    @property
    def version(self) -> str:
        """Our own revision, the libraries', and the one encoder that depends on the build."""
        import av

        encoder = available(VIDEO_CONTAINERS["video/mp4"].video_encoders)
        return f"{_REVISION};av={av.__version__};{encoder}"

    def conversions(self) -> Iterator[tuple[MediaType, MediaType]]:
        """List every pair of the sixteen formats that does not enlarge."""
        for source in VIDEO_FORMATS:
            for target in VIDEO_FORMATS:
                if self.converts(source, target):
                    yield source, target

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
        seen = survey(content, reader, limits)
        width, height = _size(seen, target)
        bits = bits_per_second(target.parameters.get("bitrate", ""))
        if bits is None:
            usual = width * height * min(seen.average_rate, 60) * _BITS_PER_PIXEL
            bits = min(max(round(usual), _BITS[0]), _BITS[-1])
        output = BoundedOutput(limits.output_bytes)
        with damage_as_failure(), created(output, writer) as made:
            _transcode(content, reader, made, writer, seen, width, height, bits, limits)
        return output.getvalue()


def _transcode(
    content: bytes,
    reader: Container,
    made: OutputContainer,
    writer: Container,
    seen: Survey,
    width: int,
    height: int,
    bits: int,
    limits: Limits,
) -> None:
    sound_bits = min(max(bits // 5, 16_000), 96_000) if seen.sound_rate else 0
    pictures = PictureTrack(
        made, writer, seen, width=width, height=height, bits=max(bits - sound_bits, 8_000)
    )
    voice = _voice(made, writer, seen, sound_bits) if seen.sound_rate else None
    decoding = Decoding()
    with opened(content, reader) as source:
        shown, heard = picture(source, limits), sound(source)
        for packet in source.demux([stream for stream in (shown, heard) if stream is not None]):
            # The last packets, which empty the decoders, know their stream but not its index.
            if packet.stream.index == shown.index:
                for frame in decoding.video(cast("Packet[VideoStream]", packet)):
                    pictures.take(frame)
            elif voice is not None:
                for stretch in decoding.audio(cast("Packet[AudioStream]", packet)):
                    voice.take(stretch)
    decoding.check()
    pictures.finish()
    if voice is not None:
        voice.finish()


def _voice(made: OutputContainer, writer: Container, seen: Survey, bits: int) -> SoundTrack:
    """Return a track for sound that makes the best of few bits: fewer channels, then samples."""
    channel_count = min(seen.channel_count, writer.channels_max, 1 if bits < 64_000 else 2)
    rate = min(seen.sound_rate, 22_050 if bits < 32_000 else 48_000)
    return SoundTrack(
        made,
        writer,
        rate=writer.sound_rate(rate),
        channel_count=channel_count,
        bits=bits,
        start=seen.start,
        seconds_max=seen.tick_count / seen.rate if seen.ends_together else None,
        # Sound that claims to come later than any packet did is not waited for in silence.
        samples_max=math.ceil((seen.seconds + 1) * seen.sound_rate),
    )


def _size(seen: Survey, target: MediaType) -> tuple[int, int]:
    """Return width and height of the result, even numbers and no larger than the source."""
    asked = target.parameters.get("width")
    width = seen.width // 2 * 2 if asked is None else int(asked)
    if width > seen.width or min(seen.width, seen.height) < 2:
        raise Unconvertible(
            "enlarges", f"it is {seen.width} pixels wide and {seen.height} pixels high"
        )
    height = round(width * seen.height / seen.width / 2) * 2
    return width, max(2, min(height, seen.height // 2 * 2))
