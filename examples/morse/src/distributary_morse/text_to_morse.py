"""The converter: from text to the tones of Morse code."""

from __future__ import annotations

import array
import io
import math
import sys
import wave
from collections.abc import Iterable, Mapping
from typing import ClassVar

from distributary.content.media_type import MediaType
from distributary.media.converter import Converter
from distributary.media.failure import Unconvertible
from distributary.media.limits import Limits
from distributary_morse.alphabet import code_words

__all__ = ["TextToMorse"]

_TEXT = MediaType("text", "plain", {"charset": "utf-8"})
_MORSE = MediaType("audio", "wav", {"code": "morse"})

_RATE_HZ = 8000
_TONE_HZ = 600
_LOUDNESS = 0.5
# Tones that begin and end at once click; these take five milliseconds to do so.
_RAMP_SAMPLES = _RATE_HZ // 200
_WPM_USUAL = 20
_WPM_RANGE = range(5, 41)
# Lengths in dots, as the standard has them: between tones, letters and words.
_DASH, _GAP, _LETTER_GAP, _WORD_GAP = 3, 1, 3, 7


class TextToMorse(Converter):
    """Sends a text by tones, at so many words a minute (parameter `wpm`)."""

    name = "text-to-morse"
    parameters: ClassVar[Mapping[str, str]] = {"code": "morse", "wpm": "5 to 40"}
    # What a file of it is called: `distributary convert call.txt call.morse` needs no --to.
    suffixes: ClassVar[Mapping[str, MediaType]] = {".morse": _MORSE}

    @property
    def version(self) -> str:
        """Its own revision; it depends on nothing else."""
        return "1"

    def conversions(self) -> Iterable[tuple[MediaType, MediaType]]:
        """Return the one conversion to list."""
        yield _TEXT, _MORSE

    def converts(self, source: MediaType, target: MediaType) -> bool:
        """Whether this is text in UTF-8 that becomes Morse code at a speed we can send."""
        speed = target.parameters.get("wpm", str(_WPM_USUAL))
        return (
            source.essence == _TEXT.essence
            and source.parameters.keys() <= {"charset"}
            and source.parameters.get("charset", "utf-8").lower() == "utf-8"
            and target.essence == _MORSE.essence
            and target.parameters.get("code") == "morse"
            and target.parameters.keys() <= {"code", "wpm"}
            and speed.isascii()
            and speed.isdecimal()
            and len(speed) <= 2
            and int(speed) in _WPM_RANGE
        )

    def convert(
        self, content: bytes, source: MediaType, target: MediaType, limits: Limits
    ) -> bytes:
        """Return a WAV file, 8,000 samples a second of 16 bits on one channel."""
        try:
            words = code_words(content.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise Unconvertible("damaged", f"the text is not UTF-8 at byte {error.start}") from None
        if not words:
            raise Unconvertible("damaged", "no character of the text has a Morse code")
        # A dot is a fiftieth of the word PARIS, which is what speeds are counted in.
        dot = round(1.2 / int(target.parameters.get("wpm", _WPM_USUAL)) * _RATE_HZ)
        samples = dot * _length_in_dots(words)
        if 2 * samples > limits.output_bytes:
            raise Unconvertible(
                "output", f"{2 * samples:,} bytes exceed the limit of {limits.output_bytes:,}"
            )
        if samples > 1000 * limits.frames:
            raise Unconvertible(
                "frames", f"{samples:,} samples exceed the limit of {1000 * limits.frames:,}"
            )
        tones = {".": _tone(dot), "-": _tone(_DASH * dot)}
        gap, letter_gap, word_gap = (
            bytes(2 * dot * length) for length in (_GAP, _LETTER_GAP, _WORD_GAP)
        )
        letters = {code: gap.join(tones[sign] for sign in code) for word in words for code in word}
        file = io.BytesIO()
        with wave.open(file, "wb") as output:
            output.setnchannels(1)
            output.setsampwidth(2)
            output.setframerate(_RATE_HZ)
            output.setnframes(samples)
            for number, word in enumerate(words):
                spoken = letter_gap.join(letters[code] for code in word)
                output.writeframesraw(word_gap + spoken if number else spoken)
        return file.getvalue()


def _length_in_dots(words: list[list[str]]) -> int:
    """Return how long it takes to send the words, before a tone of it is made."""
    signs = sum(
        sum(_DASH if sign == "-" else 1 for sign in code) + _GAP * (len(code) - 1)
        for word in words
        for code in word
    )
    between_letters = sum(len(word) - 1 for word in words)
    return signs + _LETTER_GAP * between_letters + _WORD_GAP * (len(words) - 1)


def _tone(length: int) -> bytes:
    """Return a tone of so many samples that swells and fades like a bell curve."""
    samples = array.array("h")
    for place in range(length):
        edge = min(place, length - 1 - place)
        swell = (
            1.0 if edge >= _RAMP_SAMPLES else 0.5 - 0.5 * math.cos(math.pi * edge / _RAMP_SAMPLES)
        )
        wave_height = math.sin(2 * math.pi * _TONE_HZ * place / _RATE_HZ)
        samples.append(round(32_767 * _LOUDNESS * swell * wave_height))
    if sys.byteorder == "big":
        samples.byteswap()
    return samples.tobytes()
