"""Text read aloud."""

from __future__ import annotations

import io
import re
import wave
from collections.abc import Iterator, Mapping
from typing import ClassVar

from distributary.content.media_type import MediaType
from distributary.media.converter import Converter
from distributary.media.converters.espeak import SAMPLE_BYTES, Espeak, espeak_version
from distributary.media.converters.text_encoding import decoded
from distributary.media.failure import FailureKind, Unconvertible
from distributary.media.formats import SPEECH, SPEECH_PARAMETERS, TEXT
from distributary.media.limits import Limits
from distributary.media.spoken_text import first_item, numbered_item, whole_text

__all__ = ["CHARACTERS_MAX", "TextToSpeech"]

_REVISION = "2"
CHARACTERS_MAX = 800
"""How much is read unless more is asked for: less than a minute."""

_WAV_HEADER_BYTES = 44
# Of `Limits.frames`, which counts sound by thousands of samples.
_SAMPLES_A_FRAME = 1000

# Some are commands to the voice: 1 begins one that changes speed, pitch or volume.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_ALL = "all"
_ITEM = re.compile(rf"{_ALL}|[0-9]{{1,3}}")
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z0-9]{2,8})?")


class TextToSpeech(Converter):
    """Reads a text aloud, as mono WAV.

    It reads what `first_item` chooses, up to `CHARACTERS_MAX`; with `item=3`, all of the item or
    chapter 3; and with `item=all` everything. The voice is that of a `language`, English unless
    given. What looks like markup is read as it stands: text comes from strangers, and must not
    be able to steer the voice.
    """

    name = "text-to-speech"
    packages = (("espeakng_loader", "speech"),)
    parameters: ClassVar[Mapping[str, str]] = {
        "item": "a number that an item or a chapter of the text has, or all",
        "language": "a code of two or three letters, such as de or pt-br",
    }

    @property
    def version(self) -> str:
        """Our revision and the library that speaks."""
        return f"{_REVISION} {espeak_version()}"

    def conversions(self) -> Iterator[tuple[MediaType, MediaType]]:
        """Yield the one conversion, from UTF-8; other charsets are a step before."""
        yield TEXT, SPEECH

    def converts(self, source: MediaType, target: MediaType) -> bool:
        """Whether text in UTF-8 is to become speech, of a part and in a voice that there may be."""
        said = target.parameters
        return (
            target.essence == SPEECH.essence
            and source in (TEXT, MediaType("text", "plain"))
            and said.keys() <= set(SPEECH_PARAMETERS)
            and _ITEM.fullmatch(said.get("item", _ALL).lower()) is not None
            and _LANGUAGE.fullmatch(said.get("language", "en").lower()) is not None
        )

    def convert(
        self, content: bytes, source: MediaType, target: MediaType, limits: Limits
    ) -> bytes:
        """Return the speech as a WAV file."""
        text = _chosen(decoded(content, source), target.parameters.get("item", "").lower())
        spoken = _CONTROLS.sub(" ", text)
        if not spoken.strip():
            raise Unconvertible("damaged", "the text has nothing to read aloud")
        samples_max = min(
            limits.frames * _SAMPLES_A_FRAME,
            (limits.output_bytes - _WAV_HEADER_BYTES) // SAMPLE_BYTES,
        )
        with Espeak(target.parameters.get("language", "en").lower()) as voice:
            samples = voice.say(spoken, samples_max=samples_max)
            if samples is None:
                kind: FailureKind = (
                    "frames" if samples_max == limits.frames * _SAMPLES_A_FRAME else "output"
                )
                raise Unconvertible(
                    kind, f"the speech is longer than {samples_max:,} samples, which are allowed"
                )
            if not any(samples):
                raise Unconvertible("damaged", "the text has nothing that the voice can read")
            written = io.BytesIO()
            with wave.open(written, "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(SAMPLE_BYTES)
                file.setframerate(voice.rate)
                file.writeframes(samples)
        return written.getvalue()


def _chosen(text: str, item: str) -> str:
    """Return the part of a text that is asked for."""
    if item == _ALL:
        return whole_text(text)
    if not item:
        return _shortened(first_item(text))
    found = numbered_item(text, int(item))
    if found is None:
        raise Unconvertible("impossible", f"the text has no item {int(item)}")
    return found


def _shortened(item: str) -> str:
    """Return as much of an item as is read, up to the end of a sentence or at least a word."""
    if len(item) <= CHARACTERS_MAX:
        return item
    beginning = item[: CHARACTERS_MAX + 1]
    for end in (". ", "! ", "? ", " "):
        position = beginning.rfind(end)
        if position > CHARACTERS_MAX // 2:
            return beginning[: position + 1].rstrip()
    return item[:CHARACTERS_MAX]
