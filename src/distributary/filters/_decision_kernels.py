"""Walking through decisions, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import FloatArray, IntArray
from distributary.filters._text_kernels import TextArrays, find
from distributary.filters.decision import (
    ACCEPT,
    ENDS,
    EQUALS,
    REJECT,
    STARTS,
    UNKNOWN,
    WITHIN,
)
from distributary.kernels import inner_kernel, kernel

__all__ = [
    "DEAD",
    "Decisions",
    "Events",
    "decide",
    "find_texts",
    "is_required_interval",
    "with_room",
]

_SLOT_BITS = 0x7FFFFFFF
_TOUCHED_AHEAD = 64
_TOUCHED_STEPS = 16
_STEPS_A_LINE = 2
_ROOM = 64

DEAD = -1
"""The number of steps of a subscription that was removed."""


class Decisions(NamedTuple):
    """The decisions of all subscriptions, by slot.

    `steps` are records of `decision.STEP`; of each slot there is its first step, how many it has
    (or DEAD), and how many are clauses.
    """

    steps: NDArray[np.void]
    starts: IntArray
    counts: NDArray[np.int32]
    required: NDArray[np.int32]


class Events(NamedTuple):
    """Events as compiled loops read them: a row for each event, a column for each key.

    Attributes
    ----------
    numbers
        The number at each key, or NaN.
    begins, lengths
        Where the text at each key is in `data`; a negative length is no text.
    texts
        The number of that text in the index's table, or -1 when no filter has it.
    data
        Bytes.
    """

    numbers: FloatArray
    begins: IntArray
    lengths: NDArray[np.int32]
    texts: NDArray[np.int32]
    data: NDArray[np.uint8]


@kernel
def with_room(array: IntArray, used: int) -> IntArray:
    """Return the array, or a larger copy when there is no room for 64 behind those used."""
    if used + _ROOM <= array.shape[0]:
        return array
    larger = np.empty(2 * array.shape[0] + _ROOM, np.int64)
    # A loop: a copy of a slice takes longer to compile than all the rest of a small function.
    for i in range(used):
        larger[i] = array[i]
    return larger


@inner_kernel
def is_required_interval(decisions: Decisions, start: int, place: int) -> bool:
    """Is the step at `place` an interval that is a clause by itself?

    `start` is the first step of the decision, and `place` lies among its clauses.
    """
    step = decisions.steps[place]
    if step.op != WITHIN or step.on_false != REJECT:
        return False
    return place == start or decisions.steps[place - 1].on_false == REJECT


@inner_kernel
def find_texts(events: Events, texts: TextArrays) -> None:
    """Look up every text of the events in the index's table."""
    for event in range(events.lengths.shape[0]):
        for key in range(events.lengths.shape[1]):
            length = int(np.int64(events.lengths[event, key]))
            if length >= 0:
                events.texts[event, key] = find(
                    texts, events.data, events.begins[event, key], length
                )


@inner_kernel
def _touch(decisions: Decisions, candidates: IntArray) -> int:
    """Read from the steps of candidates, so that they are in the cache when they are needed.

    Candidates are all over memory, and a walk cannot begin before its steps arrive. These
    reads depend on nothing, so many of them are under way at once. The sum only keeps the
    compiler from leaving them out.
    """
    starts = decisions.starts
    steps = decisions.steps
    total = 0
    for i in range(candidates.shape[0]):
        total += starts[(candidates[i] >> 1) & _SLOT_BITS]
    for i in range(candidates.shape[0]):
        if candidates[i] & 1:
            continue
        slot = (candidates[i] >> 1) & _SLOT_BITS
        begin = starts[slot]
        end = min(begin + _TOUCHED_STEPS, starts[slot + 1])
        for place in range(begin, end, _STEPS_A_LINE):
            total += steps[place].key
    return total


@inner_kernel
def decide(
    decisions: Decisions,
    texts: TextArrays,
    events: Events,
    candidates: IntArray,
    pairs: IntArray,
    count: int,
) -> tuple[IntArray, int]:
    """Walk through the decisions of candidates, and add those that match to `pairs`.

    Parameters
    ----------
    candidates, pairs
        An event and a slot in one number: `event << 32 | slot << 1`. The lowest bit is set
        in candidates that match for certain, without a walk; and in `pairs` where the walk
        ended without an answer, for Python to find it.
    count
        How many pairs there are already.

    Returns
    -------
        The pairs, in a larger array when there was no room, and how many there are now.
    """
    steps = decisions.steps
    numbers = events.numbers
    lengths = events.lengths
    arena = texts.arena
    data = events.data
    touched = np.zeros(1, np.int64)
    for i in range(candidates.shape[0]):
        if i % _TOUCHED_AHEAD == 0:
            touched[0] += _touch(decisions, candidates[i : i + _TOUCHED_AHEAD])
        event = candidates[i] >> 32
        slot = (candidates[i] >> 1) & _SLOT_BITS
        steps_left = decisions.counts[slot]
        if steps_left == DEAD:
            continue
        first = decisions.starts[slot]
        place = ACCEPT if steps_left == 0 or candidates[i] & 1 else 0
        while place >= 0:
            step = steps[first + place]
            key = step.key
            holds = False
            if step.op == WITHIN:
                number = numbers[event, key]
                holds = step.low <= number and number <= step.high
            elif step.op == EQUALS:
                holds = events.texts[event, key] == step.text
            elif step.op == STARTS or step.op == ENDS:
                start = texts.starts[step.text]
                length = texts.starts[step.text + 1] - start
                if lengths[event, key] >= length:
                    holds = True
                    begin = events.begins[event, key]
                    way = 1
                    if step.op == ENDS:
                        begin += lengths[event, key] - 1
                        way = -1
                    for j in range(length):
                        if data[begin + way * j] != arena[start + j]:
                            holds = False
                            break
            elif step.op == UNKNOWN:
                break
            place = step.on_true if holds else step.on_false
        if place == REJECT:
            continue
        pairs = with_room(pairs, count)
        pairs[count] = (event << 32) | (slot << 1) | (place != ACCEPT)
        count += 1
    return pairs, count
