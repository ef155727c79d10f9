"""The third chapter: streams of values, with trees that adapt and with trees that do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import as_file, files

from distributary.simulator.scenario_file import read_scenario
from distributary.simulator.simulation import Simulation

__all__ = ["Streams", "follow"]


@dataclass(frozen=True)
class Streams:
    """How much of the time copies were outside their tolerance.

    Attributes
    ----------
    shift_s
        When the load of the brokers changed.
    fixed, adapting
        (second, loss of fidelity) with trees that stay as they are, and with those that adapt.
    fixed_after, adapting_after
        The mean loss in the last quarter of the time.
    moves
        How many moves were made.
    violations
        How many violations the checkers found.
    """

    shift_s: float
    fixed: Sequence[tuple[float, float]]
    adapting: Sequence[tuple[float, float]]
    fixed_after: float
    adapting_after: float
    moves: int
    violations: int


def follow(*, seed: int, say: Callable[[str], None]) -> Streams:
    """Run the streams twice, once with adaptation and once without."""
    with as_file(files("examples.whole_story") / "stream.toml") as path:
        scenario = read_scenario(path)
    assert scenario.workload.shift is not None
    runs = {}
    for enabled in (False, True):
        say(f"streams with trees that {'adapt' if enabled else 'stay as they are'}")
        adaptation = replace(scenario.settings.adaptation, enabled=enabled)
        settings = replace(scenario.settings, adaptation=adaptation)
        run = runs[enabled] = Simulation(replace(scenario, settings=settings), seed=seed)
        run.run()
    end_s = scenario.workload.duration_s
    series = {
        enabled: [(at_s, loss) for at_s, loss in run.streams.at_brokers.series() if at_s < end_s]
        for enabled, run in runs.items()
    }
    return Streams(
        scenario.workload.shift.at_s,
        series[False],
        series[True],
        _last_quarter(series[False]),
        _last_quarter(series[True]),
        len(runs[True].adapted),
        sum(len(run.violations) for run in runs.values()),
    )


def _last_quarter(series: Sequence[tuple[float, float]]) -> float:
    last = [loss for at_s, loss in series if at_s >= 0.75 * series[-1][0]]
    return sum(last) / len(last)
