"""Pictures for tests, and a look at them by another library than the one that wrote them."""

from __future__ import annotations

import io
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

__all__ = ["PILLOW_NAMES", "file_of", "pixels", "slope"]

PILLOW_NAMES = {
    "image/jpeg": "JPEG",
    "image/png": "PNG",
    "image/webp": "WEBP",
    "image/gif": "GIF",
}


def slope(width: int, height: int) -> Image.Image:
    """Return a picture that is redder to the right and greener to the bottom."""
    red = np.linspace(0, 255, width, dtype=np.uint8)
    green = np.linspace(0, 255, height, dtype=np.uint8)
    picture = np.zeros((height, width, 3), np.uint8)
    picture[..., 0] = red[None, :]
    picture[..., 1] = green[:, None]
    return Image.fromarray(picture)


def file_of(image: Image.Image, essence: str, **options: Any) -> bytes:
    """Return a picture as a file of that type, as well as its format can."""
    written = io.BytesIO()
    options = {"image/jpeg": {"quality": 95}, "image/webp": {"quality": 95}}.get(
        essence, {}
    ) | options
    image.save(written, PILLOW_NAMES[essence], **options)
    return written.getvalue()


def pixels(content: bytes, *, essence: str, form: str = "rgb24") -> NDArray[np.uint8]:
    """Return the pixels of a file (height, width, channels), which must be of that type."""
    with av.open(io.BytesIO(content), "r") as container:
        kind = essence.partition("/")[2]
        assert container.format.name == ("gif" if kind == "gif" else f"{kind}_pipe")
        frame = next(container.decode(video=0))
    seen: NDArray[np.uint8] = np.asarray(frame.to_ndarray(format=form), np.uint8)
    return seen
