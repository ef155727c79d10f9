"""The sound of the clip: the engine of the drone, with a beep a second."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["SAMPLES_PER_SECOND", "engine_sound"]

SAMPLES_PER_SECOND = 44_100
_BEEP_SECONDS = 0.08


def engine_sound(seconds: float, *, seed: int = 0) -> NDArray[np.float32]:
    """Return the sound of the clip, left and right: a hum, wind, and a beep at every second.

    Shaped [2, samples], from -1 to 1.
    """
    time = np.arange(round(seconds * SAMPLES_PER_SECOND)) / SAMPLES_PER_SECOND
    rng = np.random.default_rng([seed, 8])
    revolutions = 92 * time + 3 * np.sin(2 * np.pi * time / 7)
    hum = sum(np.sin(2 * np.pi * k * revolutions + k) / k**1.4 for k in (1, 2, 3, 4, 6, 8))
    wind = np.convolve(rng.standard_normal(len(time)), np.ones(48) / 48, mode="same")
    swell = 1 + 0.3 * np.sin(2 * np.pi * time / 3.3)
    beep = 0.4 * np.sin(2 * np.pi * 1000 * time) * (time % 1 < _BEEP_SECONDS)
    left = 0.11 * hum * swell + 0.5 * wind + beep
    right = 0.11 * hum / swell - 0.5 * wind + beep
    return np.stack([left, right]).clip(-1, 1).astype(np.float32)
