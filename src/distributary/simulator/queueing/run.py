"""Running a stream through trees and measuring what it loses."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from distributary.arguments import checked
from distributary.arrays import FloatArray, IntArray
from distributary.errors import BadInput
from distributary.fidelity import FidelityProblem, Forest
from distributary.simulator.queueing import _event_kernels as kernels
from distributary.simulator.queueing.adapting import Adapting, Observer
from distributary.simulator.queueing.change import Change, check_changes
from distributary.simulator.queueing.model import Model
from distributary.simulator.queueing.result import QueueingRun, Round

__all__ = ["simulate"]

_WINDOWS_MAX = 100_000


@checked
def simulate(
    problem: FidelityProblem,
    forest: Forest,
    *,
    seconds: float = 20_000.0,
    seed: int = 0,
    window_s: float = 1_000.0,
    changes: Sequence[Change] = (),
    adapting: Adapting | None = None,
) -> QueueingRun:
    """Run a stream through trees of servers that queue, and measure it.

    The model is that of Zhou, Ooi and Tan, section 3.1, without its approximations: objects
    change as Poisson processes; every node handles messages in the order of arrival, looks
    at its children in random order and takes exponential times to filter and to send; links
    have fixed delays. Millions of messages a second on one core; the same arguments give the
    same result.

    Parameters
    ----------
    problem
        Rates, times and delays. What adapting costs a node is not simulated.
    seconds
        How long the source publishes; the run goes on until everything has arrived.
    seed
        Of every random choice; not negative. Runs of one seed with the same rates have the
        same updates, whatever the trees and times.
    changes
        What is different from when on, in the order of time. A message is handled under the
        conditions of the time at which its turn comes.
    adapting
        How the trees are adapted; None leaves them as they are.

    Raises
    ------
    BadInput
        When a number is out of range, or a change does not fit.
    InvalidPlan
        When trees do not fit the problem.
    TooLarge
        When there are too many updates for the memory.
    """
    _check_numbers(seconds, seed, window_s)
    check_changes(problem, forest, changes, seconds=seconds)
    problems = [(0.0, problem)]
    problems += [(change.at_s, change.problem) for change in changes if change.problem is not None]
    model = Model(
        problems,
        seconds=seconds,
        window_s=window_s,
        collect_s=adapting.window_s if adapting else math.inf,
        seed=seed,
    )
    observer = Observer(problem, adapting) if adapting else None
    rounds: list[Round] = []
    current = problem
    model.use(current, forest)
    for at, change, in_round in _stops(seconds, changes, adapting):
        model.run_until(at)
        if change is not None:
            current, forest = change.problem or current, change.forest or forest
            model.use(current, forest)
            continue
        assert observer is not None
        observer.close_window(at, model.tally, current.delays)
        if in_round:
            forest, done = observer.round(at, forest)
            rounds.append(done)
            if done.moved:
                model.use(current, forest)
    model.run_until(math.inf)
    return _result(problem, model, window_s, rounds, forest)


def _check_numbers(seconds: float, seed: int, window_s: float) -> None:
    if seed < 0:
        raise BadInput("seed", f"is {seed}, which is negative")
    for name, value in (("seconds", seconds), ("window_s", window_s)):
        if not (math.isfinite(value) and value > 0.0):
            raise BadInput(name, f"is {value:g}, and must be above 0 and finite")
    if seconds / window_s > _WINDOWS_MAX:
        raise BadInput("window_s", f"makes more than {_WINDOWS_MAX:,} windows")


def _stops(
    seconds: float, changes: Sequence[Change], adapting: Adapting | None
) -> list[tuple[float, Change | None, bool]]:
    """Return when to stop for what: a change, or the end of a window, perhaps with a round."""
    stops: list[tuple[float, Change | None, bool]] = [
        (change.at_s, change, False) for change in changes
    ]
    if adapting is not None:
        per_round = round(adapting.round_s / adapting.window_s)
        windows = math.ceil(seconds / adapting.window_s) - 1
        stops += [
            (window * adapting.window_s, None, window % per_round == 0)
            for window in range(1, windows + 1)
        ]
    # What a window has measured was measured before a change at its end.
    return sorted(stops, key=lambda stop: (stop[0], stop[1] is not None))


def _result(
    problem: FidelityProblem, model: Model, window_s: float, rounds: list[Round], forest: Forest
) -> QueueingRun:
    tally, seconds = model.tally, model.seconds
    meant = tally.copies[:, :, kernels.MEANT].astype(np.int64)
    delayed = tally.copies[:, :, kernels.DELAY]
    published = meant[0].copy()
    meant[0] = 0
    windows = tally.late.shape[1]
    lengths = np.diff(np.minimum(np.arange(windows + 1) * window_s, seconds))
    wishes = np.maximum(problem.wanted.sum(axis=1), 1)
    handled = tally.handled[:, kernels.MESSAGES]
    return QueueingRun(
        problem=problem,
        seconds=seconds,
        window_s=window_s,
        received=model.received,
        published=published,
        meant=meant,
        delays=_mean(delayed, meant),
        loss=delayed / seconds,
        outside=tally.copies[:, :, kernels.OUTSIDE] / seconds,
        loss_series=(tally.late / wishes[:, None] / lengths).T,
        outside_series=(tally.outside / wishes[:, None] / lengths).T,
        load_series=(tally.busy / lengths).T,
        handled=handled.astype(np.int64),
        waits=_mean(tally.handled[:, kernels.WAITED], handled),
        services=_mean(tally.handled[:, kernels.SERVED], handled),
        rounds=tuple(rounds),
        forest=forest,
    )


def _mean(total: FloatArray, count: FloatArray | IntArray) -> FloatArray:
    """Return the mean, 0 where there is nothing."""
    return np.divide(total, count, out=np.zeros(total.shape), where=count > 0)
