"""Sample content: as it comes along, cut to other sizes, and stamped with a seed."""

from __future__ import annotations

import io
import re
import wave
from importlib.resources import files

import av
import numpy as np
import pypdfium2 as pdfium
import pytest
from PIL import Image

from distributary.errors import BadInput, MissingPackage
from distributary.media.samples import clip_mp4, map_pdf, notice_text, photo_jpeg, tone_wav
from distributary.media.samples.tone import SAMPLES_PER_SECOND
from distributary.media.spoken_text import first_item


def page_texts(content: bytes) -> list[str]:
    document = pdfium.PdfDocument(content)
    try:
        return [page.get_textpage().get_text_range().replace("\r\n", "\n") for page in document]
    finally:
        document.close()


def test_what_comes_along_is_small() -> None:
    """It is in every installation, whether somebody looks at it or not."""
    names = ("map.pdf", "clip.mp4", "photo.jpg", "notice.txt")
    sizes = [len((files("distributary.media.samples") / name).read_bytes()) for name in names]
    assert sum(sizes) < 2_100_000


def test_the_whole_map_is_read_aloud_from_the_first_description() -> None:
    """The list on the first page has numbers too; they must not be taken for items."""
    texts = page_texts(map_pdf())
    assert len(texts) == 4
    numbers = re.findall(r"^(\d+)\. ", texts[1], re.MULTILINE)
    assert numbers == [str(number) for number in range(1, 14)]
    assert first_item("\n\n".join(texts)).startswith("Bridge closed. ")


@pytest.mark.parametrize("pages", [2, 3, 8, 11])
def test_a_map_has_the_pages_that_are_asked_for_and_grows_with_them(pages: int) -> None:
    content = map_pdf(pages)
    assert map_pdf(pages) == content
    whole = page_texts(map_pdf())
    assert page_texts(content) == [whole[page % 4] for page in range(pages)]
    assert 150_000 * pages < len(content) < 350_000 * pages


def test_a_clip_has_the_length_the_size_and_the_sound_that_are_asked_for() -> None:
    content = clip_mp4(0.4, width=176, height=144)
    assert clip_mp4(0.4, width=176, height=144) == content
    with av.open(io.BytesIO(content), "r") as container:
        picture, sound = container.streams.video[0], container.streams.audio[0]
        assert (picture.width, picture.height) == (176, 144)
        assert picture.average_rate == 25
        assert (picture.codec.name, sound.codec.name) == ("h264", "aac")
        assert container.duration == pytest.approx(400_000, abs=50_000)
        assert len(list(container.decode(picture))) == 10


def test_a_long_clip_begins_again_with_its_sound_and_grows_with_its_length() -> None:
    """What is published is longer than what comes along; so is what it is measured with."""
    content = clip_mp4(12, width=176, height=144)
    with av.open(io.BytesIO(content), "r") as container:
        picture, sound = container.streams.video[0], container.streams.audio[0]
        assert picture.duration is not None
        assert picture.time_base is not None
        assert sound.duration is not None
        assert sound.time_base is not None
        assert picture.duration * picture.time_base == 12
        # A frame of the codec more, and no more: sound and picture do not drift apart.
        assert 12 <= sound.duration * sound.time_base < 12 + 2 * 1024 / 44_100
        frames = [
            frame.to_ndarray(format="gray").astype(int) for frame in container.decode(picture)
        ]
    assert len(frames) == 300
    for number in (0, 60, 124):
        again = np.abs(frames[number] - frames[number + 125]).mean()
        assert again < np.abs(frames[number] - frames[number + 30]).mean() / 2
    assert len(content) > 1.8 * len(clip_mp4(6, width=176, height=144))


def test_the_whole_clip_is_as_it_comes_along() -> None:
    with av.open(io.BytesIO(clip_mp4()), "r") as container:
        picture = container.streams.video[0]
        assert (picture.width, picture.height, picture.frames) == (640, 480, 125)
        assert container.duration == pytest.approx(5_000_000, abs=50_000)


@pytest.mark.parametrize("width", [2560, 480])
def test_a_photo_is_as_wide_as_asked_for_and_full_of_detail(width: int) -> None:
    content = photo_jpeg(width)
    assert photo_jpeg(width) == content
    with Image.open(io.BytesIO(content)) as picture:
        assert picture.format == "JPEG"
        assert picture.size == (width, round(width * 2 / 3))
        pixels = np.asarray(picture.convert("L"), float)
    # Sky above, land below: brighter and smoother than what it is over.
    upper, lower = np.array_split(pixels, 2)
    assert upper[: len(upper) // 2].mean() > lower[len(lower) // 3 :].mean() + 20


def test_a_tone_is_audible_and_as_long_as_asked_for() -> None:
    content = tone_wav(1.5, seed=2)
    assert tone_wav(1.5, seed=2) == content
    with wave.open(io.BytesIO(content)) as file:
        assert file.getparams()[:3] == (1, 2, SAMPLES_PER_SECOND)
        assert file.getnframes() == round(1.5 * SAMPLES_PER_SECOND)
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768
    assert 0.1 < np.sqrt(np.mean(samples**2)) < 0.5


def test_a_notice_has_paragraphs_items_and_letters_of_many_alphabets() -> None:
    text = notice_text()
    assert [int(number) for number in re.findall(r"^(\d+)\. ", text, re.MULTILINE)] == list(
        range(1, 14)
    )
    assert first_item(text).startswith("Bridge closed. ")
    assert {"ß", "é", "€", "я", "学"} & set(text) >= {"ß", "é", "€"}
    with pytest.raises(UnicodeEncodeError):
        text.encode("latin-1")


def test_a_seed_is_stamped_where_converters_find_it() -> None:
    assert page_texts(map_pdf(2, seed=7))[0].endswith("Exercise 7")
    assert notice_text(7) == f"{notice_text()}\nExercise 7.\n"
    assert first_item(notice_text(7)) == first_item(notice_text())
    pictures = []
    for seed in (0, 7, 8):
        with Image.open(io.BytesIO(photo_jpeg(480, seed))) as picture:
            pictures.append(np.asarray(picture.convert("L"), float))
    plain, seven, eight = pictures
    corner = (slice(-40, None), slice(0, 120))
    assert np.abs(plain - seven)[corner].max() > 100
    assert np.abs(seven - eight)[corner].max() > 100
    seen = []
    for seed in (0, 7):
        with av.open(io.BytesIO(clip_mp4(0.1, 176, 144, seed=seed)), "r") as container:
            seen.append(next(container.decode(video=0)).to_ndarray(format="gray").astype(int))
    assert np.abs(seen[0] - seen[1])[-30:, :80].max() > 100


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda: map_pdf(1), "pages"),
        (lambda: map_pdf(201), "pages"),
        (lambda: clip_mp4(0), "seconds"),
        (lambda: clip_mp4(601), "seconds"),
        (lambda: clip_mp4(float("nan")), "seconds"),
        (lambda: clip_mp4(1, width=639), "width"),
        (lambda: clip_mp4(1, height=2000), "height"),
        (lambda: photo_jpeg(10), "width"),
        (lambda: tone_wav(-1), "seconds"),
    ],
)
def test_what_cannot_be_made_is_refused(make: object, place: str) -> None:
    assert callable(make)
    with pytest.raises(BadInput, match=f"^{place}: must be"):
        make()


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it comes along, content needs no packages at all."""
    for package in ("pypdfium2", "PIL", "PIL.Image", "av"):
        monkeypatch.setitem(__import__("sys").modules, package, None)
    assert map_pdf()
    assert clip_mp4()
    assert photo_jpeg()
    with pytest.raises(MissingPackage, match=r"cutting .* needs pypdfium2.*distributary\[media\]"):
        map_pdf(2)
