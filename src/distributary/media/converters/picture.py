"""What every converter to pictures shares: sizes that are asked for, and how to save."""

from __future__ import annotations

import io
import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from distributary.content.media_type import MediaType
from distributary.errors import counted
from distributary.media.failure import Unconvertible
from distributary.media.limits import Limits

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = [
    "PICTURE_PARAMETERS",
    "PICTURE_TYPES",
    "check_pixels",
    "codec_versions",
    "is_no_wider",
    "is_picture",
    "number",
    "on_white",
    "proportional",
    "saved",
    "upright",
]

PICTURE_TYPES = {
    "image/jpeg": "JPEG",
    "image/png": "PNG",
    "image/webp": "WEBP",
    "image/gif": "GIF",
}
"""What Pillow calls the formats that we read and write."""
PICTURE_PARAMETERS = {"width": "a whole number of pixels from 1 to 99,999"}
"""What every picture may be asked for."""

# The longest side that each format can say. For PNG it is what our pixels end at anyway.
_SIDE_MAX = {
    "image/jpeg": 65_500,
    "image/png": 1_000_000,
    "image/webp": 16_383,
    "image/gif": 65_535,
}
_NUMBER = re.compile(r"[1-9][0-9]{0,4}")

# Measured on the sample map at 1,810 x 1,280 pixels. A picture is converted once and sent
# often: optimised tables and progressive scans make JPEG 6 % smaller for 35 ms. One step
# more of effort in PNG or WebP gains 3 % and doubles their time, which is 0.2 s already.
_JPEG_OPTIONS = {"quality": 82, "optimize": True, "progressive": True}
_PNG_OPTIONS = {"compress_level": 4}
_WEBP_OPTIONS = {"quality": 80, "method": 2}
_COLOURS = 256
# What is more than half transparent is a hole where there is nothing in between.
_OPAQUE_MIN = 128


def number(media_type: MediaType, parameter: str) -> int | None:
    """Return a parameter that is a whole number from 1 to 99,999; None if it is anything else."""
    value = media_type.parameters.get(parameter, "")
    return int(value) if _NUMBER.fullmatch(value) else None


def is_picture(target: MediaType, *, parameters: Collection[str]) -> bool:
    """Whether a target is a picture that we write and all its parameters are good ones."""
    return target.essence in PICTURE_TYPES and all(
        name in parameters and number(target, name) is not None for name in target.parameters
    )


def is_no_wider(source: MediaType, target: MediaType) -> bool:
    """Whether nothing would be enlarged, as far as both say how wide they are."""
    wide, asked = number(source, "width"), number(target, "width")
    return wide is None or asked is None or asked <= wide


def proportional(width: float, height: float, *, asked: int) -> int:
    """Return how high a picture becomes when it is made `asked` pixels wide."""
    return max(1, round(height * asked / width))


def check_pixels(width: int, height: int, *, what: str, limits: Limits) -> None:
    """Refuse pictures with more pixels than the limit, before there is memory for them."""
    if width * height > limits.pixels:
        raise Unconvertible(
            "pixels",
            f"{what} has {width:,} x {height:,} pixels; at most "
            f"{counted(limits.pixels, 'pixel')} are allowed",
        )


def on_white(image: Image) -> Image:
    """Return the picture without transparency, on white paper."""
    import PIL.Image

    if image.mode != "RGBA":
        return image
    paper = PIL.Image.new("RGB", image.size, "white")
    paper.paste(image, mask=image.getchannel("A"))
    return paper


def saved(image: Image, target: MediaType) -> bytes:
    """Return the picture as a file: one of mode L, RGB or RGBA.

    Nothing but pixels is written. What else the source said (camera, place, author,
    thumbnail, colour profile) stays behind: a converted picture may go to everybody.
    """
    side_max = _SIDE_MAX[target.essence]
    if max(image.size) > side_max:
        raise Unconvertible(
            "pixels",
            f"the result has {image.width:,} x {image.height:,} pixels; "
            f"{target.essence} has no side longer than {side_max:,}",
        )
    image.info = {}
    written = io.BytesIO()
    if target.essence == "image/jpeg":
        on_white(image).save(written, "JPEG", **_JPEG_OPTIONS)
    elif target.essence == "image/png":
        image.save(written, "PNG", **_PNG_OPTIONS)
    elif target.essence == "image/webp":
        image.save(written, "WEBP", **_WEBP_OPTIONS)
    else:
        _with_palette(image).save(written, "GIF")
    return written.getvalue()


def _with_palette(image: Image) -> Image:
    """Return the picture in 256 colours, of which one is none where the picture has holes."""
    if image.mode != "RGBA":
        return image if image.mode == "L" else image.quantize(_COLOURS)
    holes = image.getchannel("A").point(lambda level: 255 * (level < _OPAQUE_MIN))
    painted = on_white(image).quantize(_COLOURS - 1)
    painted.paste(_COLOURS - 1, mask=holes)
    painted.info["transparency"] = _COLOURS - 1
    return painted


def upright(image: Image, orientation: int) -> Image:
    """Return the picture with its top at the top; the orientation is 1 to 8, as EXIF counts."""
    from PIL.Image import Transpose

    turns = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    return image.transpose(turns[orientation]) if orientation in turns else image


def codec_versions() -> str:
    """Return the versions of everything that shapes the bytes of a picture."""
    from PIL import __version__, features

    codecs = (
        f"{name}-{features.version(name)}"
        for name in ("libjpeg_turbo", "zlib", "webp", "littlecms2")
        if features.check(name)
    )
    return " ".join((f"pillow-{__version__}", *codecs))
