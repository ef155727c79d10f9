"""What headers say about length.

FFmpeg believes the tables of a file more than its headers, and sometimes the file's size
more than either. A claim is read for itself, so that one beyond the limits is refused at
once, and content that was cut off is known from what it should have been.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from distributary.media.converters.containers import Container

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.stream import Stream

__all__ = ["header_seconds"]

# A file of empty boxes alone must not keep us.
_BOXES_MAX = 10_000
_UNKNOWN: Final = {4: 0xFFFF_FFFF, 8: 0xFFFF_FFFF_FFFF_FFFF}


def header_seconds(
    content: bytes, container: Container, source: InputContainer, stream: Stream
) -> Fraction:
    """Return the longest time that any header claims; 0 if none does."""
    import av

    whole = Fraction(source.duration or 0, av.time_base)
    own = (stream.duration or 0) * (stream.time_base or Fraction(0))
    try:
        said = _READERS.get(container.reader, _says_nothing)(content)
    except (struct.error, ZeroDivisionError):
        # A header that ends early or counts in no unit claims nothing.
        said = Fraction(0)
    return max(whole, own, said, Fraction(0))


def _says_nothing(_content: bytes) -> Fraction:
    return Fraction(0)


def _movie_seconds(content: bytes) -> Fraction:
    """Return what the movie header of the ISO media family says."""
    for name, begin, end in _boxes(content, 0, len(content)):
        if name == b"moov":
            for inner, body, _ in _boxes(content, begin, end):
                if inner == b"mvhd":
                    # Two dates come first; in version 1 they and the length are twice as wide.
                    wide = content[body] == 1
                    unit, length = struct.unpack_from(
                        ">IQ" if wide else ">II", content, body + (20 if wide else 12)
                    )
                    unknown = length == _UNKNOWN[8 if wide else 4]
                    return Fraction(0) if unknown else Fraction(length, unit)
    return Fraction(0)


def _boxes(content: bytes, begin: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield the name of each box, and where its body begins and ends."""
    for _ in range(_BOXES_MAX):
        if begin + 8 > end:
            return
        size, name = struct.unpack_from(">I4s", content, begin)
        body = begin + 8
        if size == 1:
            (size,) = struct.unpack_from(">Q", content, body)
            body += 8
        over = end if size == 0 else begin + size
        if over < body:
            return
        yield name, body, min(over, end)
        begin = over


def _avi_seconds(content: bytes) -> Fraction:
    """Return what the main header of an avi file says, which is always its first."""
    if content[24:28] != b"avih":
        return Fraction(0)
    (microseconds,) = struct.unpack_from("<I", content, 32)
    (frames,) = struct.unpack_from("<I", content, 48)
    return Fraction(microseconds * frames, 1_000_000)


def _wav_seconds(content: bytes) -> Fraction:
    """Return what the sizes of a wav file say; one that was written to a pipe has none."""
    place, bytes_per_second = 12, 0
    for _ in range(_BOXES_MAX):
        name, size = struct.unpack_from("<4sI", content, place)
        if name == b"fmt ":
            (bytes_per_second,) = struct.unpack_from("<I", content, place + 16)
        elif name == b"data":
            return Fraction(0 if size == _UNKNOWN[4] else size, bytes_per_second)
        place += 8 + size + size % 2
    return Fraction(0)


_READERS: Final[dict[str, Callable[[bytes], Fraction]]] = {
    "mp4": _movie_seconds,
    "3gp": _movie_seconds,
    "avi": _avi_seconds,
    "wav": _wav_seconds,
}
