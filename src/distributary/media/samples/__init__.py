"""Sample content to try conversions on: one imaginary country in a flood.

The files beside this module were drawn by `examples/sample_content`, which draws other
countries too. Here they are cut to the size that is asked for. A seed other than 0 stamps
"Exercise SEED" on whatever can be read or seen, so that no two seeds give the same content.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from distributary.errors import BadInput, MissingPackage
from distributary.media.samples.tone import tone_wav

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["clip_mp4", "map_pdf", "notice_text", "photo_gif", "photo_jpeg", "tone_wav"]

_MAP_PAGES, _MAP_PAGES_MAX = 4, 200
_CLIP_SECONDS, _CLIP_SECONDS_MAX, _CLIP_SIZE = 5, 600, (640, 480)
_CLIP_VIDEO_BITS, _CLIP_AUDIO_BITS = 1_000_000, 96_000
_PHOTO_WIDTH, _PHOTO_WIDTH_MIN = 2560, 64

# PDFium draws a new identifier whenever it writes a document.
_PDF_DATE = re.compile(rb"/CreationDate\(D:[^)]*\)")
_PDF_IDENTIFIER = re.compile(rb"/ID\[<[0-9A-F]{32}><[0-9A-F]{32}>\]")


def map_pdf(pages: int = _MAP_PAGES, seed: int = 0) -> bytes:
    """Return an annotated map for an emergency, as a PDF.

    It has from 2 (the map and its descriptions) to 200 pages; after the fourth, the map begins
    again. The file grows by about a quarter of a megabyte with each. The seed numbers the
    exercise.
    """
    if not 2 <= pages <= _MAP_PAGES_MAX:
        raise BadInput("pages", f"must be from 2 to {_MAP_PAGES_MAX}, not {pages}")
    whole = _shipped("map.pdf")
    if pages == _MAP_PAGES and not seed:
        return whole
    with _needing("pypdfium2", extra="media", purpose="cutting the sample map"):
        import pypdfium2
    original, document = pypdfium2.PdfDocument(whole), pypdfium2.PdfDocument.new()
    # Every round of its own: pages that come twice in one would share their pictures, and
    # a long document would be no larger than a short one.
    for begin in range(0, pages, _MAP_PAGES):
        document.import_pages(original, range(min(_MAP_PAGES, pages - begin)))
    if seed:
        _stamp_page(document, seed)
    written = BytesIO()
    document.save(written)
    document.close()
    original.close()
    # PDFium writes the time and an identifier made of it; the same call gives the same bytes.
    dated = _PDF_DATE.sub(lambda date: re.sub(rb"[0-9]", b"0", date[0]), written.getvalue())
    found = _PDF_IDENTIFIER.sub(b"", dated)
    identifier = hashlib.md5(found, usedforsecurity=False).hexdigest().upper().encode()
    return _PDF_IDENTIFIER.sub(b"/ID[<%b><%b>]" % (identifier, identifier), dated)


def clip_mp4(
    seconds: float = _CLIP_SECONDS,
    width: int = _CLIP_SIZE[0],
    height: int = _CLIP_SIZE[1],
    seed: int = 0,
) -> bytes:
    """Return a flight over the same country with sound: H.264 and AAC, in MP4.

    The picture carries a running time code. At every full second a beep sounds and the
    marker turns white, so that sound and picture that drift apart show it.

    It takes at most 600 seconds; after the fifth, the flight begins again. The file grows by
    about 140 kB with each. A frame is even in width and height, from 64 pixels to 640 and to 480.
    The seed numbers the exercise.
    """
    if not 0 < seconds <= _CLIP_SECONDS_MAX:
        raise BadInput(
            "seconds", f"must be more than 0 and at most {_CLIP_SECONDS_MAX}, not {seconds}"
        )
    for name, size, size_max in (("width", width, 640), ("height", height, 480)):
        if not 64 <= size <= size_max or size % 2:
            raise BadInput(name, f"must be an even number from 64 to {size_max}, not {size}")
    whole = _shipped("clip.mp4")
    if (seconds, (width, height), seed) == (_CLIP_SECONDS, _CLIP_SIZE, 0):
        return whole
    with _needing("av", extra="video", purpose="cutting the sample video"):
        import av
    with _needing("pillow", extra="media", purpose="cutting the sample video"):
        import PIL.Image
    output = BytesIO()
    with av.open(BytesIO(whole), "r") as source, av.open(output, "w", format="mp4") as made:
        pictures, sound = source.streams.video[0], source.streams.audio[0]
        # Without the macroblock tree x264 repeats itself to the byte.
        video = made.add_stream(
            "libx264",
            rate=pictures.average_rate,
            options={"preset": "veryfast", "mbtree": "0", "threads": "1"},
        )
        video.width, video.height, video.pix_fmt = width, height, "yuv420p"
        video.bit_rate = _CLIP_VIDEO_BITS
        audio = made.add_stream("aac", rate=sound.codec_context.sample_rate, layout="stereo")
        audio.bit_rate = _CLIP_AUDIO_BITS
        frames = list(source.decode(pictures))
        source.seek(0)
        heard = np.hstack([frame.to_ndarray() for frame in source.decode(sound)])
        rate = round(sound.codec_context.sample_rate * _CLIP_SECONDS / len(frames))
        for number in range(math.ceil(seconds * len(frames) / _CLIP_SECONDS)):
            at = number % len(frames)
            picture = PIL.Image.fromarray(frames[at].to_ndarray(format="rgb24"))
            pixels = np.asarray(_stamped(picture.resize((width, height)), seed))
            made.mux(video.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
            # Each picture with its own piece of sound, so that they begin again together.
            piece = np.ascontiguousarray(heard[:, at * rate : (at + 1) * rate])
            part = av.AudioFrame.from_ndarray(piece, format="fltp", layout="stereo")
            part.sample_rate = sound.codec_context.sample_rate
            made.mux(audio.encode(part))
        made.mux(video.encode(None))
        made.mux(audio.encode(None))
    return output.getvalue()


def photo_jpeg(width: int = _PHOTO_WIDTH, seed: int = 0) -> bytes:
    """Return a picture of the valley as JPEG, two thirds as high as it is wide.

    The width is in pixels, from 64 to 2560, and the seed numbers the exercise.
    """
    if not _PHOTO_WIDTH_MIN <= width <= _PHOTO_WIDTH:
        raise BadInput("width", f"must be from {_PHOTO_WIDTH_MIN} to {_PHOTO_WIDTH}, not {width}")
    whole = _shipped("photo.jpg")
    if width == _PHOTO_WIDTH and not seed:
        return whole
    with _needing("pillow", extra="media", purpose="cutting the sample photo"):
        import PIL.Image
    with PIL.Image.open(BytesIO(whole)) as picture:
        narrower = _stamped(picture.resize((width, round(width * 2 / 3))), seed)
    output = BytesIO()
    narrower.save(output, "JPEG", quality=90)
    return output.getvalue()


def photo_gif(colours: int = 256, seed: int = 0) -> bytes:
    """Return the picture of the valley as GIF in so many colours, 2 to 256."""
    if not 2 <= colours <= 256:
        raise BadInput("colours", f"must be from 2 to 256, not {colours}")
    with _needing("pillow", extra="media", purpose="making the sample GIF"):
        import PIL.Image
    output = BytesIO()
    with PIL.Image.open(BytesIO(photo_jpeg(seed=seed))) as picture:
        picture.quantize(colours).save(output, "GIF")
    return output.getvalue()


def notice_text(seed: int = 0) -> str:
    """Return the notice that goes with the map: paragraphs and numbered items.

    Not all of its characters are ASCII, and some are in no 8-bit character set.
    """
    text = _shipped("notice.txt").decode()
    return f"{text}\n{_exercise(seed)}.\n" if seed else text


def _shipped(name: str) -> bytes:
    return (files(__name__) / name).read_bytes()


def _exercise(seed: int) -> str:
    return f"Exercise {seed}"


def _stamped(picture: Image, seed: int) -> Image:
    from PIL.ImageDraw import Draw

    if seed:
        edge = picture.height / 30
        Draw(picture).text(
            (edge, picture.height - edge),
            _exercise(seed),
            font_size=max(10, picture.height / 26),
            anchor="ls",
            fill="white",
            stroke_width=2,
            stroke_fill="black",
        )
    return picture


def _stamp_page(document: Any, seed: int) -> None:
    """Write the number below the map on the first page, as text that can be found there."""
    from pypdfium2 import raw

    page = document[0]
    font = raw.FPDFText_LoadStandardFont(document, b"Helvetica-Bold")
    stamp = raw.FPDFPageObj_CreateTextObj(document, font, 10.0)
    words = ctypes.create_string_buffer((_exercise(seed) + "\0").encode("utf-16-le"))
    raw.FPDFText_SetText(stamp, ctypes.cast(words, ctypes.POINTER(ctypes.c_ushort)))
    raw.FPDFPageObj_Transform(stamp, 1, 0, 0, 1, 24, 9)
    raw.FPDFPage_InsertObject(page, stamp)
    raw.FPDFPage_GenerateContent(page)
    raw.FPDFFont_Close(font)
    page.close()


@contextmanager
def _needing(package: str, *, extra: str, purpose: str) -> Iterator[None]:
    """Turn a failed import inside the block into the sentence that says what to install."""
    try:
        yield
    except ImportError:
        raise MissingPackage(package, extra=extra, purpose=purpose) from None
