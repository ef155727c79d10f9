"""Windows of event time: which there are, and which have closed.

Times are microseconds since 1970. Windows are as long as each other and do not overlap; one
begins in 1970. A window has closed when the watermark has reached its end: no row that is
still to come can belong to it.

Nothing in a window is a value too, namely 0. Of several such windows in a row only the first
can be news, so the others are never looked at, however many there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distributary.arrays import IntArray

__all__ = ["Advance", "closed_windows", "window_of", "windows_of"]


@dataclass(frozen=True)
class Advance:
    """How far a stream of quotes has come, and goes now.

    Attributes
    ----------
    before_us
        The watermark before, in microseconds since 1970; None in the beginning.
    watermark_us
        The watermark now.
    length_us
        How long windows are.
    tau
        By which share a rate may rise unreported.
    """

    before_us: int | None
    watermark_us: int
    length_us: int
    tau: float


def window_of(time_us: int, length_us: int) -> int:
    """Return where the window begins that a time is in."""
    return time_us // length_us * length_us


def windows_of(times_us: IntArray, length_us: int) -> IntArray:
    """Return where the window of each time begins."""
    return times_us // length_us * length_us


def closed_windows(
    present: IntArray, *, first_us: int | None, watermark_us: int, length_us: int
) -> IntArray:
    """Return the windows that have closed and may hold news, in order.

    Parameters
    ----------
    present
        The windows in which there is something.
    first_us
        The first window that was not looked at before; None when everything before the
        first of `present` is of no interest.
    watermark_us
        Windows that end at this time, or earlier, have closed.
    length_us
        How long windows are.
    """
    known = present if first_us is None else np.append(present, first_us)
    # After each of them a gap may begin: with a window in which there is nothing.
    every = np.unique(np.concatenate([known, known + length_us]))
    return every[every + length_us <= watermark_us]
