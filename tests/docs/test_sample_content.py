"""The example that draws the sample content: repeatable, and with everything on the page."""

from __future__ import annotations

import io
import re
from itertools import pairwise
from pathlib import Path
from typing import cast

import av
import numpy as np
import pypdfium2 as pdfium
import pytest
from examples.sample_content import clip_mp4, map_pdf, notice_text, photo_jpeg
from examples.sample_content.__main__ import SHIPPED, main
from examples.sample_content.contours import contours
from examples.sample_content.country import country
from examples.sample_content.labels import Labels
from examples.sample_content.noise import fractal_noise
from examples.sample_content.paths import distances, lengths
from examples.sample_content.sheet import Sheet
from examples.sample_content.sound import SAMPLES_PER_SECOND, engine_sound
from examples.sample_content.terrain import EAST_M, NORTH_M, Extent
from numpy.typing import NDArray
from PIL import Image

from distributary.errors import BadInput
from distributary.media.spoken_text import first_item

SEEDS = [0, 1, pytest.param(2, marks=pytest.mark.full)]


@pytest.fixture(scope="module")
def document() -> bytes:
    return map_pdf(3, seed=0)


@pytest.fixture(scope="module")
def clip() -> bytes:
    return clip_mp4(1, seed=0)


def page_text(content: bytes, page: int) -> str:
    document = pdfium.PdfDocument(content)
    try:
        text: str = document[page].get_textpage().get_text_range()
    finally:
        document.close()
    return text.replace("\r\n", "\n")


def frames(content: bytes) -> list[NDArray[np.uint8]]:
    with av.open(io.BytesIO(content), "r") as container:
        pictures = [frame.to_ndarray(format="gray") for frame in container.decode(video=0)]
    return cast("list[NDArray[np.uint8]]", pictures)


def check_crossings(seed: int) -> None:
    land = country(seed)
    bridges = np.array([bridge.place for bridge in land.network.bridges])
    for road in land.network.roads:
        wet = road.line[land.terrain.river_distance_at(road.line) < 20]
        assert len(wet) == 0 or distances(wet, bridges).max() < 80


def test_the_command_draws_the_four_files_that_come_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small ones: what the tests below find in large ones takes half a minute to draw."""
    monkeypatch.setattr("examples.sample_content.__main__.map_pdf", lambda seed: b"%PDF")
    monkeypatch.setattr(
        "examples.sample_content.__main__.clip_mp4",
        lambda seed: clip_mp4(0.1, width=64, height=64, seed=seed),
    )
    monkeypatch.setattr(
        "examples.sample_content.__main__.photo_jpeg",
        lambda seed, quality: photo_jpeg(64, seed, quality=quality),
    )
    main([str(tmp_path), "--seed", "1"])
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {path.name for path in SHIPPED.iterdir() if path.suffix[:3] != ".py"} - {
        "__pycache__"
    }
    assert (tmp_path / "notice.txt").read_bytes() == notice_text(1).encode()
    assert len(frames((tmp_path / "clip.mp4").read_bytes())) == 2


@pytest.mark.full
def test_the_files_that_come_along_are_those_of_the_first_country(tmp_path: Path) -> None:
    main([str(tmp_path)])
    for name in ("map.pdf", "notice.txt"):
        assert (tmp_path / name).read_bytes() == (SHIPPED / name).read_bytes()
    for name in ("clip.mp4", "photo.jpg"):
        # As far as encoders repeat themselves.
        drawn, shipped = (folder / name for folder in (tmp_path, SHIPPED))
        assert drawn.stat().st_size == pytest.approx(shipped.stat().st_size, rel=0.1)


@pytest.mark.full
def test_the_second_page_describes_every_item_in_order(document: bytes) -> None:
    text = page_text(document, 1)
    numbers = [int(number) for number in re.findall(r"^(\d+)\. ", text, re.MULTILINE)]
    incidents = country(0).incidents
    assert numbers == [item.number for item in incidents]
    assert numbers == list(range(1, 14))
    joined = " ".join(text.split())
    for item in incidents:
        assert item.text in joined


@pytest.mark.full
def test_the_whole_document_is_read_aloud_from_the_first_description(document: bytes) -> None:
    """The list on the first page has numbers too; they must not be taken for items."""
    text = "\n\n".join(page_text(document, page) for page in range(3))
    item = country(0).incidents[0]
    assert first_item(text).startswith("Bridge closed. ")
    assert first_item(text).endswith(item.text)


@pytest.mark.full
def test_the_first_page_names_town_river_roads_and_items(document: bytes) -> None:
    text = page_text(document, 0)
    land = country(0)
    for name in (land.town.name, land.river_name, "Legend", "1:25 000 on A3"):
        assert name in text
    assert land.network.roads[0].name in text
    for item in land.incidents:
        # Once in the list beside the map, once on the map.
        assert text.count(item.title) >= 2


@pytest.mark.full
def test_no_letter_is_off_the_page_and_every_page_has_a_picture(document: bytes) -> None:
    opened = pdfium.PdfDocument(document)
    assert len(opened) == 3
    for page in opened:
        width, height = page.get_size()
        assert round(width / 72 * 25.4) == 420
        assert round(height / 72 * 25.4) == 297
        words = page.get_textpage()
        for index in range(words.count_chars()):
            left, bottom, right, top = words.get_charbox(index)
            assert 0 <= left <= right <= width
            assert 0 <= bottom <= top <= height
        assert any(item.type == pdfium.raw.FPDF_PAGEOBJ_IMAGE for item in page.get_objects())
    opened.close()


@pytest.mark.full
def test_a_map_is_the_same_to_the_byte(document: bytes) -> None:
    assert map_pdf(3, seed=0) == document


@pytest.mark.full
def test_a_map_grows_with_its_pages(document: bytes) -> None:
    shorter = map_pdf(2, seed=0)
    assert 400_000 < len(shorter) < 800_000
    assert 100_000 < len(document) - len(shorter) < 400_000


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 23))
def test_roads_of_any_seed_cross_the_river_at_bridges_alone(seed: int) -> None:
    check_crossings(seed)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(1, 9))
def test_any_seed_gives_a_map_with_everything_on_the_page(seed: int) -> None:
    content = map_pdf(2, seed=seed)
    numbers = re.findall(r"^(\d+)\. ", page_text(content, 1), re.MULTILINE)
    assert numbers == [str(number) for number in range(1, 14)]
    opened = pdfium.PdfDocument(content)
    for page in opened:
        width, height = page.get_size()
        words = page.get_textpage()
        boxes = np.array([words.get_charbox(index) for index in range(words.count_chars())])
        assert boxes.min() >= 0
        assert boxes[:, 2].max() <= width
        assert boxes[:, 3].max() <= height
    opened.close()


@pytest.mark.full
def test_a_map_may_have_more_pages_than_items() -> None:
    content = map_pdf(20, seed=0)
    opened = pdfium.PdfDocument(content)
    assert len(opened) == 20
    opened.close()
    assert "Atlas: " in page_text(content, 19)
    assert 4_000_000 < len(content) < 6_000_000


@pytest.mark.parametrize("seed", SEEDS)
def test_a_country_has_its_incidents_on_the_land_and_apart(seed: int) -> None:
    land = country(seed)
    places = np.array([item.place for item in land.incidents])
    assert Extent(0, 0, EAST_M, NORTH_M).holds(places, margin=50).all()
    between = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    assert between[np.triu_indices(len(places), 1)].min() > 200
    for item in land.incidents:
        assert "{" not in item.text
        assert item.text.endswith(".")


@pytest.mark.parametrize("seed", range(2))
def test_roads_cross_the_river_at_bridges_alone(seed: int) -> None:
    check_crossings(seed)


@pytest.mark.full
def test_a_clip_has_the_frames_the_size_and_the_sound_it_says(clip: bytes) -> None:
    with av.open(io.BytesIO(clip), "r") as container:
        picture, sound = container.streams.video[0], container.streams.audio[0]
        assert (picture.width, picture.height) == (640, 480)
        assert picture.average_rate == 25
        assert (picture.codec.name, sound.codec.name) == ("h264", "aac")
        assert sound.sample_rate == SAMPLES_PER_SECOND
        assert container.duration == pytest.approx(1_000_000, abs=50_000)
    assert len(frames(clip)) == 25
    assert 70_000 < len(clip) < 220_000


@pytest.mark.full
def test_a_clip_moves_all_the_time_and_is_repeatable(clip: bytes) -> None:
    seen = frames(clip)
    for before, after in pairwise(seen):
        assert np.abs(after.astype(int) - before).mean() > 0.5
    assert seen[0].std() > 20
    again = frames(clip_mp4(1, seed=0))
    assert all(np.array_equal(*pair) for pair in zip(seen, again, strict=True))


def test_a_clip_may_have_another_size_and_an_odd_length() -> None:
    content = clip_mp4(0.3, width=176, height=144, fps=10, seed=3)
    assert [frame.shape for frame in frames(content)] == [(144, 176)] * 3


def test_a_beep_marks_every_second_of_the_clip() -> None:
    sound = engine_sound(3)
    assert sound.shape == (2, 3 * SAMPLES_PER_SECOND)
    assert np.abs(sound).max() <= 1
    for second in range(3):
        begin = second * SAMPLES_PER_SECOND
        marked, unmarked = (
            np.abs(np.fft.rfft(sound[0, start : start + 3528])[80])
            for start in (begin, begin + SAMPLES_PER_SECOND // 2)
        )
        assert marked > 5 * unmarked


def test_a_photo_is_as_wide_as_asked_for_and_full_of_detail() -> None:
    content = photo_jpeg(480, seed=1)
    assert photo_jpeg(480, seed=1) == content
    with Image.open(io.BytesIO(content)) as picture:
        assert picture.format == "JPEG"
        assert picture.size == (480, 320)
        pixels = np.asarray(picture.convert("L"), float)
    # Sky above, land below: brighter and smoother than what it is over.
    assert pixels[:75].mean() > pixels[-110:].mean() + 20
    assert len(content) > 0.15 * 480 * 320


def test_a_notice_has_paragraphs_items_and_letters_of_many_alphabets() -> None:
    text = notice_text(0)
    assert notice_text(0) == text
    assert [int(number) for number in re.findall(r"^(\d+)\. ", text, re.MULTILINE)] == list(
        range(1, 14)
    )
    assert first_item(text).startswith("Bridge closed. ")
    assert {"ß", "é", "€", "я", "学"} & set(text) >= {"ß", "é", "€"}
    with pytest.raises(UnicodeEncodeError):
        text.encode("latin-1")


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda: map_pdf(1), "pages"),
        (lambda: map_pdf(201), "pages"),
        (lambda: clip_mp4(0), "seconds"),
        (lambda: clip_mp4(float("nan")), "seconds"),
        (lambda: clip_mp4(1, width=641), "width"),
        (lambda: clip_mp4(1, height=2000), "height"),
        (lambda: clip_mp4(1, fps=0), "fps"),
        (lambda: photo_jpeg(10), "width"),
    ],
)
def test_what_cannot_be_made_is_refused(make: object, place: str) -> None:
    assert callable(make)
    with pytest.raises(BadInput, match=f"^{place}: must be"):
        make()


def test_noise_is_the_same_however_much_of_it_is_looked_at() -> None:
    """A detail must show the same hills as the whole map."""
    xs, ys = np.linspace(-300, 900, 25), np.linspace(500, -200, 15)
    whole = fractal_noise(xs, ys, seed=4, wavelength=400, octaves=2)
    part = fractal_noise(xs[10:14], ys[3:9], seed=4, wavelength=400, octaves=2)
    np.testing.assert_allclose(whole[3:9, 10:14], part, atol=1e-5)
    assert whole.std() > 0.2


def test_a_contour_of_distances_is_a_circle() -> None:
    xs = ys = np.linspace(-10, 10, 81)
    away = np.hypot(xs[None, :], ys[:, None]).astype(np.float32)
    (circle,) = contours(xs, ys, away, 7.0)
    assert np.array_equal(circle[0], circle[-1])
    np.testing.assert_allclose(np.hypot(*circle.T), 7.0, atol=0.02)
    assert lengths(circle)[-1] == pytest.approx(2 * np.pi * 7, rel=0.01)


def test_a_contour_through_two_hills_has_two_rings_and_an_open_one_ends_at_the_edge() -> None:
    xs = ys = np.linspace(-10, 10, 81)
    hills = np.exp(-((np.abs(xs[None, :]) - 5) ** 2) - ys[:, None] ** 2).astype(np.float32)
    rings = contours(xs, ys, hills, 0.5)
    assert len(rings) == 2
    assert all(np.array_equal(ring[0], ring[-1]) for ring in rings)
    slope = np.broadcast_to(xs.astype(np.float32), (81, 81))
    (line,) = contours(xs, ys, slope, 0.1)
    np.testing.assert_allclose(line[:, 0], 0.1, atol=1e-6)
    assert sorted(line[[0, -1], 1]) == [-10, 10]


def test_labels_cover_neither_each_other_nor_the_frame() -> None:
    sheet = Sheet(None, Extent(0, 0, 1000, 1000), left=50, bottom=50, scale=10000)
    labels = Labels(sheet)
    rng = np.random.default_rng(5)
    placed: list[tuple[float, float, float, float]] = []
    for x, y in rng.uniform(sheet.left, sheet.right, (60, 2)):
        spot = labels.room(40, 9, x, y, reach=8)
        if spot is not None:
            box = (spot[0], spot[1], spot[0] + 40, spot[1] + 9)
            labels.cover(*box)
            placed.append(box)
    assert len(placed) > 20
    for index, (left, bottom, right, top) in enumerate(placed):
        assert left >= sheet.left
        assert right <= sheet.right
        assert bottom >= sheet.bottom
        assert top <= sheet.top
        for other in placed[:index]:
            apart = left >= other[2] or right <= other[0] or bottom >= other[3] or top <= other[1]
            assert apart
