"""Pictures in other sizes and types."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, permutations, product
from typing import TYPE_CHECKING

from distributary.content.media_type import MediaType
from distributary.media.converter import Converter
from distributary.media.converters.picture import (
    PICTURE_PARAMETERS,
    PICTURE_TYPES,
    check_pixels,
    codec_versions,
    is_no_wider,
    is_picture,
    number,
    proportional,
    saved,
    upright,
)
from distributary.media.failure import Unconvertible
from distributary.media.formats import GIF_FORMATS, IMAGE_FORMATS
from distributary.media.limits import Limits

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["Images", "webp_size"]

_REVISION = "1"
_EXIF_ORIENTATION = 0x0112
# Orientations from this one on lie on their side.
_ORIENTATION_SIDEWAYS_FIRST = 5


class Images(Converter):
    """Makes pictures narrower, and writes them in another type; never wider.

    The picture is upright in the result, whatever side its camera called the top. Colours
    are converted to sRGB where a profile says what they were, and the profile is left
    out. The first frame stands for an animation. Transparency is kept by PNG and WebP, all or
    nothing by GIF, and laid on white for JPEG. Nothing else that a file says about its picture
    is carried over.
    """

    name = "images"
    packages = (("PIL", "media"),)
    parameters = PICTURE_PARAMETERS

    @property
    def version(self) -> str:
        """Our revision and the codecs of pictures."""
        return f"{_REVISION} {codec_versions()}"

    def conversions(self) -> Iterator[tuple[MediaType, MediaType]]:
        """Yield every pair of listed pictures that does not enlarge.

        GIF is made from GIF only: whoever takes any picture is better served by another type.
        """
        pairs = chain(permutations(IMAGE_FORMATS, 2), permutations(GIF_FORMATS, 2))
        return (
            pair
            for pair in chain(pairs, product(GIF_FORMATS, IMAGE_FORMATS))
            if self.converts(*pair)
        )

    def converts(self, source: MediaType, target: MediaType) -> bool:
        """Whether both are pictures and the source is not known to be narrower."""
        if source.essence not in PICTURE_TYPES or source == target:
            return False
        return is_picture(target, parameters=("width",)) and is_no_wider(source, target)

    def convert(
        self, content: bytes, source: MediaType, target: MediaType, limits: Limits
    ) -> bytes:
        """Return the picture at the width asked for, or at its own."""
        with _damage_as_failure(source):
            image = _opened(content, source, limits=limits)
        orientation = _orientation(image)
        sideways = orientation >= _ORIENTATION_SIDEWAYS_FIRST
        width, height = image.size[::-1] if sideways else image.size
        asked = number(target, "width") or width
        if asked > width:
            raise Unconvertible(
                "enlarges", f"the picture is {width:,} pixels wide, less than {asked:,}"
            )
        size = (asked, proportional(width, height, asked=asked))
        with _damage_as_failure(source):
            reduced = _reduced(image, size[::-1] if sideways else size)
        return saved(upright(reduced, orientation), target)


@contextmanager
def _damage_as_failure(source: MediaType) -> Iterator[None]:
    """Turn what Pillow raises for broken files into a failure: anything, by where they break."""
    try:
        yield
    except (Unconvertible, MemoryError):
        raise
    except Exception as error:
        raise Unconvertible(
            "damaged", f"it cannot be read as {source.essence} ({error})"
        ) from error


def _opened(content: bytes, source: MediaType, *, limits: Limits) -> Image:
    """Return the picture, with nothing decoded before its size is known to be allowed.

    Only the type that the content claims to be is tried: whoever may send JPEG must not
    reach the readers of every other format.
    """
    import PIL.Image

    kind = PICTURE_TYPES[source.essence]
    if kind == "WEBP":
        # Pillow makes room for the whole canvas as it opens this one.
        check_pixels(*webp_size(content), what="the picture", limits=limits)
    # Our own limit decides, whichever side of Pillow's it is on.
    pillow_limit, PIL.Image.MAX_IMAGE_PIXELS = PIL.Image.MAX_IMAGE_PIXELS, None
    try:
        image = PIL.Image.open(io.BytesIO(content), formats=[kind])
    except PIL.UnidentifiedImageError as error:
        # Its own message names an object in memory, and so differs from run to run.
        raise Unconvertible(
            "damaged", f"it is not {source.essence}, or its header is broken"
        ) from error
    finally:
        PIL.Image.MAX_IMAGE_PIXELS = pillow_limit
    check_pixels(*image.size, what="the picture", limits=limits)
    if kind != "JPEG":
        # All pixels now: Pillow would decode them on the way to the orientation, where
        # errors are passed over. JPEG waits, as it can be decoded smaller than it is.
        image.load()
    return image


def _orientation(image: Image) -> int:
    """Return how the camera was held, from 1 to 8 as EXIF counts; 1 if that is unreadable."""
    try:
        orientation = image.getexif().get(_EXIF_ORIENTATION, 1)
    except Exception:
        # Notes about a picture that are broken do not break the picture; and what reading
        # them raises is anybody's guess.
        return 1
    return orientation if orientation in range(1, 9) else 1


def _reduced(image: Image, size: tuple[int, int]) -> Image:
    """Return the picture in that size, as L, RGB or RGBA in sRGB."""
    from PIL.Image import Resampling

    profile = image.info.get("icc_profile")
    # JPEG can be decoded at an eighth of its size and less. Twice the width that is asked
    # for leaves the filter enough to work with.
    image.draft(image.mode, (2 * size[0], 2 * size[1]))
    plain = _plain(image)
    if plain.size != size:
        plain = plain.resize(size, Resampling.LANCZOS, reducing_gap=3.0)
    if profile:
        plain = _in_srgb(plain, profile)
    return plain.convert("RGB") if plain.mode == "CMYK" else plain


def _plain(image: Image) -> Image:
    """Return the pixels in one of the modes L, RGB, RGBA and CMYK."""
    if image.mode.startswith(("I", "F")):
        # Sixteen bits of grey. A plain conversion would cut off all that is brighter than 255.
        return image.point(lambda level: level * (1 / 256)).convert("L")
    if image.has_transparency_data:
        return image.convert("RGBA")
    if image.mode in ("L", "RGB", "CMYK"):
        image.load()
        return image
    return image.convert("L" if image.mode == "1" else "RGB")


def _in_srgb(image: Image, profile: bytes) -> Image:
    """Return the picture with its colours in sRGB; as it is if the profile is of no use."""
    from PIL import ImageCms

    try:
        converted = ImageCms.profileToProfile(
            image,
            ImageCms.ImageCmsProfile(io.BytesIO(profile)),
            ImageCms.createProfile("sRGB"),
            outputMode="RGB" if image.mode == "CMYK" else image.mode,
        )
    except (ImageCms.PyCMSError, OSError, ValueError):
        return image
    return converted or image


def webp_size(content: bytes) -> tuple[int, int]:
    """Return the width and height of a WebP picture, from the first thirty bytes.

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
