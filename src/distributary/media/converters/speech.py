"""Text read aloud."""

from __future__ import annotations

import io
import re
import wave
from collections.abc import Iterator

from distributary.content.media_type import MediaType
from distributary.media.converter import Converter
from distributary.media.converters.espeak import SAMPLE_BYTES, Espeak, espeak_version
from distributary.media.converters.text_encoding import decoded
from distributary.media.failure import FailureKind, Unconvertible
from distributary.media.first_item import first_item
from distributary.media.formats import SPEECH, TEXT
from distributary.media.limits import Limits

__all__ = ["CHARACTERS_MAX", "TextToSpeech"]

_REVISION = "1"
CHARACTERS_MAX = 2000
"""How much of an item is read: about two minutes. Whoever wants a book asks for its text."""

_WAV_HEADER_BYTES = 44
# Of `Limits.frames`, which counts sound by thousands of samples.
_SAMPLES_A_FRAME = 1000

# Some are commands to the voice: 1 begins one that changes speed, pitch or volume.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class TextToSpeech(Converter):
    """Reads the first item of a text aloud, or its first paragraph, as mono WAV.

    What looks like markup is read as it stands: text comes from strangers, and must not be
    able to steer the voice.
    """

    name = "text-to-speech"
    packages = (("espeakng_loader", "speech"),)

    @property
    def version(self) -> str:
        """Our revision and the library that speaks."""
        return f"{_REVISION} {espeak_version()}"

    def conversions(self) -> Iterator[tuple[MediaType, MediaType]]:
        """Yield the one conversion, from UTF-8; other charsets are a step before."""
        yield TEXT, SPEECH

    def converts(self, source: MediaType, target: MediaType) -> bool:
        """Whether text in UTF-8 is to become speech."""
        return target == SPEECH and source in (TEXT, MediaType("text", "plain"))

    def convert(
        self, content: bytes, source: MediaType, target: MediaType, limits: Limits
    ) -> bytes:
        """Return the speech as a WAV file."""
        spoken = _shortened(_CONTROLS.sub(" ", first_item(decoded(content, source))))
        if not spoken:
            raise Unconvertible("damaged", "the text has nothing to read aloud")
        samples_max = min(
            limits.frames * _SAMPLES_A_FRAME,
            (limits.output_bytes - _WAV_HEADER_BYTES) // SAMPLE_BYTES,
        )
        with Espeak() as voice:
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
