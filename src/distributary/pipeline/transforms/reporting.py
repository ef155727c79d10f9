"""When a measured value is worth reporting again.

Planners act on what is reported, and a re-plan costs more than a rate that is a little off:
the first value is reported, unless it is 0, and then only one that has left
`[1/(1+tau), 1+tau]` times the value that was reported last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.errors import BadInput
from distributary.pipeline.transforms._reporting_kernels import report

__all__ = ["TAU", "Reported", "checked_tau", "reported"]

TAU = 0.2
"""By which share a value may rise before it is news; it may fall by as much as undoes that."""


class Reported(NamedTuple):
    """What is reported of some sequences of values.

    Attributes
    ----------
    marks
        Which values are, shape (R,).
    befores
        What had been reported last when each value came, NaN for nothing, shape (R,).
    previous
        What is reported last of each sequence now, NaN for nothing, shape (K,).
    """

    marks: BoolArray
    befores: FloatArray
    previous: FloatArray


def checked_tau(tau: float) -> float:
    """Return `tau`, or raise `BadInput` when it is not a share that makes sense."""
    if not 0.0 <= tau < np.inf:
        raise BadInput("--tau", f"must be at least 0, not {tau}")
    return tau


def reported(values: FloatArray, begins: IntArray, previous: FloatArray, *, tau: float) -> Reported:
    """Decide which values of some sequences are reported.

    Parameters
    ----------
    values
        Values of at least 0: all sequences, one after the other, shape (R,).
    begins
        Where each sequence begins, and where the last one ends, shape (K + 1,).
    previous
        What was reported last of each before, NaN for nothing, shape (K,).
    tau
        By which share a value may rise unreported.
    """
    marks = np.zeros(len(values), dtype=np.bool_)
    befores = np.full(len(values), np.nan)
    latest = previous.astype(np.float64)
    report(values, begins, 1.0 + tau, latest, marks, befores)
    return Reported(marks, befores, latest)
