"""The model with all its arrays, run stretch by stretch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from distributary.arrays import FloatArray, UintArray
from distributary.errors import TooLarge
from distributary.fidelity import FidelityProblem, Forest
from distributary.simulator.queueing import _event_kernels as kernels
from distributary.simulator.queueing._stream_kernels import build_routes, draw_updates
from distributary.xorshift import seed_state

__all__ = ["Model"]

_UPDATES_MAX = 20_000_000
_UPDATE_BYTES = 56
_HEAP_FIRST = 1_024


class Model:
    """A stream on its way through trees of servers.

    A change of trees takes nothing back: an update goes all the way through the trees that
    were in use when it was published. That is how the paper has it, where data take the old
    path until the new one is there, and nothing is lost or comes twice.

    Parameters
    ----------
    problems
        From when on which problem describes the nodes; the first from 0 on.
    seconds
        How long the source publishes.
    window_s, collect_s
        How long the windows are for the series, and for the statistics of `steps`.
    """

    def __init__(
        self,
        problems: Sequence[tuple[float, FidelityProblem]],
        *,
        seconds: float,
        window_s: float,
        collect_s: float,
        seed: int,
    ) -> None:
        problem = problems[0][1]
        n, objects = problem.rates.shape
        # Whole numbers would be another type to the compiler, which takes seconds over each.
        self.seconds = seconds = float(seconds)
        self._window_s = float(window_s)
        self._collect_s = float(collect_s)
        generators = seed_state(seed, count=n + objects)
        # The generators of the objects come first: what is published does not depend on how
        # many servers there are.
        self._updates = _updates(problems, seconds, generators[:objects])
        self._conditions = _conditions(problems)
        self._nodes = kernels.NodeStates(
            generators[objects:].copy(), np.zeros(n), np.zeros(n, dtype=np.int64)
        )
        windows = math.ceil(seconds / window_s)
        collected = math.ceil(seconds / collect_s) if math.isfinite(collect_s) else 1
        self.tally = kernels.Tally(
            np.zeros((n, objects, 4)),
            np.full((n, objects), -1, dtype=np.int64),
            np.zeros((n, windows)),
            np.zeros((n, windows)),
            np.zeros((n, windows)),
            np.zeros((n, 3)),
            np.zeros((n, collected, 4)),
        )
        self._routes = _routes(1, n, objects)
        self._version = -1
        self._counters = np.zeros(3, dtype=np.int64)
        self._heap = np.empty(_HEAP_FIRST), np.empty(_HEAP_FIRST, dtype=np.int64)

    @property
    def received(self) -> int:
        """How many messages servers have received."""
        return int(self._counters[kernels.RECEIVED])

    def use(self, problem: FidelityProblem, forest: Forest) -> None:
        """Have updates published from now on take these trees, by the rates of the problem."""
        # Trees that no update is under way in any more make room for new ones.
        idle = self._routes.under_way == 0
        if self._version >= 0:
            idle[self._version] = False
        if not idle.any():
            n, objects = problem.rates.shape
            more = _routes(len(idle), n, objects)
            self._routes = kernels.TreeVersions(
                *(np.concatenate(pair) for pair in zip(self._routes, more, strict=True))
            )
            idle = np.append(idle, np.ones(len(idle), dtype=np.bool_))
        self._version = int(np.flatnonzero(idle)[0])
        build_routes(
            np.ascontiguousarray(forest.parents),
            problem.rates.copy(),
            self._routes.start[self._version],
            self._routes.child[self._version],
            self._routes.share[self._version],
        )

    def run_until(self, until_s: float) -> None:
        """Let everything happen that happens before a time."""
        self._heap = kernels.advance(
            float(until_s),
            self._version,
            self.seconds,
            self._window_s,
            self._collect_s,
            self._updates,
            self._routes,
            self._conditions,
            self._nodes,
            self.tally,
            self._counters,
            *self._heap,
        )


def _routes(versions: int, n: int, objects: int) -> kernels.TreeVersions:
    return kernels.TreeVersions(
        np.zeros((versions, objects, n + 1), dtype=np.int64),
        np.zeros((versions, objects * n), dtype=np.int64),
        np.zeros((versions, objects * n)),
        np.zeros(versions, dtype=np.int64),
    )


def _updates(
    problems: Sequence[tuple[float, FidelityProblem]], seconds: float, generators: UintArray
) -> kernels.Updates:
    """Return everything that the source publishes."""
    begins: list[float] = []
    epochs: list[FloatArray] = []
    # A change of anything but rates is no reason to draw updates anew.
    for at, problem in problems:
        if not epochs or not np.array_equal(epochs[-1], problem.rates):
            begins.append(at)
            epochs.append(problem.rates)
    rates = np.array(epochs)
    peaks = rates.max(axis=1)
    expected = float((peaks.sum(axis=1) * np.diff([*begins, seconds])).sum())
    if expected > _UPDATES_MAX:
        raise TooLarge(
            f"about {expected:,.0f} updates are too many at once, of which {_UPDATES_MAX:,} are "
            "allowed; hint: run a shorter time",
            seconds=expected * problems[0][1].node_count * 2e-7,
            memory_bytes=expected * _UPDATE_BYTES,
        )
    starts = np.array(begins, dtype=np.float64)
    drawn = [
        draw_updates(generators[x : x + 1], starts, np.ascontiguousarray(peaks[:, x]), seconds)
        for x in range(peaks.shape[1])
    ]
    sizes = np.array([len(times) for times, _ in drawn], dtype=np.int64)
    times = np.concatenate([times for times, _ in drawn])
    order = np.argsort(times, kind="stable")
    place = np.empty(len(times), dtype=np.int64)
    place[order] = np.arange(len(times))
    # Where the updates of one object stand, one after another, in the order of all.
    following = np.full(len(times), len(times), dtype=np.int64)
    following[place[:-1]] = place[1:]
    lasts = np.cumsum(sizes)[sizes > 0] - 1
    following[place[lasts]] = len(times)
    first = np.full(len(sizes), len(times), dtype=np.int64)
    first[sizes > 0] = place[(np.cumsum(sizes) - sizes)[sizes > 0]]
    times = times[order]
    shares: FloatArray = np.divide(
        rates, peaks[:, None, :], out=np.zeros_like(rates), where=peaks[:, None, :] > 0.0
    )
    shares[:, 0] = 0.0
    return kernels.Updates(
        times,
        np.concatenate([chances for _, chances in drawn])[order],
        np.repeat(np.arange(len(sizes)), sizes)[order],
        np.searchsorted(starts, times, side="right") - 1,
        following,
        np.zeros(len(times), dtype=np.int64),
        shares,
        first,
    )


def _conditions(problems: Sequence[tuple[float, FidelityProblem]]) -> kernels.Speeds:
    """Return how fast nodes and links are, phase by phase."""
    # The delays of many servers are large, and most changes leave them as they are.
    delays: list[FloatArray] = []
    delay_of: list[int] = []
    for _, problem in problems:
        if not delays or not np.array_equal(delays[-1], problem.delays):
            delays.append(problem.delays)
        delay_of.append(len(delays) - 1)
    stacked = np.array(delays) if len(delays) > 1 else np.ascontiguousarray(delays[0])[None]
    # Arrays that may not be written to are another type to the compiler: both must be.
    stacked.flags.writeable = False
    ends: FloatArray = np.array([*(at for at, _ in problems[1:]), math.inf])
    return kernels.Speeds(
        ends,
        np.array([problem.filter_times for _, problem in problems]),
        np.array([problem.send_times for _, problem in problems]),
        stacked,
        np.array(delay_of, dtype=np.int64),
    )
