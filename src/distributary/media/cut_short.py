"""Whether content was cut short: most formats say how long they are, or how they end.

Asked when content could not be converted. A download that broke off is the usual reason, and the
one that its owner can do something about.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Final

from distributary.content.media_type import MediaType

__all__ = ["is_cut_short", "with_length"]

# A file of empty pieces alone must not keep us.
_PIECES_MAX = 100_000
_PDF_END_BYTES = 2048
_JPEG_END = re.compile(rb"\xff\xd9")
_UNKNOWN_SIZES = (0, 0xFFFF_FFFF)


def with_length(reason: str, content: bytes, source: MediaType) -> str:
    """Return a reason for damage, and that the content is empty or was cut short if it was."""
    if not content:
        return "it is empty"
    if reason.startswith("it is cut short") or not is_cut_short(content, source):
        return reason
    return f"it is cut short: {reason}"


def is_cut_short(content: bytes, source: MediaType) -> bool:
    """Whether content that begins like its type ends before it should."""
    ends = _ENDS.get(source.essence)
    try:
        return ends is not None and not ends(content)
    except struct.error:
        # The end came inside of a number.
        return True


def _png_ends(content: bytes) -> bool:
    if not content.startswith(b"\x89PNG\r\n\x1a\n"):
        return not b"\x89PNG\r\n\x1a\n".startswith(content)
    place = 8
    for _ in range(_PIECES_MAX):
        size, kind = struct.unpack_from(">I4s", content, place)
        place += 12 + size
        if place > len(content):
            return False
        if kind == b"IEND":
            return True
    return True


def _jpeg_ends(content: bytes) -> bool:
    return not content.startswith(b"\xff\xd8") or _JPEG_END.search(content) is not None


def _gif_ends(content: bytes) -> bool:
    """Whether all its blocks are there; the last is a semicolon, which some leave out."""
    if not content.startswith(b"GIF8"):
        return not b"GIF8".startswith(content)
    (flags,) = struct.unpack_from("B", content, 10)
    place = 13 + _palette_bytes(flags)
    for _ in range(_PIECES_MAX):
        (kind,) = struct.unpack_from("B", content, place)
        if kind == 0x2C:
            (flags,) = struct.unpack_from("B", content, place + 9)
            place += 10 + _palette_bytes(flags) + 1
        elif kind == 0x21:
            place += 2
        else:
            return True
        size = 1
        while size:
            (size,) = struct.unpack_from("B", content, place)
            place += 1 + size
    return True


def _palette_bytes(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _riff_ends(content: bytes) -> bool:
    size: int = struct.unpack_from("<I", content, 4)[0]
    return content[:4] != b"RIFF" or size in _UNKNOWN_SIZES or 8 + size <= len(content)


def _boxes_end(content: bytes) -> bool:
    """Whether the last box of the ISO media family is there in full."""
    place = 0
    for _ in range(_PIECES_MAX):
        if place == len(content):
            return True
        size, kind = struct.unpack_from(">I4s", content, place)
        if not kind.isascii() or size in (0, *range(2, 8)):
            return True
        if size == 1:
            (size,) = struct.unpack_from(">Q", content, place + 8)
        place += max(size, 8)
        if place > len(content):
            return False
    return True


def _ogg_ends(content: bytes) -> bool:
    """Whether the last page is there in full."""
    place = content.rfind(b"OggS")
    if place < 0:
        return not b"OggS".startswith(content)
    segments: int = struct.unpack_from("B", content, place + 26)[0]
    sizes = content[place + 27 : place + 27 + segments]
    return len(sizes) == segments and place + 27 + segments + sum(sizes) <= len(content)


def _pdf_ends(content: bytes) -> bool:
    return b"%%EOF" in content[-_PDF_END_BYTES:] or b"%PDF-" not in content[:_PDF_END_BYTES]


_ENDS: Final[dict[str, Callable[[bytes], bool]]] = {
    "image/png": _png_ends,
    "image/jpeg": _jpeg_ends,
    "image/gif": _gif_ends,
    "image/webp": _riff_ends,
    "audio/wav": _riff_ends,
    "audio/ogg": _ogg_ends,
    "video/x-msvideo": _riff_ends,
    "video/mp4": _boxes_end,
    "video/3gpp": _boxes_end,
    "application/pdf": _pdf_ends,
}
