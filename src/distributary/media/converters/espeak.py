"""The library that speaks, eSpeak NG, by way of its C interface."""

from __future__ import annotations

import ctypes
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from distributary.errors import quoted
from distributary.media.failure import Unconvertible

__all__ = ["SAMPLE_BYTES", "Espeak", "espeak_version", "languages"]

SAMPLE_BYTES = 2

# From speak_lib.h.
_SYNCHRONOUS = 2
_DONT_EXIT = 0x8000
_POSITION_CHARACTER = 1
_CHARS_UTF8 = 1
_RATE_PARAMETER, _PITCH_PARAMETER = 1, 3
_GO_ON, _STOP = 0, 1

# Codes by which people know some languages of the library.
_ALIASES = {"zh": "cmn", "no": "nb", "en-gb": "en"}
_WORDS_PER_MINUTE = 165
_PITCH = 50

_Heard = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)


class Espeak:
    """A voice that has not spoken before.

    The library keeps the phase of its oscillators and the place in its table of flutter
    from one text to the next, and offers no way to reset them: the same text never sounds
    quite the same again, though it does in every fresh process. So it is unloaded after
    every text, which takes 4 ms, and speech can be kept by the hash of its text.
    One at a time: its state belongs to the process.

    It speaks a language by its code, in lower case. `rate` is in samples a second.
    """

    rate: int

    def __init__(self, language: str = "en") -> None:
        self._language = _ALIASES.get(language, language)
        # Asked for a voice that it lacks, the library looks for files of that name.
        if self._language not in languages():
            raise Unconvertible("impossible", f"there is no voice for {quoted(language)}")

    def __enter__(self) -> Self:
        import espeakng_loader

        self._library: Any = ctypes.CDLL(espeakng_loader.get_library_path())
        self._library.espeak_Synth.argtypes = [
            ctypes.c_char_p,
            ctypes.c_size_t,
            ctypes.c_uint,
            ctypes.c_int,
            ctypes.c_uint,
            ctypes.c_uint,
            ctypes.c_void_p,
            ctypes.c_void_p,
        ]
        data = espeakng_loader.get_data_path().encode()
        self.rate = self._library.espeak_Initialize(_SYNCHRONOUS, 0, data, _DONT_EXIT)
        if self.rate <= 0:
            self._unload()
            raise RuntimeError(f"the voice cannot be set up (error {self.rate})")
        return self

    def __exit__(self, *_: object) -> None:
        self._library.espeak_Terminate()
        self._unload()

    def say(self, text: str, *, samples_max: int) -> bytes | None:
        """Return a text as samples of 16 bits, or None if there would be more than allowed.

        The text has no control characters. It is read as it stands: neither SSML nor the
        library's own notation of phonemes means anything here.
        """
        samples = bytearray()

        def hear(buffer: Any, count: int, _: object) -> int:
            if buffer and count > 0:
                samples.extend(ctypes.string_at(buffer, count * SAMPLE_BYTES))
            return _STOP if len(samples) > samples_max * SAMPLE_BYTES else _GO_ON

        heard = _Heard(hear)  # kept by this name for as long as the library may call it
        self._library.espeak_SetSynthCallback(heard)
        if self._library.espeak_SetVoiceByName(self._language.encode()):
            raise RuntimeError(f"the voice for {quoted(self._language)} does not load")
        self._library.espeak_SetParameter(_RATE_PARAMETER, _WORDS_PER_MINUTE, 0)
        self._library.espeak_SetParameter(_PITCH_PARAMETER, _PITCH, 0)
        words = text.encode() + b"\0"
        if self._library.espeak_Synth(
            words, len(words), 0, _POSITION_CHARACTER, 0, _CHARS_UTF8, None, None
        ):
            raise RuntimeError("the voice failed")
        self._library.espeak_Synchronize()
        return bytes(samples) if len(samples) <= samples_max * SAMPLE_BYTES else None

    def _unload(self) -> None:
        close = ctypes.CDLL(None).dlclose
        close.argtypes = [ctypes.c_void_p]
        close(self._library._handle)


def languages() -> frozenset[str]:
    """Return the codes of the languages that there are voices for."""
    import espeakng_loader

    folder = Path(espeakng_loader.get_data_path()) / "lang"
    return frozenset(path.name.lower() for path in folder.rglob("*") if path.is_file())


def espeak_version() -> str:
    """Return the version of the package that carries library and voices."""
    return f"espeakng-loader-{version('espeakng-loader')}"
