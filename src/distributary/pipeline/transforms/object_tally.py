"""How many versions of one object each of its followers is sent.

The rule is that of the broker: a version is compared with the one that was *sent* last. So
versions are looked at in the order of their times, and what was sent last is remembered
from one piece of the history to the next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.content.trace import LastSent, Trace, forwarded_counts
from distributary.pipeline.transforms.followers import ObjectFollowers
from distributary.pipeline.transforms.reporting import reported
from distributary.pipeline.transforms.windows import Advance, closed_windows, window_of, windows_of

__all__ = ["ObjectTally", "RateNews", "since_ns"]

_NS_PER_US = 1000
_US_PER_SECOND = 1e6
# Differences of times beyond three centuries are all the same to everybody.
_US_MAX = (2**63 - 1) // _NS_PER_US


def since_ns(times_us: IntArray, first_us: int) -> IntArray:
    """Return the time since the first version, as the filter's rules have it."""
    elapsed: IntArray = np.minimum(times_us - first_us, _US_MAX) * _NS_PER_US
    return elapsed


class RateNews(NamedTuple):
    """Rates of closed windows that are to be reported; every array has an entry for each.

    Followers are places in `ObjectTally.followers`, windows are where they begin, values are
    updates per second, and `befores` what was reported before, NaN for nothing.
    """

    followers: IntArray
    windows_us: IntArray
    values: FloatArray
    befores: FloatArray


class ObjectTally:
    """One object: what its followers were sent, and how many versions there were.

    Attributes
    ----------
    followers
        The servers, and what they ask for.
    last
        What each was sent last; times count from the first version.
    sent
        How many versions each was sent.
    window_sent
        How many of them in the window that is still open.
    reported
        The rate that was reported last for each; NaN for none.
    versions, first_us, last_us
        How many versions there were, and the times of the first and the last.
    """

    def __init__(self, followers: ObjectFollowers) -> None:
        count = len(followers.servers)
        self.followers = followers
        self.last = LastSent.nothing(count)
        self.sent = np.zeros(count, dtype=np.int64)
        self.window_sent = np.zeros(count, dtype=np.int64)
        self.reported = np.full(count, np.nan)
        self.versions = 0
        self.first_us = 0
        self.last_us = 0
        self._held: tuple[IntArray, FloatArray] | None = None

    def add(self, times_us: IntArray, values: FloatArray) -> None:
        """Take the next versions, sorted by time and value.

        Of versions of one time the last counts. So the last one of all waits for what
        comes next; `finish` lets it go.
        """
        if self._held is not None:
            times_us = np.concatenate([self._held[0], times_us])
            values = np.concatenate([self._held[1], values])
        if not len(times_us):
            return
        # A copy: it must not keep the batch, nor be read-only, which is another type to a
        # compiler.
        self._held = times_us[-1:].copy(), values[-1:].copy()
        settled = times_us[1:] != times_us[:-1]
        self._count(times_us[:-1][settled], values[:-1][settled])

    def finish(self) -> None:
        """Take the version that `add` has kept waiting."""
        if self._held is not None:
            times_us, values = self._held
            self._held = None
            self._count(times_us, values)

    def rates(self) -> FloatArray:
        """Return the updates per second of each follower, over the time of all versions.

        They are 0 for an object of one version: no time has passed.
        """
        seconds = (self.last_us - self.first_us) / _US_PER_SECOND
        return self.sent / seconds if seconds > 0.0 else np.zeros(len(self.sent))

    def advance(self, times_us: IntArray, values: FloatArray, advance: Advance) -> RateNews:
        """Take versions from before the watermark, and close the windows that end by it.

        No two versions are of one time, and they are in order.
        """
        length_us = advance.length_us
        known = self.versions > 0 and advance.before_us is not None
        first_us = window_of(int(advance.before_us or 0), length_us) if known else None
        windows = windows_of(times_us, length_us)
        closed = closed_windows(
            np.unique(windows),
            first_us=first_us,
            watermark_us=advance.watermark_us,
            length_us=length_us,
        )
        open_us = window_of(advance.watermark_us, length_us)
        counted = np.append(closed, open_us)
        counts = self._count(
            times_us, values, np.searchsorted(counted, windows), portion_count=len(counted)
        )
        if first_us is not None:
            counts[:, np.searchsorted(counted, first_us)] += self.window_sent
        self.window_sent = counts[:, -1].copy()
        rates = counts[:, :-1] / (length_us / _US_PER_SECOND)
        followers, width = rates.shape
        told = reported(
            rates.reshape(-1), np.arange(followers + 1) * width, self.reported, tau=advance.tau
        )
        self.reported = told.previous
        chosen = np.flatnonzero(told.marks)
        return RateNews(
            chosen // max(width, 1),
            closed[chosen % max(width, 1)],
            rates.reshape(-1)[chosen],
            told.befores[chosen],
        )

    def _count(
        self,
        times_us: IntArray,
        values: FloatArray,
        portions: IntArray | None = None,
        *,
        portion_count: int = 1,
    ) -> IntArray:
        count = len(times_us)
        if count:
            if self.versions == 0:
                self.first_us = int(times_us[0])
            self.last_us = int(times_us[-1])
        trace = Trace.of_numbers(
            values,
            times_ns=since_ns(times_us, self.first_us),
            change_numbers=np.arange(self.versions, self.versions + count),
        )
        self.versions += count
        counts = forwarded_counts(
            trace,
            self.followers.thresholds,
            self.last,
            portions=portions,
            portion_count=portion_count,
        )
        self.sent += counts.sum(axis=1)
        return counts
