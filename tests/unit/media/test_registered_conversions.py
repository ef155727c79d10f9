"""Every conversion that is listed, done in a worker and checked by somebody else.

Those of video are checked where frames are counted, in `test_video_conversions`.
"""

from __future__ import annotations

import io
import wave
from collections import Counter

import av
import numpy as np
import pytest
from PIL import Image
from tests.tiny_media import pdf_bytes, tiny
from tests.video_files import clip

from distributary.content.media_type import MediaType
from distributary.media.pool import Pool
from distributary.media.registry import Conversion, installed

COUNTS = {
    "pdf-to-image": 12,
    "pdf-to-text": 1,
    "images": 114,
    "html-to-text": 1,
    "plain-text": 2,
    "text-encoding": 12,
    "text-to-speech": 1,
    "audio": 28,
    "video": 144,
    "video-still": 16,
}
PILLOW_NAMES = {
    "image/jpeg": "JPEG",
    "image/png": "PNG",
    "image/webp": "WEBP",
    "image/gif": "GIF",
}
SENTENCE = "1. Bridge closed."
FILMS = {
    "video/mp4": ("mp4", "libx264", "aac"),
    "video/x-msvideo": ("avi", "mpeg4", "libmp3lame"),
    "video/x-flv": ("flv", "flv", "libmp3lame"),
    "video/3gpp": ("3gp", "mpeg4", "aac"),
}
# Flat, so that a picture of 2,560 pixels a line has few of them in all.
FLATNESS = 80


def shades(width: int) -> Image.Image:
    """Return a picture that is darker to the right."""
    across = np.linspace(255, 0, width).astype(np.uint8)
    return Image.fromarray(np.tile(across, (width // FLATNESS, 1))).convert("RGB")


def source_content(source: MediaType) -> bytes:
    if source.essence == "application/pdf":
        drawing = f"0.5 g 0 0 {FLATNESS} 1 re f 0 g BT /F1 0.8 Tf 2 0.1 Td ({SENTENCE}) Tj ET"
        return pdf_bytes(
            [
                b"<< /Type /Catalog /Pages 2 0 R >>",
                b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
                b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /MediaBox [0 0 %d 1] "
                b"/Resources << /Font << /F1 5 0 R >> >> >>" % FLATNESS,
                b"<< /Length %d >>\nstream\n%b\nendstream" % (len(drawing), drawing.encode()),
                b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            ]
        )
    if source.type == "image":
        file = io.BytesIO()
        shades(int(source.parameters["width"])).save(file, PILLOW_NAMES[source.essence])
        return file.getvalue()
    if source.essence == "text/html":
        return f"<!doctype html><title>x</title><p>{SENTENCE}</p>".encode()
    if source.essence in ("application/json", "application/xml"):
        return SENTENCE.encode()
    if source.type == "video":
        return film(source)
    if source.type == "text":
        return SENTENCE.encode(source.parameters["charset"])
    return tiny(source.essence)


def film(source: MediaType) -> bytes:
    """Return a film of that width and a third of a second, which is darker to the right."""
    container, codec, sound = FILMS[source.essence]
    width = int(source.parameters["width"])
    return clip(container, codec=codec, sound_codec=sound, size=(width, width // 8), frames=8)


def check(made: bytes, conversion: Conversion, content: bytes) -> None:
    target = MediaType.parse(conversion.target)
    if target.type == "image":
        check_picture(made, conversion)
    elif target.type == "text":
        assert made.decode(target.parameters["charset"]).strip() == SENTENCE
    elif conversion.converter == "text-to-speech":
        with wave.open(io.BytesIO(made)) as file:
            assert 0.5 < file.getnframes() / file.getframerate() < 5
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768
        assert np.sqrt(np.mean(samples**2)) > 0.02
    else:
        (rate, before), (other_rate, after) = heard(content), heard(made)
        # Opus is always played at one rate.
        opus = "audio/ogg" in (conversion.source, conversion.target)
        assert rate == other_rate or opus
        # One frame of the codec with the longest, and one more in a video.
        frames = 2 if conversion.source.startswith("video/") else 1
        assert abs(len(before) / rate - len(after) / other_rate) <= frames * 1152 / rate
        assert np.sqrt(np.mean(after**2)) == pytest.approx(np.sqrt(np.mean(before**2)), rel=0.15)


def check_picture(made: bytes, conversion: Conversion) -> None:
    target = MediaType.parse(conversion.target)
    width = int(target.parameters["width"])
    with Image.open(io.BytesIO(made)) as picture:
        assert picture.format == PILLOW_NAMES[target.essence]
        flatness = 8 if conversion.converter == "video-still" else FLATNESS
        assert picture.size == (width, width // flatness)
        pixels = np.asarray(picture.convert("L"), float)
    if conversion.converter == "images":
        expected = np.linspace(255, 0, width)
        assert np.abs(pixels.mean(axis=0) - expected).mean() < 4
    elif conversion.converter == "video-still":
        assert pixels[:, :8].mean() > 120 > 90 > pixels[:, -8:].mean()
    else:
        assert 60 < pixels.mean() < 135
        assert pixels.min() < 110 < pixels.max()


def heard(content: bytes) -> tuple[int, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    """Return the rate and the samples of the first channel."""
    with av.open(io.BytesIO(content), "r") as container:
        stream = container.streams.audio[0]
        resampler = av.AudioResampler(format="fltp", layout="mono")
        parts = [
            part.to_ndarray()[0]
            for frame in container.decode(stream)
            for part in resampler.resample(frame)
        ]
        return stream.codec_context.sample_rate, np.concatenate(parts).astype(float)


def test_there_are_as_many_as_the_families_have() -> None:
    counts = Counter(item.converter for item in installed().conversions)
    assert {name: counts[name] for name in COUNTS} == COUNTS


def test_every_listed_conversion_gives_what_it_promises() -> None:
    checked = [
        item
        for item in installed().conversions
        if item.converter in COUNTS and item.converter != "video"
    ]
    contents = {name: source_content(MediaType.parse(name)) for name in {i.source for i in checked}}
    with Pool(2) as pool:
        futures = [pool.submit(contents[item.source], item.source, item.target) for item in checked]
        for item, future in zip(checked, futures, strict=True):
            check(future.result(120).content, item, contents[item.source])
