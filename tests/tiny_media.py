"""A small sound file of every type that can be converted, made here and in little time.

They are small so that a random place in one is likely to be a place that matters.
"""

from __future__ import annotations

import io
import math
import wave
import zlib
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import av
import numpy as np
from PIL import Image

__all__ = ["ESSENCES", "pdf_bytes", "tiny"]

ESSENCES = (
    "application/pdf",
    "image/jpeg",
    "image/png",
    "image/webp",
    "image/gif",
    "audio/wav",
    "audio/mpeg",
    "audio/aac",
    "audio/ogg",
    "video/mp4",
    "video/x-msvideo",
    "video/x-flv",
    "video/3gpp",
    "text/plain",
    "text/html",
    "application/json",
    "application/xml",
)
"""Every type of which there is a file."""

_SIDE = (200, 150)
_TEXT = (
    "1. The bridge at the mill is closed until further notice.\n"
    "2. Grüße vom Hafen: the ferry runs every hour.\n\n"
    "Everything else is as it was.\n"
)
_MARKUP = {
    "text/html": (
        "<!DOCTYPE html>\n<html><head><title>Notice</title></head><body>\n<h1>Grüße</h1>\n"
        "<ol><li>The bridge at the mill is closed.</li><li>The ferry runs.</li></ol></body></html>"
    ),
    "application/json": '{"gauge": "Mühle", "levels": [4.25, 4.5, -1e3], "open": false}\n',
    "application/xml": (
        '<?xml version="1.0" encoding="utf-8"?>\n<levels gauge="Mühle"><at>4.25</at></levels>\n'
    ),
}
_SOUND = {
    "audio/mpeg": ("mp3", "libmp3lame", 22_050),
    "audio/aac": ("adts", "aac", 22_050),
    "audio/ogg": ("ogg", "libopus", 24_000),
}
_VIDEO = {
    "video/mp4": ("mp4", "libx264", "aac"),
    "video/x-msvideo": ("avi", "mpeg4", "libmp3lame"),
    "video/x-flv": ("flv", "flv", "libmp3lame"),
    "video/3gpp": ("3gp", "mpeg4", "aac"),
}


@cache
def tiny(essence: str) -> bytes:
    """Return the small file of a type."""
    if essence == "application/pdf":
        return _pdf()
    if essence in _MARKUP:
        return _MARKUP[essence].encode()
    if essence in ("image/jpeg", "image/png", "image/webp", "image/gif"):
        file = io.BytesIO()
        Image.fromarray(_colours(0)).save(file, essence.removeprefix("image/"))
        return file.getvalue()
    if essence == "audio/wav":
        file = io.BytesIO()
        with wave.open(file, "wb") as output:
            output.setparams((1, 2, 8000, 0, "NONE", "NONE"))
            output.writeframes(_tone(8000).tobytes())
        return file.getvalue()
    if essence in _SOUND:
        container, codec, rate = _SOUND[essence]
        return _muxed(container, None, codec, rate)
    if essence in _VIDEO:
        return _muxed(*_VIDEO[essence])
    assert essence == "text/plain"
    return _TEXT.encode()


def pdf_bytes(objects: Sequence[bytes]) -> bytes:
    """Return a PDF of these objects; the first is its catalogue.

    They are numbered from 1, in order, and a reference to the third is `3 0 R`.
    """
    content = bytearray(b"%PDF-1.7\n")
    places = []
    for number, item in enumerate(objects, 1):
        places.append(len(content))
        content += b"%d 0 obj\n%b\nendobj\n" % (number, item)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return bytes(content) + (
        b"xref\n0 %d\n0000000000 65535 f \n%btrailer\n<< /Size %d /Root 1 0 R >>\n"
        b"startxref\n%d\n%%%%EOF\n" % (len(places) + 1, table, len(places) + 1, len(content))
    )


def _pdf() -> bytes:
    drawing = b"".join(b"%d %d m %d %d l S " % (10 * x, 20, 300 - 10 * x, 380) for x in range(20))
    lines = b"".join(b"(%b) Tj T* " % line.encode("latin-1") for line in _TEXT.splitlines())
    page = zlib.compress(drawing + b"BT /F1 9 Tf 11 TL 20 360 Td " + lines + b"ET")
    return pdf_bytes(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R 3 0 R] /Count 2 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 400] /Contents 4 0 R "
            b"/Resources << /Font << /F1 5 0 R >> >> >>",
            b"<< /Length %d /Filter /FlateDecode >>\nstream\n%b\nendstream" % (len(page), page),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        ]
    )


def _colours(shift: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    width, height = _SIDE
    down, across = np.mgrid[0:height, 0:width]
    colours = np.stack([across + shift, 2 * down, across * down // 50 + 3 * shift], axis=-1) % 256
    return colours.astype(np.uint8)


def _tone(rate: int) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    """Return one second of a tone."""
    return (8000 * np.sin(2 * math.pi * 440 * np.arange(rate) / rate)).astype(np.int16)


def _muxed(container: str, video_codec: str | None, audio_codec: str, rate: int = 22_050) -> bytes:
    """Return a second of a tone, and of ten moving pictures if there is a codec for them."""
    file = io.BytesIO()
    with av.open(file, "w", format=container) as output:
        picture: av.VideoStream | None = None
        if video_codec is not None:
            stream = output.add_stream(video_codec, rate=10)
            assert isinstance(stream, av.VideoStream)
            picture = stream
            picture.width, picture.height = _SIDE
            picture.pix_fmt = "yuv420p"
            picture.bit_rate = 100_000
        sound = output.add_stream(audio_codec, rate=rate)
        assert isinstance(sound, av.AudioStream)
        sound.layout = "mono"
        sound.bit_rate = 32_000
        resampler = av.AudioResampler(
            format=sound.format.name, layout="mono", rate=rate, frame_size=None
        )
        heard = av.AudioFrame.from_ndarray(_tone(rate)[None, :], format="s16", layout="mono")
        heard.sample_rate = rate
        heard.pts = 0
        heard.time_base = Fraction(1, rate)
        if picture is not None:
            for number in range(10):
                seen = av.VideoFrame.from_ndarray(_colours(5 * number), format="rgb24")
                seen = seen.reformat(format="yuv420p")
                seen.pts = number
                seen.time_base = Fraction(1, 10)
                output.mux(picture.encode(seen))
            output.mux(picture.encode(None))
        fifo = av.AudioFifo()
        for frame in (*resampler.resample(heard), *resampler.resample(None)):
            fifo.write(frame)
        size = sound.codec_context.frame_size or 1024
        while (portion := fifo.read(size)) is not None:
            output.mux(sound.encode(portion))
        output.mux(sound.encode(None))
    return file.getvalue()
