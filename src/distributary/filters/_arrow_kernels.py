"""Filling events from the flattened maps of an Arrow batch, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.filters._decision_kernels import Events
from distributary.filters._text_kernels import TextArrays, find
from distributary.kernels import kernel

__all__ = ["fill_numbers", "fill_texts", "find_keys"]

_SLASH = 47


@kernel
def find_keys(
    keys: TextArrays,
    data: NDArray[np.uint8],
    offsets: IntArray,
    valid: BoolArray,
    first: int,
    pointers: bool,
    found: NDArray[np.int32],
) -> None:
    """Write the numbers of the keys of map entries from `first` on; -1 for those nobody reads.

    With `pointers` set, only keys that begin with a slash count, and else only the others.
    """
    for i in range(found.shape[0]):
        entry = first + i
        found[i] = -1
        begin = offsets[entry]
        length = offsets[entry + 1] - begin
        if valid[entry] and length > 0 and (data[begin] == _SLASH) == pointers:
            found[i] = find(keys, data, begin, length)


@kernel
def fill_texts(
    events: Events,
    entries: IntArray,
    present: BoolArray,
    keys: NDArray[np.int32],
    offsets: IntArray,
    valid: BoolArray,
    shift: int,
) -> None:
    """Enter the texts of map entries into the events.

    Event `e` has the entries from `entries[e]` to `entries[e + 1]`, if `present` says that it has
    the map at all. By entry, from `entries[0]` on: `keys` are the numbers of keys, `offsets` where
    texts begin, `shift` before their places in the events' data, and `valid` if there is one.
    """
    for event in range(present.shape[0]):
        if not present[event]:
            continue
        for entry in range(entries[event], entries[event + 1]):
            key = keys[entry - entries[0]]
            if key >= 0 and valid[entry]:
                events.begins[event, key] = offsets[entry] + shift
                events.lengths[event, key] = offsets[entry + 1] - offsets[entry]


@kernel
def fill_numbers(
    numbers: FloatArray,
    entries: IntArray,
    present: BoolArray,
    keys: NDArray[np.int32],
    values: FloatArray,
) -> None:
    """Enter the numbers of map entries, as above; `values` begins at `entries[0]` as well."""
    for event in range(present.shape[0]):
        if not present[event]:
            continue
        for entry in range(entries[event], entries[event + 1]):
            key = keys[entry - entries[0]]
            value = values[entry - entries[0]]
            if key >= 0 and np.isfinite(value):
                numbers[event, key] = value
