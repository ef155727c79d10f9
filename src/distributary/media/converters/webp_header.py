"""How large a WebP picture says it is."""

from __future__ import annotations

from distributary.media.failure import Unconvertible

__all__ = ["webp_size"]


def webp_size(content: bytes) -> tuple[int, int]:
    """Return the width and height of the canvas, from the first thirty bytes.

    The three kinds of WebP (with extensions, lossless and lossy) each write them in their
    own way: RFC 9649, sections 2.7, 3.4, and RFC 6386, section 9.1.
    """
    kind, body = content[12:16], content[20:30]
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP" and len(body) == 10:
        if kind == b"VP8X":
            return 1 + _little(body[4:7]), 1 + _little(body[7:10])
        if kind == b"VP8L" and body[0] == 0x2F:
            bits = _little(body[1:5])
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        if kind == b"VP8 " and body[3:6] == b"\x9d\x01\x2a":
            return _little(body[6:8]) & 0x3FFF, _little(body[8:10]) & 0x3FFF
    raise Unconvertible("damaged", "it does not begin as a WebP picture does")


def _little(body: bytes) -> int:
    return int.from_bytes(body, "little")
