"""Text read aloud: audible, about as long as it takes to say, and the same every time."""

from __future__ import annotations

import io
import wave

import numpy as np
import pytest

from distributary.content.media_type import MediaType
from distributary.media.converters.speech import CHARACTERS_MAX, TextToSpeech
from distributary.media.failure import Unconvertible
from distributary.media.formats import SPEECH, TEXT
from distributary.media.limits import Limits

ITEM = "The old mill by the river was built in seventeen ninety and is open on Sundays."


def spoken(text: str, said: str = "", **limits: int) -> bytes:
    """Return the speech of a text, of what the parameters ask for."""
    target = MediaType.parse(f"{SPEECH}{said}")
    assert TextToSpeech().converts(TEXT, target)
    return TextToSpeech().convert(text.encode(), TEXT, target, Limits(**limits))


def heard(content: bytes) -> tuple[float, np.ndarray]:
    """Return the seconds and the samples, from -1 to 1."""
    with wave.open(io.BytesIO(content)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 22_050)
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32_768
    return len(samples) / 22_050, samples


def refusal(text: str, **limits: int) -> Unconvertible:
    with pytest.raises(Unconvertible) as raised:
        spoken(text, "", **limits)
    return raised.value


def test_only_text_in_utf_8_is_read_aloud() -> None:
    assert list(TextToSpeech().conversions()) == [(TEXT, SPEECH)]
    assert TextToSpeech().converts(MediaType.parse("text/plain"), SPEECH)
    for source, target in (
        ("text/plain;charset=utf-16", "audio/wav"),
        ("text/plain;charset=utf-8", "audio/wav;voice=de"),
        ("text/plain;charset=utf-8", 'audio/wav;language="../../de"'),
        ("text/plain;charset=utf-8", "audio/wav;item=first"),
        ("text/plain;charset=utf-8", "audio/mpeg"),
        ("application/pdf", "audio/wav"),
    ):
        assert not TextToSpeech().converts(MediaType.parse(source), MediaType.parse(target))


def test_speech_is_audible_and_takes_as_long_as_saying_it() -> None:
    seconds, samples = heard(spoken(ITEM))
    words = len(ITEM.split())
    assert 60 * words / 260 < seconds < 60 * words / 110  # words a minute
    assert 0.03 < np.sqrt(np.mean(samples**2)) < 0.5
    assert np.abs(samples).max() < 1
    # It goes up and down as speech does, rather than humming at one level.
    levels = [np.sqrt(np.mean(part**2)) for part in np.array_split(samples, 50)]
    assert max(levels) > 5 * (min(levels) + 1e-4)


def test_the_same_text_is_the_same_bytes_whatever_was_said_before() -> None:
    first = spoken(ITEM)
    other = spoken("Something else, at some length, to move the voice on.")
    assert spoken(ITEM) == first != other
    assert spoken(ITEM) == first


def test_only_the_first_item_is_read() -> None:
    assert spoken(f"Map of the town\n\n1. {ITEM}\n2. The lighthouse.\n") == spoken(ITEM)


def test_an_item_is_read_by_its_number_and_everything_if_asked_for() -> None:
    text = f"Map of the town\n\n1. {ITEM}\n2. The lighthouse is closed.\n\nPublished today."
    assert spoken(text, ";item=2") == spoken("The lighthouse is closed.")
    assert spoken(text, ";item=1") == spoken(text)
    seconds = heard(spoken(text, ";item=all"))[0]
    parts = ("Map of the town", f"1. {ITEM}", "2. The lighthouse is closed.", "Published today.")
    assert seconds == pytest.approx(sum(heard(spoken(part))[0] for part in parts), rel=0.25)
    long = "The ferry leaves at seven. " * 100
    assert heard(spoken(long, ";item=all"))[0] > 2 * heard(spoken(long))[0]
    with pytest.raises(Unconvertible, match="the text has no item 3") as raised:
        spoken(text, ";item=3")
    assert raised.value.kind == "impossible"


def test_a_language_has_its_own_voice() -> None:
    text = "Die Brücke ist wegen Hochwasser gesperrt."
    german = spoken(text, ";language=de")
    assert german != spoken(text)
    assert german == spoken(text, ";language=DE")
    assert spoken(text, ";language=en") == spoken(text)
    assert heard(spoken("\u53d7\u4ed8", ";language=zh"))[0] > 0.3
    for unknown in ("xx", "mb", "tlh-latn"):
        with pytest.raises(Unconvertible, match=f"no voice for '{unknown}'") as raised:
            spoken(text, f";language={unknown}")
        assert raised.value.kind == "impossible"


def test_markup_is_read_as_it_stands_and_cannot_steer_the_voice() -> None:
    """Silence of an hour, a change of speed and phonemes are all words like others."""
    plain = heard(spoken("open the door"))[0]
    for steering in ('<break time="3600s"/>', "<speak>", "[[h@'loU]]"):
        assert plain < heard(spoken(f"open {steering} the door"))[0] < plain + 8
    assert spoken("open \x01" + "400S the door") == spoken("open 400S the door")
    assert spoken("open\x02 the\x7f door\x9b") == spoken("open the door")


@pytest.mark.parametrize("text", ["", " \n\n", "... -- !", "\x01\x02"])
def test_a_text_with_nothing_to_say_is_refused(text: str) -> None:
    failure = refusal(text)
    assert failure.kind == "damaged"
    assert failure.reason == "the text has nothing to read aloud"


def test_content_that_is_not_text_is_damaged() -> None:
    with pytest.raises(Unconvertible, match="not utf-8 text") as raised:
        TextToSpeech().convert(b"RIFF\xff\xff\0\0WAVE", TEXT, SPEECH, Limits())
    assert raised.value.kind == "damaged"


def test_a_long_item_is_read_to_the_end_of_a_sentence_within_reason() -> None:
    sentence = "The ferry leaves at seven. "
    fits = CHARACTERS_MAX // len(sentence)
    assert spoken(sentence * 10_000) == spoken(sentence * fits)
    assert spoken("word " * 10_000) == spoken("word " * (CHARACTERS_MAX // 5))
    assert 30 < heard(spoken("word " * 10_000))[0] < 90


def test_a_word_without_end_is_cut() -> None:
    assert heard(spoken("a" * 100_000))[0] < 600


def test_speech_stops_at_the_limits_of_sound_and_output() -> None:
    size = len(spoken(ITEM))
    assert refusal(ITEM, output_bytes=size - 1).kind == "output"
    assert spoken(ITEM, output_bytes=size)
    assert refusal(ITEM, frames=22).kind == "frames"
    assert refusal(ITEM, output_bytes=10).kind == "output"
