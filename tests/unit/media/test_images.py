"""Pictures become smaller and change type; they are looked at by another library."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageCms
from tests.pictures import PILLOW_NAMES, file_of, pixels, slope

from distributary.content.media_type import MediaType
from distributary.media.converters.images import Images, webp_size
from distributary.media.failure import FailureKind, Unconvertible
from distributary.media.formats import GIF_FORMATS, IMAGE_FORMATS
from distributary.media.limits import Limits

ORIENTATION = 0x0112
EXIF = b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0"

Pixels = NDArray[np.int64]


def converted(content: bytes, source: str, target: str, **limits: int) -> bytes:
    types = MediaType.parse(source), MediaType.parse(target)
    assert Images().converts(*types)
    return Images().convert(content, *types, Limits(**limits))


def refusal(content: bytes, source: str, target: str, **limits: int) -> Unconvertible:
    with pytest.raises(Unconvertible) as raised:
        converted(content, source, target, **limits)
    assert "\n" not in raised.value.reason
    assert " at 0x" not in raised.value.reason
    return raised.value


def png_header_alone(width: int, height: int) -> bytes:
    """Return a PNG file that claims a size and has hardly any pixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = zlib.compress(bytes(1000))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (chunk(b"IHDR", header), chunk(b"IDAT", body), chunk(b"IEND", b""))
    )


def test_every_pair_of_listed_pictures_that_does_not_enlarge_is_listed() -> None:
    listed = list(Images().conversions())
    assert len({(str(source), str(target)) for source, target in listed}) == len(listed) == 114
    for source, target in listed:
        assert source in (*IMAGE_FORMATS, *GIF_FORMATS)
        # A GIF is made of nothing better: whoever takes any picture shall not get one.
        assert target in IMAGE_FORMATS or source.subtype == "gif"
        assert int(source.parameters["width"]) >= int(target.parameters["width"])


@pytest.mark.parametrize("source", PILLOW_NAMES)
@pytest.mark.parametrize("target", PILLOW_NAMES)
def test_a_picture_is_as_wide_as_asked_for_and_shows_the_same(source: str, target: str) -> None:
    content = file_of(slope(500, 300), source)
    result = converted(content, source, f"{target};width=120")
    seen = pixels(result, essence=target)
    assert seen.shape == (72, 120, 3)
    expected = np.asarray(slope(500, 300).resize((120, 72), Image.Resampling.BOX), np.int64)
    # A GIF has 256 colours.
    assert np.abs(seen - expected).mean() < (7 if "image/gif" in (source, target) else 3)
    assert converted(content, source, f"{target};width=120") == result


def test_a_target_without_a_width_keeps_the_pictures_own() -> None:
    content = file_of(slope(61, 47), "image/png")
    assert pixels(converted(content, "image/png", "image/webp"), essence="image/webp").shape == (
        47,
        61,
        3,
    )


def test_a_very_flat_picture_keeps_at_least_one_line() -> None:
    content = file_of(slope(3000, 2), "image/png")
    result = converted(content, "image/png", "image/png;width=10")
    assert pixels(result, essence="image/png").shape == (1, 10, 3)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("image/jpeg;width=320", "image/jpeg;width=640"),
        ("image/jpeg;width=320", "image/jpeg;width=320"),
        ("image/jpeg", "image/jpeg;width=0"),
        ("image/jpeg", "image/jpeg;width=-5"),
        ("image/jpeg", "image/jpeg;width=1e3"),
        ("image/jpeg", "image/jpeg;width=100000"),
        ("image/jpeg", "image/jpeg;page=1"),
        ("image/jpeg", "image/jpeg;width=100;height=5"),
        ("image/jpeg", "image/bmp;width=100"),
        ("image/svg+xml", "image/png;width=100"),
        ("application/pdf", "image/png;width=100"),
        ("image/png", "text/plain"),
    ],
)
def test_other_conversions_do_not_exist(source: str, target: str) -> None:
    assert not Images().converts(MediaType.parse(source), MediaType.parse(target))


@pytest.mark.parametrize("source", PILLOW_NAMES)
def test_a_picture_is_never_enlarged_whatever_it_claims_to_be(source: str) -> None:
    content = file_of(slope(100, 80), source)
    failure = refusal(content, f"{source};width=640", "image/png;width=101")
    assert failure.kind == "enlarges"
    assert failure.reason == "the picture is 100 pixels wide, less than 101"


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("source", ["image/jpeg", "image/png", "image/webp"])
def test_the_result_is_upright_whichever_side_the_camera_called_the_top(
    source: str, orientation: int
) -> None:
    """Turned by another way than ours: by the corners that EXIF names."""
    # Where the first stored row and column are in the upright picture (EXIF 2.3, table 7).
    undo: Callable[[Pixels], Pixels] = {
        1: lambda stored: stored,
        2: lambda stored: stored[:, ::-1],
        3: lambda stored: stored[::-1, ::-1],
        4: lambda stored: stored[::-1],
        5: lambda stored: stored.transpose(1, 0, 2),
        6: lambda stored: stored.transpose(1, 0, 2)[:, ::-1],
        7: lambda stored: stored[::-1, ::-1].transpose(1, 0, 2),
        8: lambda stored: stored.transpose(1, 0, 2)[::-1],
    }[orientation]
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    stored = slope(200, 120)
    content = file_of(stored, source, exif=exif)
    result = converted(content, source, "image/png;width=60")
    expected = undo(np.asarray(stored, np.int64))
    height, width = expected.shape[:2]
    seen = pixels(result, essence="image/png")
    assert seen.shape == (round(height * 60 / width), 60, 3)
    small = Image.fromarray(expected.astype(np.uint8)).resize(
        (60, seen.shape[0]), Image.Resampling.BOX
    )
    assert np.abs(seen - np.asarray(small, np.int64)).mean() < 4


@pytest.mark.parametrize("source", PILLOW_NAMES)
@pytest.mark.parametrize("target", PILLOW_NAMES)
def test_nothing_that_a_file_says_about_its_picture_is_carried_over(
    source: str, target: str
) -> None:
    exif = Image.Exif()
    exif[0x010F] = "CAMERA-OF-ANN"
    exif.get_ifd(0x8825)[1] = "GPS-NORTH"
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    options = {"exif": exif, "icc_profile": profile}
    if source in ("image/jpeg", "image/gif"):
        options["comment"] = b"COMMENT-OF-ANN"
    content = file_of(slope(90, 60), source, **options)
    assert b"OF-ANN" in content
    result = converted(content, source, f"{target};width=50")
    for secret in (b"OF-ANN", b"GPS", b"Exif", b"EXIF", b"eXIf", b"ICC", b"iCCP", b"sRGB"):
        assert secret not in result


def test_colours_are_converted_to_srgb_where_a_profile_says_what_they_were() -> None:
    """A profile with swapped primaries shows whether it was used at all."""
    srgb = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    red, blue = srgb.index(b"rXYZ"), srgb.index(b"bXYZ")
    srgb[red : red + 4], srgb[blue : blue + 4] = b"bXYZ", b"rXYZ"
    content = file_of(Image.new("RGB", (40, 40), "red"), "image/png", icc_profile=bytes(srgb))
    result = pixels(converted(content, "image/png", "image/png;width=20"), essence="image/png")
    assert result[10, 10, 2] > 200
    assert result[10, 10, 0] < 60


def test_a_profile_that_makes_no_sense_is_left_out() -> None:
    content = file_of(Image.new("RGB", (40, 40), "red"), "image/png", icc_profile=b"nonsense" * 20)
    result = pixels(converted(content, "image/png", "image/png;width=20"), essence="image/png")
    assert result[10, 10].tolist() == [255, 0, 0]


@pytest.mark.parametrize("source", ["image/png", "image/webp"])
def test_transparency_is_kept_where_it_can_be_and_else_laid_on_white(source: str) -> None:
    picture = Image.new("RGBA", (80, 40), (200, 0, 0, 0))
    picture.paste((0, 0, 200, 255), (0, 0, 40, 40))
    content = file_of(picture, source, **({"lossless": True} if source == "image/webp" else {}))
    for target in ("image/png", "image/webp"):
        kept = pixels(converted(content, source, f"{target};width=40"), essence=target, form="rgba")
        assert kept[10, 5, 3] == 255
        assert kept[10, 35, 3] == 0
    flat = pixels(converted(content, source, "image/jpeg;width=40"), essence="image/jpeg")
    assert flat[10, 35].min() > 245
    assert flat[10, 5, 2] > 180
    assert flat[10, 5, 0] < 20


def with_palette() -> Image.Image:
    return Image.new("RGB", (64, 64), (0, 128, 0)).quantize(4)


@pytest.mark.parametrize(
    ("essence", "picture", "options", "colour"),
    [
        ("image/png", Image.new("1", (64, 64), 1), {}, (255, 255, 255)),
        ("image/png", Image.new("L", (64, 64), 90), {}, (90, 90, 90)),
        ("image/png", Image.new("I;16", (64, 64), 40_000), {}, (156, 156, 156)),
        ("image/png", with_palette(), {}, (0, 128, 0)),
        ("image/png", with_palette(), {"transparency": 0}, (255, 255, 255)),
        ("image/png", Image.new("LA", (64, 64), (90, 255)), {}, (90, 90, 90)),
        ("image/png", Image.new("RGB", (64, 64), "red"), {"transparency": (255, 0, 0)}, (255,) * 3),
        ("image/jpeg", Image.new("CMYK", (64, 64), (0, 255, 255, 0)), {}, (255, 0, 0)),
        ("image/jpeg", Image.new("L", (64, 64), 90), {}, (90, 90, 90)),
    ],
    ids=lambda value: value.mode if isinstance(value, Image.Image) else "",
)
def test_all_kinds_of_pixels_come_out_in_their_colours(
    essence: str, picture: Image.Image, options: Mapping[str, object], colour: tuple[int, ...]
) -> None:
    content = file_of(picture, essence, **options)
    seen = pixels(converted(content, essence, "image/jpeg;width=32"), essence="image/jpeg")
    assert np.abs(seen[16, 16].astype(int) - colour).max() <= 3


@pytest.mark.parametrize("essence", ["image/png", "image/webp", "image/gif"])
def test_the_first_frame_stands_for_an_animation(essence: str) -> None:
    frames = [Image.new("RGB", (40, 40), colour) for colour in ("red", "lime", "blue")]
    content = file_of(frames[0], essence, save_all=True, append_images=frames[1:], duration=50)
    result = converted(content, essence, "image/png;width=20")
    seen = pixels(result, essence="image/png")
    assert seen[10, 10, 0] > 240
    assert seen[10, 10, 1:].max() < 15


@pytest.mark.parametrize("essence", PILLOW_NAMES)
def test_a_truncated_file_is_damaged_wherever_it_ends(essence: str) -> None:
    content = file_of(slope(200, 150), essence)
    for share in (0, 0.01, 0.3, 0.6, 0.95):
        kept = content[: int(share * len(content))]
        assert refusal(kept, essence, "image/png;width=50").kind == "damaged"


def test_a_flipped_bit_in_a_png_is_noticed() -> None:
    content = bytearray(file_of(slope(200, 150), "image/png"))
    content[len(content) // 2] ^= 8
    assert refusal(bytes(content), "image/png", "image/jpeg;width=50").kind == "damaged"


@pytest.mark.parametrize("claimed", PILLOW_NAMES)
@pytest.mark.parametrize("actual", PILLOW_NAMES)
def test_content_of_another_type_than_it_claims_is_damaged(claimed: str, actual: str) -> None:
    content = file_of(slope(60, 40), actual)
    if claimed == actual:
        assert converted(content, claimed, "image/png;width=30")
    else:
        assert refusal(content, claimed, "image/png;width=30").kind == "damaged"


def test_too_many_pixels_are_refused_before_there_is_memory_for_them() -> None:
    """The kind is that of our own limit, below, between and above those of the library."""
    for side in (9_000, 12_000, 50_000):
        failure = refusal(png_header_alone(side, side), "image/png", "image/png;width=100")
        assert failure.kind == "pixels"
        assert f"{side:,} x {side:,} pixels" in failure.reason
    content = file_of(slope(100, 100), "image/jpeg")
    assert refusal(content, "image/jpeg", "image/png;width=9", pixels=9_999).kind == "pixels"
    assert converted(content, "image/jpeg", "image/png;width=9", pixels=10_000)


def test_our_limit_counts_even_where_it_is_larger_than_that_of_the_library() -> None:
    failure = refusal(
        png_header_alone(15_000, 12_000), "image/png", "image/png;width=9", pixels=10**9
    )
    assert failure.kind == "damaged"
    assert Image.MAX_IMAGE_PIXELS is not None


@pytest.mark.parametrize("options", [{}, {"lossless": True}, {"exif": EXIF}])
def test_a_webp_header_is_read_as_others_read_it(options: dict[str, object]) -> None:
    for size in ((1, 1), (317, 41), (41, 317)):
        content = file_of(Image.new("RGB", size), "image/webp", **options)
        assert webp_size(content) == size == Image.open(io.BytesIO(content)).size


def test_a_webp_canvas_is_checked_before_it_is_made() -> None:
    content = bytearray(file_of(slope(50, 50), "image/webp", exif=EXIF))
    assert content[12:16] == b"VP8X"
    content[24:30] = b"\xff\x3f\x00\xff\x3f\x00"
    assert refusal(bytes(content), "image/webp", "image/png;width=9").kind == "pixels"


@pytest.mark.parametrize(
    ("target", "kind"), [("image/webp", "pixels"), ("image/jpeg", "pixels"), ("image/png", None)]
)
def test_a_side_that_a_format_cannot_have_is_refused(target: str, kind: FailureKind | None) -> None:
    content = file_of(Image.new("L", (1, 70_000)), "image/png")
    if kind is None:
        assert converted(content, "image/png", f"{target};width=1")[:4] == b"\x89PNG"
    else:
        assert refusal(content, "image/png", target).kind == kind


def test_a_gif_keeps_its_holes_as_png_and_is_laid_on_white_as_jpeg() -> None:
    picture = Image.new("RGBA", (40, 30), (200, 0, 0, 255))
    picture.paste((0, 0, 0, 0), (0, 0, 20, 30))
    content = converted(file_of(picture, "image/png"), "image/png", "image/gif")
    seen = pixels(converted(content, "image/gif", "image/png"), essence="image/png", form="rgba")
    assert seen[:, :20, 3].max() == 0
    assert seen[:, 20:].reshape(-1, 4).mean(axis=0) == pytest.approx([200, 0, 0, 255], abs=3)
    white = pixels(converted(content, "image/gif", "image/jpeg"), essence="image/jpeg")
    assert white[:, 2:16].min() > 240


@pytest.mark.parametrize("frame", [False, True])
def test_a_gif_is_refused_by_the_size_that_it_or_its_first_frame_claims(frame: bool) -> None:
    content = bytearray(file_of(slope(20, 10), "image/gif"))
    place = content.index(b"\x2c", 13 + 3 * (2 << (content[10] & 7))) + 5 if frame else 6
    content[place : place + 4] = struct.pack("<HH", 65_535, 65_535)
    failure = refusal(bytes(content), "image/gif", "image/png")
    assert failure.kind == "pixels"
    assert "65,535 x 65,535" in failure.reason
