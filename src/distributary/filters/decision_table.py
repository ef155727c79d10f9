"""The decisions of all subscriptions, in arrays that grow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from distributary.filters._decision_kernels import DEAD, Decisions
from distributary.filters.decision import ENDS, STEP, WITHIN, Decision
from distributary.filters.growth import grown
from distributary.filters.text_table import TextTable

__all__ = ["DecisionTable", "encoded"]


class DecisionTable:
    """Decisions by slot. Slots are given out in order and never again."""

    def __init__(self) -> None:
        self.arrays = Decisions(
            np.empty(0, STEP), np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int32)
        )
        self.slots = 0

    def reserve(self, slots: int, steps: int) -> None:
        """Make room for so many more."""
        arrays, first = self.arrays, self.slots
        used = int(arrays.starts[first])
        self.arrays = Decisions(
            grown(arrays.steps, used, used + steps),
            grown(arrays.starts, first + 1, first + 1 + slots),
            grown(arrays.counts, first, first + slots),
            grown(arrays.required, first, first + slots),
        )

    def append(
        self,
        steps: NDArray[np.void],
        counts: NDArray[np.int32],
        required: NDArray[np.int32],
    ) -> int:
        """Add decisions, one after the other in `steps`, and return the first of their slots."""
        self.reserve(len(counts), len(steps))
        first, end = self.slots, self.slots + len(counts)
        used = int(self.arrays.starts[first])
        self.arrays.steps[used : used + len(steps)] = steps
        np.cumsum(counts, out=self.arrays.starts[first + 1 : end + 1])
        self.arrays.starts[first + 1 : end + 1] += used
        self.arrays.counts[first:end] = counts
        self.arrays.required[first:end] = required
        self.slots = end
        return first

    def remove(self, slots: NDArray[np.int32]) -> None:
        """Make the decisions of these slots reject everything."""
        self.arrays.counts[slots] = DEAD
        self.arrays.required[slots] = 0

    def copied(
        self, slots: NDArray[np.int32]
    ) -> tuple[NDArray[np.void], NDArray[np.int32], NDArray[np.int32]]:
        """Return what `append` takes to add the decisions of these slots again."""
        counts = self.arrays.counts[slots]
        ends = np.cumsum(counts)
        places = np.arange(int(ends[-1]) if len(ends) else 0)
        places += np.repeat(self.arrays.starts[slots] - (ends - counts), counts)
        return self.arrays.steps[places], counts, self.arrays.required[slots]


def encoded(
    decisions: Sequence[Decision], keys: TextTable, texts: TextTable
) -> tuple[NDArray[np.void], NDArray[np.int32], NDArray[np.int32]]:
    """Return decisions as arrays, with the numbers of their keys and texts."""
    flat = [step for item in decisions for step in item.steps]
    steps = np.zeros(len(flat), STEP)
    steps["op"] = [step.op for step in flat]
    steps["on_true"] = [step.on_true for step in flat]
    steps["on_false"] = [step.on_false for step in flat]
    steps["low"] = [step.interval.low for step in flat]
    steps["high"] = [step.interval.high for step in flat]
    keyed = np.flatnonzero(steps["op"] <= WITHIN)
    steps["key"][keyed] = keys.add([flat[i].key for i in keyed])
    worded = np.flatnonzero(steps["op"] <= ENDS)
    steps["text"][worded] = texts.add(
        [flat[i].text for i in worded], (steps["op"][worded] == ENDS).astype(np.uint8)
    )
    return (
        steps,
        np.array([len(item.steps) for item in decisions], np.int32),
        np.array([item.required for item in decisions], np.int32),
    )
