"""Tones that rise and fall, as a sound to convert."""

from __future__ import annotations

import io
import wave

import numpy as np

from distributary.errors import BadInput

__all__ = ["SAMPLES_PER_SECOND", "tone_wav"]

SAMPLES_PER_SECOND = 44_100
_SECONDS_MAX = 3600.0
_TONES_HZ = (440.0, 554.37, 659.25, 880.0, 659.25, 554.37)


def tone_wav(seconds: float = 5, seed: int = 0) -> bytes:
    """Return tones in turn with pauses between, as WAV: 16 bits, mono, 44,100 samples a second.

    It takes at most an hour, and the file grows by 88 kB with each second. The seed says which of
    the tones comes first, and how loud the noise behind them is.
    """
    if not 0 < seconds <= _SECONDS_MAX:
        raise BadInput(
            "seconds", f"must be more than 0 and at most {_SECONDS_MAX:g}, not {seconds}"
        )
    time = np.arange(round(seconds * SAMPLES_PER_SECOND)) / SAMPLES_PER_SECOND
    rng = np.random.default_rng([seed, 9])
    step = (time / 0.5).astype(np.int64) + int(rng.integers(len(_TONES_HZ)))
    pitch = np.array(_TONES_HZ)[step % len(_TONES_HZ)]
    within = time % 0.5
    # Swells and fades, so that no tone begins or ends with a crack.
    loud = np.clip(within / 0.02, 0, 1) * np.clip((0.42 - within) / 0.08, 0, 1)
    phase = 2 * np.pi * pitch * within
    voice = np.sin(phase) + 0.35 * np.sin(2 * phase) + 0.15 * np.sin(3 * phase)
    samples = 0.45 * loud * voice + rng.uniform(0.002, 0.006) * rng.standard_normal(len(time))
    output = io.BytesIO()
    with wave.open(output, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLES_PER_SECOND)
        file.writeframes((samples.clip(-1, 1) * 32767).astype("<i2").tobytes())
    return output.getvalue()
