"""Traces: all versions of one object, and what becomes of them on the way down a tree.

The same rule as `ForwardingRule`, for a whole history and many children at once: planners
ask how often each tolerance would be served, over millions of versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.content import _tolerance_kernels as kernels
from distributary.content.divergence import (
    EDIT_CHARACTERS_MAX,
    Version,
    age_left_over_ns,
    code_points,
    count_left_over,
    left_over,
    relative_left_over,
)
from distributary.content.tolerance import EffectiveTolerance
from distributary.errors import BadInput, quoted

__all__ = ["LastSent", "Trace", "forwarded", "forwarded_counts", "thresholds_of"]

_NOT_TEXT = np.array([-1], dtype=np.int64)
_COLUMNS = {
    "absolute": kernels.ABSOLUTE,
    "relative": kernels.RELATIVE,
    "changes": kernels.CHANGES,
    "edit": kernels.EDIT,
    "age": kernels.AGE,
}
_LEFT_OVER = {
    "absolute": left_over,
    "changes": count_left_over,
    "edit": count_left_over,
    "age": age_left_over_ns,
}


@dataclass(frozen=True, eq=False)
class Trace:
    """The versions of one value of an object, in the order in which they came about.

    Attributes
    ----------
    values
        Numbers, NaN where the value is none, shape (N,).
    change_numbers, times_ns
        As in `Version`, shape (N,).
    codes, starts
        The texts as code points, one after the other; see `of`.
    """

    values: FloatArray
    change_numbers: IntArray
    times_ns: IntArray
    codes: IntArray
    starts: IntArray

    @classmethod
    def of_numbers(
        cls,
        values: FloatArray,
        *,
        times_ns: IntArray | None = None,
        change_numbers: IntArray | None = None,
    ) -> Trace:
        """Return the trace of a value that is always a number.

        Without change numbers every version is a change.
        """
        count = len(values)
        return cls(
            np.ascontiguousarray(values, dtype=np.float64),
            np.arange(count) if change_numbers is None else change_numbers,
            np.zeros(count, dtype=np.int64) if times_ns is None else times_ns,
            np.full(count, -1, dtype=np.int64),
            np.arange(count + 1),
        )

    @classmethod
    def of(cls, versions: Sequence[Version]) -> Trace:
        """Return the trace of any versions, numbers and texts alike."""
        texts = [
            code_points(version.value) if isinstance(version.value, str) else _NOT_TEXT
            for version in versions
        ]
        lengths = [len(text) for text in texts]
        return cls(
            np.array([version.number for version in versions], dtype=np.float64),
            np.array([version.change_number for version in versions], dtype=np.int64),
            np.array([version.time_ns for version in versions], dtype=np.int64),
            np.concatenate([np.empty(0, dtype=np.int64), *texts]),
            np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
        )

    def __len__(self) -> int:
        return len(self.values)


def forwarded(
    trace: Trace, children: Sequence[EffectiveTolerance], *, parent: EffectiveTolerance | None
) -> BoolArray:
    """Return which versions a parent forwards to each of its children, shape (children, N).

    Takes time proportional to versions times children; texts take the product of their
    lengths where they are compared.

    Effective tolerances have the built-in divergences only; the parent is None for the source.
    """
    return kernels.forwarded(
        trace.values,
        trace.codes,
        trace.starts,
        trace.change_numbers,
        trace.times_ns,
        thresholds_of(children, parent=parent),
        EDIT_CHARACTERS_MAX,
    )


def thresholds_of(
    children: Sequence[EffectiveTolerance], *, parent: EffectiveTolerance | None
) -> FloatArray:
    """Return what the compiled rules compare with, for each child, shape (children, kinds)."""
    thresholds = np.full((len(children), kernels.COLUMNS), -1.0)
    for row, child in zip(thresholds, children, strict=True):
        for name, amount in child.amounts.items():
            if name not in _COLUMNS:
                raise BadInput("divergence", f"{quoted(name)} has no compiled rule")
            own = 0.0 if parent is None else parent.amounts.get(name, amount)
            if name == "relative":
                row[kernels.RELATIVE : kernels.RELATIVE_DIVISOR + 1] = relative_left_over(
                    amount, own
                )
            else:
                row[_COLUMNS[name]] = _LEFT_OVER[name](amount, own)
    return thresholds


@dataclass(frozen=True, eq=False)
class LastSent:
    """What each of some children was sent last; `forwarded_counts` keeps it up to date.

    `begun` says whether anything was, shape (children,), as of the others.
    """

    begun: BoolArray
    values: FloatArray
    change_numbers: IntArray
    times_ns: IntArray

    @classmethod
    def nothing(cls, children: int) -> LastSent:
        """Return the state of children that were sent nothing yet."""
        return cls(
            np.zeros(children, dtype=np.bool_),
            np.zeros(children),
            np.zeros(children, dtype=np.int64),
            np.zeros(children, dtype=np.int64),
        )

    def taken(self, rows: IntArray) -> LastSent:
        """Return a copy of some rows."""
        return LastSent(
            self.begun[rows], self.values[rows], self.change_numbers[rows], self.times_ns[rows]
        )


def forwarded_counts(
    trace: Trace,
    thresholds: FloatArray,
    last: LastSent,
    *,
    portions: IntArray | None = None,
    portion_count: int = 1,
) -> IntArray:
    """Return how many versions `forwarded` marks for each child, shape (children, portions).

    Children with the same thresholds and the same last version are served once. Memory
    does not grow with the trace, and a trace may come in pieces.

    The values of the trace are never text. `thresholds` are those of `thresholds_of`, `last` is
    what children were sent last, changed in place, and `portions` the portion that each version
    counts in, in [0, portion_count); all in the first unless given.
    """
    if not len(thresholds):
        return np.zeros((0, portion_count), dtype=np.int64)
    columns = [
        np.ascontiguousarray(thresholds).view(np.int64),
        last.begun[:, None].astype(np.int64),
        last.values.view(np.int64)[:, None],
        last.change_numbers[:, None],
        last.times_ns[:, None],
    ]
    # Compared bit by bit: NaN is a value like any other here.
    _, firsts, alike = np.unique(np.hstack(columns), axis=0, return_index=True, return_inverse=True)
    served = last.taken(firsts)
    counts = np.zeros((len(firsts), portion_count), dtype=np.int64)
    kernels.forwarded_counts(
        trace.values,
        trace.change_numbers,
        trace.times_ns,
        np.zeros(len(trace), dtype=np.int64) if portions is None else portions,
        thresholds[firsts],
        served.begun,
        served.values,
        served.change_numbers,
        served.times_ns,
        counts,
    )
    alike = alike.reshape(-1)
    last.begun[:] = served.begun[alike]
    last.values[:] = served.values[alike]
    last.change_numbers[:] = served.change_numbers[alike]
    last.times_ns[:] = served.times_ns[alike]
    return counts[alike]
