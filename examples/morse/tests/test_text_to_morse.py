"""The tones say what the text does: they are read back by ear, so to speak."""

# ruff: noqa: D103  (the names of tests are sentences)

from __future__ import annotations

import array
import io
import itertools
import wave

import pytest
from distributary_morse import TextToMorse
from distributary_morse.alphabet import CODES, code_words

from distributary.content.media_type import MediaType
from distributary.media.failure import Unconvertible
from distributary.media.limits import Limits

TEXT = MediaType.parse("text/plain;charset=utf-8")
MORSE = MediaType.parse("audio/wav;code=morse")
LETTERS = {code: letter for letter, code in CODES.items()}


def heard(content: bytes, *, wpm: int = 20) -> str:
    """Return what an operator would write down on hearing the tones."""
    with wave.open(io.BytesIO(content)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 8000)
        samples = array.array("h", file.readframes(file.getnframes()))
        assert len(samples) == file.getnframes()
    dot = round(1.2 / wpm * 8000)
    loud = [
        max(map(abs, samples[begin : begin + dot])) > 8000 for begin in range(0, len(samples), dot)
    ]
    text, code = "", ""
    for tone, run in itertools.groupby(loud):
        length = len(list(run))
        if tone:
            code += {1: ".", 3: "-"}[length]
        elif length > 1:
            text += LETTERS[code] + {3: "", 7: " "}[length]
            code = ""
    return text + LETTERS[code]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("e", "E"),
        ("Paris", "PARIS"),
        ("CQ CQ de\n\tK1ABC", "CQ CQ DE K1ABC"),
        ("Größe, naïve? 42", "GROSSE, NAIVE? 42"),
        ("\ufeffone → two", "ONE TWO"),
        ("".join(CODES), "".join(CODES)),
    ],
)
def test_the_tones_are_read_back_as_the_text(text: str, expected: str) -> None:
    assert heard(TextToMorse().convert(text.encode(), TEXT, MORSE, Limits())) == expected


@pytest.mark.parametrize("wpm", [5, 12, 40])
def test_the_speed_is_counted_in_words_like_paris(wpm: int) -> None:
    target = MediaType.parse(f"audio/wav;code=morse;wpm={wpm}")
    content = TextToMorse().convert(b"paris " * 10, TEXT, target, Limits())
    assert heard(content, wpm=wpm) == " ".join(["PARIS"] * 10)
    with wave.open(io.BytesIO(content)) as file:
        # The gap after the last word is not sent.
        dots = 10 * 50 - 7
        assert file.getnframes() / 8000 == pytest.approx(dots * 1.2 / wpm, rel=0.01)


def test_its_parts_are_those_of_the_standard() -> None:
    assert len(CODES) == len(LETTERS) == 26 + 10 + 13
    assert code_words("SOS  tt") == [["...", "---", "..."], ["-", "-"]]


@pytest.mark.parametrize(
    ("source", "target", "possible"),
    [
        ("text/plain;charset=utf-8", "audio/wav;code=morse", True),
        ("text/plain", "audio/wav;code=morse", True),
        ("text/plain;charset=utf-8", "audio/wav;code=morse;wpm=12", True),
        ("text/plain;charset=utf-8", "audio/wav;code=morse;wpm=99", False),
        ("text/plain;charset=utf-8", "audio/wav;code=morse;wpm=fast", False),
        ("text/plain;charset=utf-8", "audio/wav;code=morse;pitch=600", False),
        ("text/plain;charset=utf-8", "audio/wav", False),
        ("text/plain;charset=utf-16", "audio/wav;code=morse", False),
        ("text/html;charset=utf-8", "audio/wav;code=morse", False),
    ],
)
def test_it_does_what_it_understands_and_nothing_else(
    source: str, target: str, possible: bool
) -> None:
    converts = TextToMorse().converts(MediaType.parse(source), MediaType.parse(target))
    assert converts is possible


@pytest.mark.parametrize(
    ("content", "limits", "kind"),
    [
        (b"\xff\xfe", Limits(), "damaged"),
        ("→".encode(), Limits(), "damaged"),
        (b"", Limits(), "damaged"),
        (b"paris", Limits(output_bytes=10_000), "output"),
        (b"paris", Limits(frames=1), "frames"),
        (b"m" * 100_000, Limits(), "output"),
    ],
)
def test_what_cannot_be_sent_is_refused_before_a_tone_is_made(
    content: bytes, limits: Limits, kind: str
) -> None:
    with pytest.raises(Unconvertible) as refusal:
        TextToMorse().convert(content, TEXT, MORSE, limits)
    assert refusal.value.kind == kind
