"""The forwarding rule on arrays, compiled; `rounding` says why it may be trusted."""

from __future__ import annotations

import math

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.content import rounding
from distributary.kernels import inner_kernel, kernel

__all__ = [
    "ABSOLUTE",
    "AGE",
    "CHANGES",
    "COLUMNS",
    "EDIT",
    "RELATIVE",
    "RELATIVE_DIVISOR",
    "edit_distance",
    "forwarded",
    "forwarded_counts",
]

# The columns of the array of thresholds. One below 0 means that the kind is not asked for.
ABSOLUTE, RELATIVE, RELATIVE_DIVISOR, CHANGES, EDIT, AGE, COLUMNS = range(7)

_apart = kernel(rounding.apart)
_relative_threshold = kernel(rounding.relative_threshold)


@kernel
def edit_distance(a: IntArray, b: IntArray, characters_max: int) -> float:
    """Return the Levenshtein distance of two texts, given as code points.

    Texts longer than `characters_max` are infinitely far from every other text: the time
    grows with the product of the lengths, and the answer must not come out too small.
    """
    start = 0
    a_end, b_end = len(a), len(b)
    while start < a_end and start < b_end and a[start] == b[start]:
        start += 1
    if start == a_end and start == b_end:
        return 0.0
    if a_end > characters_max or b_end > characters_max:
        return math.inf
    while a_end > start and b_end > start and a[a_end - 1] == b[b_end - 1]:
        a_end -= 1
        b_end -= 1
    width = b_end - start
    row = np.arange(width + 1)
    for i in range(start, a_end):
        diagonal = row[0]
        row[0] += 1
        for j in range(width):
            above = row[j + 1]
            best = diagonal if a[i] == b[start + j] else min(diagonal, above, row[j]) + 1
            diagonal = above
            row[j + 1] = best
    return float(row[width])


@inner_kernel
def _ns_between(a: int, b: int) -> float:
    """Return the nanoseconds between two times; no pair of 64-bit times overflows."""
    if a >= b:
        return float(np.uint64(a) - np.uint64(b))
    return float(np.uint64(b) - np.uint64(a))


@inner_kernel
def _strayed(
    value: float,
    last_value: float,
    change: int,
    last_change: int,
    time_ns: int,
    last_time_ns: int,
    thresholds: FloatArray,
) -> bool:
    """Whether a version has reached a threshold of any kind but `edit`, shape (COLUMNS,)."""
    absolute = float(thresholds[ABSOLUTE])
    if absolute >= 0.0 and _apart(value, last_value, rounding.SLACK) >= absolute:
        return True
    numerator = float(thresholds[RELATIVE])
    if numerator >= 0.0:
        least = numerator
        if not math.isnan(value):
            least = _relative_threshold(numerator, value, thresholds[RELATIVE_DIVISOR])
        if _apart(value, last_value, rounding.SLACK) >= least:
            return True
    changes = float(thresholds[CHANGES])
    if changes >= 0.0 and float(abs(change - last_change)) >= changes:
        return True
    age = float(thresholds[AGE])
    return age >= 0.0 and _ns_between(time_ns, last_time_ns) >= age


@kernel
def forwarded(
    values: FloatArray,
    codes: IntArray,
    starts: IntArray,
    changes: IntArray,
    times_ns: IntArray,
    thresholds: FloatArray,
    characters_max: int,
) -> BoolArray:
    """Return which versions of one object a parent forwards to each of its children.

    `values`, `changes` and `times_ns` (N,) are what the parent gets, NaN where a value is no
    number, and `thresholds` (M, COLUMNS) a row per child. Version `n` has the text
    `codes[starts[n]:starts[n + 1]]` as code points; one that begins with -1 stands for a value
    that is not text. Texts longer than `characters_max` are infinitely far apart. The result is
    (M, N), and the first version is always forwarded.
    """
    children, versions = thresholds.shape[0], values.shape[0]
    sent = np.zeros((children, versions), dtype=np.bool_)
    for m in range(children):
        asked = thresholds[m]
        edit = asked[EDIT]
        last = -1
        for n in range(versions):
            send = last < 0 or _strayed(
                values[n],
                values[last],
                changes[n],
                changes[last],
                times_ns[n],
                times_ns[last],
                asked,
            )
            if not send and edit >= 0.0:
                new = codes[starts[n] : starts[n + 1]]
                old = codes[starts[last] : starts[last + 1]]
                is_text = len(new) == 0 or new[0] >= 0
                was_text = len(old) == 0 or old[0] >= 0
                if is_text != was_text:
                    send = True
                else:
                    send = edit_distance(new, old, characters_max) >= edit
            if send:
                sent[m, n] = True
                last = n
    return sent


@kernel
def forwarded_counts(
    values: FloatArray,
    changes: IntArray,
    times_ns: IntArray,
    portions: IntArray,
    thresholds: FloatArray,
    begun: BoolArray,
    last_values: FloatArray,
    last_changes: IntArray,
    last_times_ns: IntArray,
    counts: IntArray,
) -> None:
    """Count the versions that `forwarded` would mark, of an object that is never text.

    Takes no memory for each version, and goes on where it stopped: a history may come in
    pieces.

    Arrays are those of `forwarded`. `portions` (N,) is the column of `counts` (M, P) that each
    version counts in. `begun` (M,) says whether a child was sent anything before, the next three
    what it was sent last; these and `counts` are changed in place.
    """
    for m in range(thresholds.shape[0]):
        asked = thresholds[m]
        # No two values are texts, so that all are 0 apart.
        always = 0.0 <= asked[EDIT] <= 0.0
        has = begun[m]
        value, change, time_ns = last_values[m], last_changes[m], last_times_ns[m]
        for n in range(values.shape[0]):
            if (
                not has
                or always
                or _strayed(values[n], value, changes[n], change, times_ns[n], time_ns, asked)
            ):
                has = True
                value, change, time_ns = values[n], changes[n], times_ns[n]
                counts[m, portions[n]] += 1
        begun[m] = has
        last_values[m], last_changes[m], last_times_ns[m] = value, change, time_ns
