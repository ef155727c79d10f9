"""When frames are shown: the smallest clock on which the frames of a source fall.

Encoders and containers count time in ticks. A source at a constant rate gets a tick per
frame, so that every frame keeps its place and none is added or lost. One whose frames come
as they please gets a finer clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

__all__ = ["tick_rate"]

# A tick beside which a frame may lie: containers round times, to milliseconds for instance.
_TICK_TOLERANCE = 0.25
# Codecs have no use for slower clocks, nor for faster ones than the finest.
_SLOWEST = Fraction(1, 100)
_NUMERATOR_MAX = 0xFFFF
_FINE_RATES = (Fraction(120), Fraction(1000))


def tick_rate(seconds: Sequence[float], *, proposed: Iterable[Fraction | None]) -> Fraction:
    """Return ticks a second of a clock on which frames fall.

    Frames are shown at these `seconds`, ascending, from 0. `proposed` are rates that the header
    suggests, the most trusted first; one that does not hold is passed over.
    """
    finest = _FINE_RATES[-1]
    for rate in proposed:
        if rate is not None and _SLOWEST <= rate <= finest and _fall_on_ticks(seconds, float(rate)):
            # Codecs have 16 bits for the numerator.
            return rate.limit_denominator(_NUMERATOR_MAX // math.ceil(rate))
    for rate in _FINE_RATES[:-1]:
        ticks = [round(second * rate) for second in seconds]
        if len(set(ticks)) == len(ticks):
            return rate
    return finest


def _fall_on_ticks(seconds: Sequence[float], rate: float) -> bool:
    before = -1
    for second in seconds:
        tick = round(second * rate)
        if tick <= before or abs(second * rate - tick) > _TICK_TOLERANCE:
            return False
        before = tick
    return True
