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
    "PICTURE_TYPES",
    "check_pixels",
    "codec_versions",
    "is_picture",
    "number",
    "on_white",
    "proportional",
    "saved",
]

PICTURE_TYPES = {"image/jpeg": "JPEG", "image/png": "PNG", "image/webp": "WEBP"}
"""What Pillow calls the formats that we read and write."""

# The longest side that each format can say. For PNG it is what our pixels end at anyway.
_SIDE_MAX = {"image/jpeg": 65_500, "image/png": 1_000_000, "image/webp": 16_383}
_NUMBER = re.compile(r"[1-9][0-9]{0,4}")

# Measured on the sample map at 1,810 x 1,280 pixels. A picture is converted once and sent
# often: optimised tables and progressive scans make JPEG 6 % smaller for 35 ms. One step
# more of effort in PNG or WebP gains 3 % and doubles their time, which is 0.2 s already.
_JPEG_OPTIONS = {"quality": 82, "optimize": True, "progressive": True}
_PNG_OPTIONS = {"compress_level": 4}
_WEBP_OPTIONS = {"quality": 80, "method": 2}


def number(media_type: MediaType, parameter: str) -> int | None:
    """Return a parameter that is a whole number from 1 to 99,999; None if it is anything else."""
    value = media_type.parameters.get(parameter, "")
    return int(value) if _NUMBER.fullmatch(value) else None


def is_picture(target: MediaType, *, parameters: Collection[str]) -> bool:
    """Whether a target is a picture that we write and all its parameters are good ones."""
    return target.essence in PICTURE_TYPES and all(
        name in parameters and number(target, name) is not None for name in target.parameters
    )


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
    else:
        image.save(written, "WEBP", **_WEBP_OPTIONS)
    return written.getvalue()


def codec_versions() -> str:
    """Return the versions of everything that shapes the bytes of a picture."""
    from PIL import __version__, features

    codecs = (
        f"{name}-{features.version(name)}"
        for name in ("libjpeg_turbo", "zlib", "webp", "littlecms2")
        if features.check(name)
    )
    return " ".join((f"pillow-{__version__}", *codecs))
