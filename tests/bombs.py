"""Small files that ask for more than anybody has: time, memory, pixels, pages, hours.

Each bomb takes a generator of numbers, so that no two runs of one are the same file, and
says what it is of. Those that the specification names come first.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from functools import lru_cache

import av
import numpy as np
from PIL import Image
from tests.tiny_media import pdf_bytes, tiny

__all__ = ["BOMBS", "Bomb", "deflated"]

Bomb = Callable[[np.random.Generator], bytes]

_MEBIBYTE = 1 << 20


def _ogg_row(byte: int) -> int:
    row = byte << 24
    for _ in range(8):
        row = row << 1 ^ (0x04C1_1DB7 if row & 0x8000_0000 else 0)
    return row & 0xFFFF_FFFF


_OGG_TABLE = [_ogg_row(byte) for byte in range(256)]


def deflated(block: bytes, times: int) -> bytes:
    """Return the zlib stream of a block repeated, without ever holding what it unpacks to."""
    packer = zlib.compressobj(9, wbits=-15)
    portion = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    # The checksum of a repeated block follows from that of one block.
    low, high = 1, 0
    once = zlib.adler32(block, 0)
    for _ in range(times):
        high = (high + low * len(block) + (once >> 16)) % 65_521
        low = (low + (once & 0xFFFF)) % 65_521
    return b"\x78\xda" + portion * times + b"\x03\x00" + struct.pack(">I", high << 16 | low)


def _stream(content: bytes, entries: bytes = b"") -> bytes:
    return b"<< %b /Length %d >>\nstream\n%b\nendstream" % (entries, len(content), content)


def _page_pdf(
    page: bytes = b"/MediaBox [0 0 300 400]",
    content: bytes | None = None,
    *,
    pages: bytes = b"/Kids [3 0 R] /Count 1",
    more: tuple[bytes, ...] = (),
) -> bytes:
    """Return a PDF whose fourth object is the page's content, and the fifth its font."""
    return pdf_bytes(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages %b >>" % pages,
            b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R %b /Resources "
            b"<< /Font << /F1 5 0 R >> /XObject << /X0 6 0 R >> >> >>" % page,
            content or _stream(b"BT /F1 20 Tf 20 300 Td (1. Enormous) Tj ET 0 0 m 300 400 l S"),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            *(more or (_stream(b"", b"/Type /XObject /Subtype /Form /BBox [0 0 9 9]"),)),
        ]
    )


def pdf_of_enormous_pages(rng: np.random.Generator) -> bytes:
    box = rng.choice(
        ["14400 14400", "1e9 1e9", "1 1e7", "1e7 1", "2147483647 2147483647", "14400 0.001"]
    )
    unit = rng.choice(["1", "75000", "1e30"])
    return _page_pdf(f"/MediaBox [0 0 {box}] /UserUnit {unit}".encode())


def pdf_of_countless_pages(rng: np.random.Generator) -> bytes:
    kids = b"3 0 R " * int(rng.integers(1_000, 100_000))
    count = rng.choice([b"100000", b"2147483647", b"-1"])
    return _page_pdf(pages=b"/Kids [%b] /Count %b" % (kids, bytes(count)))


def pdf_of_a_flood(rng: np.random.Generator) -> bytes:
    """A page's content of gigabytes: of spaces, of lines or of text, deflated twice."""
    block = bytes(rng.choice([b" ", b"0 0 m 300 400 l S ", b"BT /F1 9 Tf (AAAAAAAA) Tj ET "]))
    once = deflated(block * (_MEBIBYTE // len(block)), int(rng.integers(1_000, 4_000)))
    content = zlib.compress(once, 9)
    return _page_pdf(content=_stream(content, b"/Filter [/FlateDecode /FlateDecode]"))


def png_of_50_000_by_50_000(rng: np.random.Generator) -> bytes:
    whole = rng.random() < 0.5
    # A bit for a pixel: each row is a byte for its filter and 6,250 for its pixels.
    pixels = deflated(bytes(6_251 * 100), 500) if whole else zlib.compress(bytes(1000))
    return _png(50_000, 50_000, 1, pixels)


def jpeg_of_50_000_by_50_000(rng: np.random.Generator) -> bytes:
    return _enlarged_jpeg(tiny("image/jpeg"), 50_000, int(rng.choice([50_000, 65_500])))


def webp_of_the_largest_size(rng: np.random.Generator) -> bytes:
    """16,383 pixels a side, in the lossy and in the lossless kind, with an alpha or not."""
    lossless = rng.random() < 0.5
    file = io.BytesIO()
    Image.new("RGB", (64, 48), (10, 200, 30)).save(file, "webp", lossless=lossless)
    content = bytearray(file.getvalue())
    if lossless:
        place = content.index(b"VP8L") + 9
        kept = int.from_bytes(content[place : place + 4], "little") >> 28
        size = 16_382 | 16_382 << 14 | kept << 28
        content[place : place + 4] = size.to_bytes(4, "little")
    else:
        place = content.index(b"\x9d\x01\x2a") + 3
        content[place : place + 4] = struct.pack("<HH", 16_383, 16_383)
    return bytes(content)


def png_of_endless_text(rng: np.random.Generator) -> bytes:
    """A chunk beside the picture that unpacks to a gigabyte, or many that are large."""
    kind = bytes(rng.choice([b"zTXt", b"iTXt", b"iCCP"]))
    packed = deflated(b"a" * _MEBIBYTE, 1024)
    body = b"note\0\1\0\0\0" + packed if kind == b"iTXt" else b"note\0\0" + packed
    plain = tiny("image/png")
    return plain[:33] + _chunk(kind, body) * int(rng.integers(1, 4)) + plain[33:]


def mp4_that_claims_hours(rng: np.random.Generator) -> bytes:
    """Frames that last for minutes each, or a duration of weeks in the headers."""
    content = bytearray(tiny("video/mp4"))
    place = content.index(b"stts") + 12
    if rng.random() < 0.7:
        delta = int(rng.integers(10**6, 2**31 - 1))
        content[place + 4 : place + 8] = struct.pack(">I", delta)
    for name, offset in ((b"mvhd", 20), (b"mdhd", 20), (b"tkhd", 24)):
        place = content.find(name)
        while place >= 0:
            content[place + offset : place + offset + 4] = struct.pack(">I", 0x7FFF_FFFF)
            place = content.find(name, place + 4)
    return bytes(content)


def wav_that_claims_4_gigabytes(rng: np.random.Generator) -> bytes:
    content = bytearray(tiny("audio/wav")[: int(rng.integers(44, 2_000))])
    content[4:8] = struct.pack("<I", 0xFFFF_FFFF)
    content[40:44] = struct.pack("<I", int(rng.choice([0xFFFF_FFFF, 0xFFFF_FFF0, 0x7FFF_FFFF])))
    if rng.random() < 0.5:
        channels, rate = int(rng.choice([1, 8, 65_535])), int(rng.choice([1, 2**31 - 1, 8_000]))
        content[22:28] = struct.pack("<HI", channels, rate)
    return bytes(content)


def pdf_of_deep_nesting(rng: np.random.Generator) -> bytes:
    depth = int(rng.integers(10_000, 500_000))
    kind = rng.choice(["array", "dictionary", "state", "parent"])
    if kind == "array":
        return _page_pdf(b"/MediaBox [0 0 300 400] /Deep " + b"[" * depth + b"]" * depth)
    if kind == "dictionary":
        return _page_pdf(b"/MediaBox [0 0 300 400] /Deep " + b"<</A" * depth + b">>" * depth)
    if kind == "state":
        return _page_pdf(content=_stream(b"q " * depth + b"0 0 m 300 400 l S " + b"Q " * depth))
    return _page_pdf(pages=b"/Kids [2 0 R 3 0 R 2 0 R] /Count 3 /Parent 2 0 R")


def pdf_that_laughs(rng: np.random.Generator) -> bytes:
    """Drawings that each draw the next ten times over, and the last the first again."""
    depth = int(rng.integers(9, 20))
    forms = tuple(
        _stream(
            b"/X Do " * 10 + b"0 0 m 9 9 l S ",
            b"/Type /XObject /Subtype /Form /BBox [0 0 300 400] /Resources "
            b"<< /XObject << /X %d 0 R >> >>" % (6 + (number + 1) % depth),
        )
        for number in range(depth)
    )
    return _page_pdf(content=_stream(b"/X0 Do"), more=forms)


def pdf_of_packed_objects(rng: np.random.Generator) -> bytes:
    """A stream of objects, and the table of where they are in it, that unpack to a gigabyte."""
    flood = deflated(b"1 0 " * (_MEBIBYTE // 4), int(rng.integers(500, 1_500)))
    objects = _stream(flood, b"/Type /ObjStm /N 100000000 /First 900000000 /Filter /FlateDecode")
    head = b"%%PDF-1.7\n1 0 obj\n%b\nendobj\n" % objects
    table = _stream(
        deflated(b"\2\0\1\0" * (_MEBIBYTE // 4), 500),
        b"/Type /XRef /Size 2000000000 /W [1 2 1] /Root 2 0 R /Filter /FlateDecode",
    )
    return head + b"3 0 obj\n%b\nendobj\nstartxref\n%d\n%%%%EOF\n" % (table, len(head))


def pdf_of_an_enormous_picture(rng: np.random.Generator) -> bytes:
    side = int(rng.choice([30_000, 60_000, 2**31 - 1]))
    picture = _stream(
        deflated(bytes(_MEBIBYTE), 1_500),
        b"/Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceRGB "
        b"/BitsPerComponent 8 /Filter /FlateDecode" % (side, side),
    )
    return _page_pdf(content=_stream(b"300 0 0 400 0 0 cm /X0 Do"), more=(picture,))


def jpeg_of_countless_scans(rng: np.random.Generator) -> bytes:
    """A progressive picture that is refined again and again, at no cost in bytes."""
    file = io.BytesIO()
    side = int(rng.integers(2_000, 3_500))
    Image.new("L", (side, side), 90).save(file, "jpeg", progressive=True)
    content = file.getvalue()
    last = content.rindex(b"\xff\xda")
    return content[:last] + content[last:-2] * 3_000 + content[-2:]


def gif_in_the_place_of_a_png(rng: np.random.Generator) -> bytes:
    """A picture of another type, of 65,535 pixels a side, that a lenient reader takes."""
    return b"GIF89a" + struct.pack("<HH", 65_535, 65_535) + bytes(rng.bytes(400))


def gif_of_the_largest_size(rng: np.random.Generator) -> bytes:
    """65,535 pixels a side: of the screen, or of a frame that is larger than the screen."""
    content = bytearray(tiny("image/gif"))
    frame = content.index(b"\x2c", 13 + 3 * (2 << (content[10] & 7)))
    places = ((6,), (frame + 5,), (6, frame + 5))[int(rng.integers(3))]
    for place in places:
        content[place : place + 4] = struct.pack("<HH", 65_535, 65_535)
    return bytes(content)


def gif_of_countless_frames(rng: np.random.Generator) -> bytes:
    """A frame of one pixel, again and again; the first is all that is asked for."""
    content = tiny("image/gif")
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x44\x01\x00"
    return content[:-1] + frame * int(rng.integers(50_000, 200_000)) + b";"


def ogg_that_claims_years(rng: np.random.Generator) -> bytes:
    """The last page says when it ends: in a number of 64 bits."""
    content = bytearray(tiny("audio/ogg"))
    place = content.rindex(b"OggS")
    end = int(rng.choice([2**62, 2**63 - 1, 48_000 * 3600 * 24 * 365, 2**40]))
    content[place + 6 : place + 14] = struct.pack("<Q", end)
    return _ogg_page_checked(content, place)


def ogg_of_countless_pages(rng: np.random.Generator) -> bytes:
    """Pages with nothing in them, or each of another stream."""
    content = tiny("audio/ogg")
    first = content[: content.index(b"OggS", 4)]
    pages = bytearray()
    for number in range(int(rng.integers(10_000, 30_000))):
        kind = 2 if rng.random() < 0.5 else 0
        page = bytearray(b"OggS\0" + bytes([kind]) + struct.pack("<QIII", 0, number + 7, number, 0))
        pages += _ogg_page_checked(page + (first[26:] if kind else b"\0"), 0)
    return content + bytes(pages)


def page_of_entities(rng: np.random.Generator) -> bytes:
    """A billion laughs, files of the machine, and addresses, in a document that refers to them."""
    laughs = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(9))
    outside = "".join(
        f'<!ENTITY o{n} SYSTEM "{address}">'
        for n, address in enumerate(("file:///etc/passwd", "http://127.0.0.1:9/", "/etc/hosts"))
    )
    kind = rng.choice(["html", "svg", "data"])
    return (
        f'<?xml version="1.0"?><!DOCTYPE {kind} [<!ENTITY l0 "ha">{laughs}{outside}]>'
        f'<{kind} xmlns:xi="http://www.w3.org/2001/XInclude"><p>&l9;&o0;&o1;&o2;</p>'
        f'<xi:include href="file:///etc/passwd" parse="text"/></{kind}>'
    ).encode()


def page_of_deep_nesting(rng: np.random.Generator) -> bytes:
    tag = str(rng.choice(["div", "ol><li", "svg", "table><tr><td", "a href='", "!--", "![CDATA["]))
    return b"<!doctype html>" + f"<{tag}>".encode() * int(rng.integers(100_000, 400_000))


def json_of_deep_nesting(rng: np.random.Generator) -> bytes:
    return b'[{"a":' * int(rng.integers(100_000, 1_000_000))


def avi_of_enormous_frames(rng: np.random.Generator) -> bytes:
    """Every picture of the film says that it is 16,000 pixels wide and more."""
    content = bytearray(_motion_jpeg())
    place = content.find(b"\xff\xc0")
    side = int(rng.choice([16_000, 30_000, 65_500]))
    while place >= 0:
        content[place + 5 : place + 9] = struct.pack(">HH", side, side)
        place = content.find(b"\xff\xc0", place + 2)
    return bytes(content)


def avi_that_claims_hours(rng: np.random.Generator) -> bytes:
    content = bytearray(tiny("video/x-msvideo"))
    header = content.index(b"avih") + 8
    content[header : header + 4] = struct.pack("<I", 0x7FFF_FFFF)
    content[header + 16 : header + 20] = struct.pack("<I", 0x7FFF_FFFF)
    stream = content.index(b"strh") + 8
    # So many units of time a second, and so many frames in all.
    content[stream + 20 : stream + 28] = struct.pack("<II", int(rng.integers(1_000, 10**9)), 1)
    content[stream + 32 : stream + 36] = struct.pack("<I", 0x7FFF_FFFF)
    return bytes(content)


def flv_that_claims_hours(rng: np.random.Generator) -> bytes:
    """Every picture comes an hour after the one before."""
    content = bytearray(tiny("video/x-flv"))
    place, number = 13, 0
    while place + 11 <= len(content):
        length = int.from_bytes(content[place + 1 : place + 4], "big")
        time_ms = number * 3_600_000 % 2**31
        content[place + 4 : place + 7] = (time_ms & 0xFF_FFFF).to_bytes(3, "big")
        content[place + 7] = time_ms >> 24
        number += int(rng.integers(0, 3))
        place += 11 + length + 4
    return bytes(content)


def mp4_of_endless_tables(rng: np.random.Generator) -> bytes:
    """A table of samples that says it has four billion rows, or one row for them all."""
    content = bytearray(tiny("video/mp4"))
    name = bytes(rng.choice([b"stts", b"stsz", b"stsc", b"stco"]))
    place = content.index(name) + (12 if name == b"stsz" else 8)
    content[place : place + 4] = struct.pack(">I", int(rng.choice([0xFFFF_FFFF, 0x0FFF_FFFF])))
    if name == b"stts":
        content[place : place + 8] = struct.pack(">II", 1, 0xFFFF_FFF0)
    return bytes(content)


def text_to_be_read_for_days(rng: np.random.Generator) -> bytes:
    word = bytes(rng.choice([b"word ", b"9", b"a", b"\xe2\x82\xac", b"1. "]))
    return word * (int(rng.integers(1, 4)) * _MEBIBYTE // len(word))


BOMBS: tuple[tuple[str, Bomb], ...] = (
    ("application/pdf", pdf_of_enormous_pages),
    ("image/png", png_of_50_000_by_50_000),
    ("video/mp4", mp4_that_claims_hours),
    ("image/jpeg", jpeg_of_50_000_by_50_000),
    ("application/pdf", pdf_of_a_flood),
    ("audio/wav", wav_that_claims_4_gigabytes),
    ("image/webp", webp_of_the_largest_size),
    ("image/png", png_of_endless_text),
    ("application/pdf", pdf_of_countless_pages),
    ("image/jpeg", jpeg_of_countless_scans),
    ("application/pdf", pdf_that_laughs),
    ("application/pdf", pdf_of_deep_nesting),
    ("application/pdf", pdf_of_packed_objects),
    ("application/pdf", pdf_of_an_enormous_picture),
    ("image/png", gif_in_the_place_of_a_png),
    ("video/x-msvideo", avi_of_enormous_frames),
    ("video/x-msvideo", avi_that_claims_hours),
    ("video/x-flv", flv_that_claims_hours),
    ("video/3gpp", mp4_of_endless_tables),
    ("text/plain", text_to_be_read_for_days),
    ("image/gif", gif_of_the_largest_size),
    ("audio/ogg", ogg_that_claims_years),
    ("text/html", page_of_entities),
    ("application/xml", page_of_entities),
    ("image/gif", gif_of_countless_frames),
    ("audio/ogg", ogg_of_countless_pages),
    ("text/html", page_of_deep_nesting),
    ("application/json", json_of_deep_nesting),
)
"""Every bomb, with the type of file that it says it is."""


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _png(width: int, height: int, depth: int, pixels: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", pixels), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in chunks)


def _enlarged_jpeg(content: bytes, width: int, height: int) -> bytes:
    place = content.index(b"\xff\xc0") + 5
    return content[:place] + struct.pack(">HH", height, width) + content[place + 4 :]


def _ogg_page_checked(content: bytearray, place: int) -> bytes:
    """Return content whose page at a place has a checksum that is right, for all to believe."""
    content[place + 22 : place + 26] = bytes(4)
    checksum = 0
    for byte in content[place:]:
        checksum = (checksum << 8 & 0xFFFF_FFFF) ^ _OGG_TABLE[checksum >> 24 ^ byte]
    content[place + 22 : place + 26] = struct.pack("<I", checksum)
    return bytes(content)


@lru_cache(maxsize=1)
def _motion_jpeg() -> bytes:
    """Return a film of three pictures, each a JPEG of its own."""
    file = io.BytesIO()
    with av.open(file, "w", format="avi") as output:
        stream = output.add_stream("mjpeg", rate=10)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuvj420p"
        for shade in (20, 120, 220):
            colours = np.full((48, 64, 3), (shade, 90, 30), dtype=np.uint8)
            frame = av.VideoFrame.from_ndarray(colours, format="rgb24")
            output.mux(stream.encode(frame.reformat(format="yuvj420p")))
        output.mux(stream.encode(None))
    return file.getvalue()
