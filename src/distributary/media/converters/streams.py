"""Reading containers that may be anything: opening, choosing streams, decoding packets.

Nothing here opens a file or a connection. Content is read from memory, in the container
that its format names, and references to other files are not followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from distributary.media.converters.containers import Container
from distributary.media.failure import Unconvertible
from distributary.media.limits import Limits

if TYPE_CHECKING:
    from av.audio.frame import AudioFrame
    from av.audio.stream import AudioStream
    from av.container import InputContainer, OutputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

__all__ = [
    "BoundedOutput",
    "Decoding",
    "audio_stream",
    "check_pixels",
    "created",
    "damage_as_failure",
    "opened",
    "video_stream",
]

_Frame = TypeVar("_Frame")

_STREAMS_MAX = 32
# A player shows a file of which one packet in twenty cannot be read; beyond that it is not
# the same content any more.
_SPOILED_ONE_IN = 20


@contextmanager
def damage_as_failure() -> Iterator[None]:
    """Turn what FFmpeg says about content into a failure, and leave memory errors alone."""
    import av

    try:
        yield
    except av.FFmpegError as error:
        if isinstance(error, MemoryError):
            raise
        reason = f"it cannot be read: {error.strerror or type(error).__name__}"
        raise Unconvertible("damaged", reason) from error


@contextmanager
def opened(content: bytes, container: Container) -> Iterator[InputContainer]:
    """Open content that claims to be in a container."""
    import av

    if not content:
        raise Unconvertible("damaged", "it is empty")
    if not container.recognises(content):
        raise Unconvertible("damaged", f"it is not {container.reader}, whatever its format says")
    options = {
        "protocol_whitelist": "none",
        "format_whitelist": container.reader,
        "threads": "1",
    }
    if container.reader in ("mp4", "3gp"):
        # The reader of this family goes by all its names at once.
        options["format_whitelist"] = "mov,mp4,m4a,3gp,3g2,mj2"
        options |= {"enable_drefs": "0", "use_absolute_path": "0"}
    with av.open(
        BytesIO(content),
        "r",
        format=container.reader,
        options=options,
        metadata_errors="replace",
    ) as source:
        if len(source.streams) > _STREAMS_MAX:
            raise Unconvertible("damaged", f"it has {len(source.streams):,} streams")
        yield source


class BoundedOutput(BytesIO):
    """A file in memory that refuses to grow beyond a size.

    Muxers write as they go, so a result that grows too large stops the conversion while it
    runs, not after it has filled the memory.
    """

    def __init__(self, bytes_max: int) -> None:
        super().__init__()
        self._bytes_max = bytes_max

    def write(self, buffer: Any, /) -> int:
        """Write at the current position, or refuse."""
        if self.tell() + len(buffer) > self._bytes_max:
            raise Unconvertible("output", f"the result is larger than {self._bytes_max:,} bytes")
        return super().write(buffer)


@contextmanager
def created(output: BinaryIO, container: Container) -> Iterator[OutputContainer]:
    """Begin a container; it is complete when the context ends."""
    import av

    # Without dates, names of libraries and the like, so that results can be compared.
    made = av.open(output, "w", format=container.writer, container_options={"fflags": "+bitexact"})
    try:
        yield made
    except Exception:
        # What stopped us is the reason, not that an unfinished file cannot be finished.
        with suppress(Exception):
            made.close()
        raise
    made.close()


def video_stream(source: InputContainer, limits: Limits) -> VideoStream:
    """Return the stream of moving pictures, ready to be decoded."""
    import av

    for stream in source.streams.video:
        if av.stream.Disposition.attached_pic in stream.disposition:
            continue
        _make_ready(stream)
        context = stream.codec_context
        pixels = max(context.width * context.height, context.coded_width * context.coded_height)
        check_pixels(pixels, limits)
        # Should frames turn out larger than the header says, the decoder does not make room
        # for them. It rounds sizes up before it compares them.
        context.options = {**context.options, "max_pixels": str(2 * pixels + (1 << 20))}
        return stream
    raise Unconvertible("damaged", "it has no moving pictures")


def check_pixels(pixel_count: int, limits: Limits) -> None:
    """Refuse frames that are larger than they may be."""
    if pixel_count > limits.pixels:
        raise Unconvertible(
            "pixels", f"a frame has {pixel_count:,} pixels, more than {limits.pixels:,}"
        )


def audio_stream(source: InputContainer) -> AudioStream | None:
    """Return the first stream of sound, ready to be decoded, if there is one."""
    for stream in source.streams.audio:
        _make_ready(stream)
        return stream
    return None


class Decoding:
    """Decodes packets, and knows how many of them could not be."""

    def __init__(self) -> None:
        self._packet_count = 0
        self._spoiled_count = 0

    def video(self, packet: Packet[VideoStream]) -> list[VideoFrame]:
        """Return the frames that a packet completes."""
        return self._decoded(packet.decode)

    def audio(self, packet: Packet[AudioStream]) -> list[AudioFrame]:
        """Return the sound in a packet."""
        return self._decoded(packet.decode)

    def _decoded(self, decode: Callable[[], list[_Frame]]) -> list[_Frame]:
        import av

        self._packet_count += 1
        try:
            return decode()
        except av.error.InvalidDataError:
            self._spoiled_count += 1
            return []

    def check(self) -> None:
        """Refuse content of which too much was unreadable."""
        if self._spoiled_count * _SPOILED_ONE_IN > self._packet_count:
            raise Unconvertible(
                "damaged",
                f"{self._spoiled_count:,} of its {self._packet_count:,} packets cannot be decoded",
            )


def _make_ready(stream: VideoStream | AudioStream) -> None:
    # A stream in a codec that FFmpeg does not know has no context, whatever the hints say.
    context: object = stream.codec_context
    if context is None:
        raise Unconvertible("damaged", f"its {stream.type} is in a codec that is not known here")
    # A worker is one core; and decoding in one thread gives the same frames every time.
    stream.codec_context.thread_count = 1
