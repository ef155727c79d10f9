"""Lookups: tests on the text at a key, by which subscriptions are found.

It equals, starts with or ends with a text. Each lookup has a number, in a hash table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import IntArray, UintArray
from distributary.filters._decision_kernels import Decisions
from distributary.filters._text_kernels import TextArrays, enter
from distributary.filters.decision import ENDS, EQUALS, STARTS
from distributary.kernels import inner_kernel, kernel

__all__ = [
    "Keys",
    "Lookups",
    "code_of",
    "code_of_step",
    "enter_lookups",
    "find_lookup",
    "rehash_lookups",
]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
_BITS = np.uint64(63)


class Lookups(NamedTuple):
    """A hash table of lookups.

    Attributes
    ----------
    table
        Numbers of lookups, int32, a power of two of them; -1 is free.
    codes
        By lookup: operation, key and text in one number.
    users
        By lookup: how many subscriptions have it in a clause.
    used
        How many lookups there are, group 0 among them, in an array of one.
    """

    table: NDArray[np.int32]
    codes: UintArray
    users: NDArray[np.int32]
    used: IntArray


class Keys(NamedTuple):
    """What lookups there are for each key.

    Attributes
    ----------
    equals
        Whether there is a lookup of a whole text.
    starts, ends
        The lengths, modulo 64, of the texts to start and end with, as bits.
    starts_max, ends_max
        The greatest of these lengths; -1 for none.
    """

    equals: NDArray[np.uint8]
    starts: UintArray
    ends: UintArray
    starts_max: NDArray[np.int32]
    ends_max: NDArray[np.int32]


@kernel
def code_of(op: int, key: int, text: int) -> np.uint64:
    """Return a lookup as one number: the operation, the key and the text."""
    return (np.uint64(op) << np.uint64(60)) | (np.uint64(key) << np.uint64(32)) | np.uint64(text)


@inner_kernel
def code_of_step(step: Any) -> np.uint64:
    """Return the lookup of a step of a decision."""
    return code_of(int(np.int64(step.op)), int(np.int64(step.key)), int(np.int64(step.text)))


@kernel
def _mixed(code: np.uint64) -> np.uint64:
    mixed = code * _MIX
    return mixed ^ (mixed >> _SHIFT)


@inner_kernel
def find_lookup(lookups: Lookups, code: np.uint64) -> int:
    """Return the number of a lookup, or -1."""
    mask = np.uint64(lookups.table.shape[0] - 1)
    place = _mixed(code) & mask
    while True:
        found = lookups.table[place]
        if found < 0 or lookups.codes[found] == code:
            return int(found)
        place = (place + np.uint64(1)) & mask


@kernel
def rehash_lookups(lookups: Lookups) -> None:
    """Enter all lookups into a fresh table."""
    for lookup in range(1, lookups.used[0]):
        enter(lookups.table, _mixed(lookups.codes[lookup]), lookup)


@kernel
def enter_lookups(
    decisions: Decisions, first: int, end: int, lookups: Lookups, keys: Keys, texts: TextArrays
) -> None:
    """Enter all lookups of the clauses of some slots; there must be room for them."""
    for slot in range(first, end):
        start = decisions.starts[slot]
        for place in range(start, start + decisions.required[slot]):
            step = decisions.steps[place]
            if step.op > ENDS:
                continue
            code = code_of_step(step)
            lookup = find_lookup(lookups, code)
            if lookup < 0:
                lookup = lookups.used[0]
                lookups.used[0] = lookup + 1
                lookups.codes[lookup] = code
                lookups.users[lookup] = 0
                enter(lookups.table, _mixed(code), lookup)
                length = texts.starts[step.text + 1] - texts.starts[step.text]
                bit = np.uint64(1) << (np.uint64(length) & _BITS)
                if step.op == EQUALS:
                    keys.equals[step.key] = 1
                elif step.op == STARTS:
                    keys.starts[step.key] |= bit
                    keys.starts_max[step.key] = max(keys.starts_max[step.key], length)
                else:
                    keys.ends[step.key] |= bit
                    keys.ends_max[step.key] = max(keys.ends_max[step.key], length)
            lookups.users[lookup] += 1
