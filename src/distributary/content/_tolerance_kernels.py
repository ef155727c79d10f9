"""Divergences and the forwarding rule on arrays, compiled.

Containment is proved in real numbers; a double can be off by half a step. Two roundings
keep the proof true of what is computed:

- A divergence may come out one step too high (four for `relative`, which divides), so the
  amounts that brokers work with are that many steps below the amounts asked for. A copy
  inside the lower amount in real numbers is then inside the amount asked for as computed.
- A threshold is rounded down after every operation. Rounding to nearest is monotone: where
  the true divergence reaches a threshold that is a double, so does the rounded one. Hence
  only the threshold's own rounding could let a copy slip outside, and only upwards.
"""

from __future__ import annotations

import math

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import kernel

__all__ = [
    "ABSOLUTE",
    "AGE",
    "CHANGES",
    "COLUMNS",
    "EDIT",
    "RELATIVE",
    "RELATIVE_DIVISOR",
    "difference",
    "edit_distance",
    "forwarded",
    "forwarded_counts",
    "relative_difference",
    "relative_threshold",
    "stepped_down",
    "threshold",
]

# The columns of the array of thresholds. One below 0 means that the kind is not asked for.
ABSOLUTE, RELATIVE, RELATIVE_DIVISOR, CHANGES, EDIT, AGE, COLUMNS = range(7)


@kernel
def stepped_down(amount: float, steps: int) -> float:
    """Return the double that is `steps` below a positive amount; 0 stays 0."""
    for _ in range(steps):
        if amount > 0.0:
            amount = np.nextafter(amount, 0.0)
    return amount


@kernel
def threshold(child: float, parent: float) -> float:
    """Return `child - parent`, rounded down; 0 when the parent's amount is the larger."""
    if child <= parent:
        return 0.0
    rounded = child - parent
    # What rounding added, exactly (Knuth's two-sum).
    back = rounded - child
    error = (child - (rounded - back)) - (parent + back)
    return np.nextafter(rounded, 0.0) if error < 0.0 else rounded


@kernel
def relative_threshold(numerator: float, value: float, divisor: float) -> float:
    """Return `numerator * |value| / divisor`, rounded down after both operations.

    A product beyond the largest double becomes the largest double, not infinity.
    """
    if numerator == 0.0 or value == 0.0:
        return 0.0
    quotient = float(np.nextafter(numerator * abs(value), 0.0))
    if divisor != 1.0:
        quotient = float(np.nextafter(quotient / divisor, 0.0))
    return quotient


@kernel
def difference(a: float, b: float) -> float:
    """Return `|a - b|`. NaN stands for a value that is not a number: 0 to itself, else infinite."""
    if math.isnan(a) or math.isnan(b):
        return 0.0 if math.isnan(a) and math.isnan(b) else math.inf
    return 0.0 if a == b else abs(a - b)  # Infinity less infinity would be NaN.


@kernel
def relative_difference(value: float, copy: float) -> float:
    """Return `|value - copy| / |value|`; infinite when only the value is 0."""
    apart = difference(value, copy)
    if apart == 0.0:
        return 0.0
    if value == 0.0 or not (math.isfinite(value) and math.isfinite(copy)):
        return math.inf
    if math.isinf(apart):  # Two huge values of opposite sign; halves are exact there.
        return abs(0.5 * value - 0.5 * copy) / abs(0.5 * value)
    return apart / abs(value)


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


@kernel
def _ns_between(a: int, b: int) -> float:
    """Return the nanoseconds between two times; no pair of 64-bit times overflows."""
    if a >= b:
        return float(np.uint64(a) - np.uint64(b))
    return float(np.uint64(b) - np.uint64(a))


@kernel
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
    if absolute >= 0.0 and difference(value, last_value) >= absolute:
        return True
    numerator = float(thresholds[RELATIVE])
    if numerator >= 0.0:
        least = numerator
        if not math.isnan(value):
            least = relative_threshold(numerator, value, thresholds[RELATIVE_DIVISOR])
        if difference(value, last_value) >= least:
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

    Parameters
    ----------
    values
        The value of each version the parent gets, NaN where it is no number, shape (N,).
    codes, starts
        The texts of the versions as code points: version `n` has
        `codes[starts[n]:starts[n + 1]]`, shape (N + 1,) for `starts`. A text that begins
        with -1 stands for a value that is not text.
    changes, times_ns
        Change numbers and source times, shape (N,).
    thresholds
        One row per child, shape (M, COLUMNS); see the constants above.
    characters_max
        Longer texts are infinitely far apart.

    Returns
    -------
    forwarded
        Shape (M, N). The first version is always forwarded.
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

    Parameters
    ----------
    values, changes, times_ns
        As in `forwarded`, shape (N,).
    portions
        The column of `counts` that each version counts in, shape (N,).
    thresholds
        As in `forwarded`, shape (M, COLUMNS).
    begun, last_values, last_changes, last_times_ns
        Whether each child was sent anything before, and what it was sent last, shape (M,);
        changed in place.
    counts
        Shape (M, P); added to in place.
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
