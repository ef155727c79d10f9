"""The third chapter: streams of values, with trees that adapt and with trees that do not.

Both begin with the trees that somebody builds by hand who has measured for a while how often
each broker needs an update: the neediest first, each below the nearest broker that has room.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import as_file, files

import numpy as np

from distributary.broker.addresses import HOST
from distributary.broker.client import Updated
from distributary.broker.host import PlantTree
from distributary.fidelity import FidelityProblem, Forest
from distributary.fidelity.baselines import dita_tree
from distributary.simulator.scenario import Scenario
from distributary.simulator.scenario_file import read_scenario
from distributary.simulator.simulation import Simulation

__all__ = ["Streams", "follow"]

# How long it is measured, before anything changes, how often brokers need updates.
_MEASURED_S = 100.0


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
    say("streams: measuring who needs how many updates")
    problem = _measured(scenario, seed=seed)
    forest = dita_tree(problem, "tree-each")
    runs = {}
    for enabled in (False, True):
        say(f"streams: trees that {'adapt' if enabled else 'stay as they are'}")
        run = runs[enabled] = Simulation(_with_adaptation(scenario, enabled), seed=seed)
        _plant(run, problem, forest)
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


def _measured(scenario: Scenario, *, seed: int) -> FidelityProblem:
    """Return what somebody knows who measures before the load changes."""
    workload = replace(scenario.workload, duration_s=_MEASURED_S, shift=None)
    run = Simulation(
        replace(_with_adaptation(scenario, enabled=False), workload=workload), seed=seed
    )
    counts: Counter[tuple[str, str]] = Counter()

    def listen(sender: str, to: str, message: object, now_ns: int) -> None:
        if isinstance(message, Updated):
            counts[sender, message.subject] += 1

    run.world.listeners.append(listen)
    run.run()
    (root,) = run.streams.homes
    brokers = run.places.identifiers
    names = (root, *sorted(broker for broker in brokers if broker != root))
    objects = tuple(sorted(thing.subject for thing in run.streams.objects))
    rates = np.array([[counts[name, subject] for subject in objects] for name in names])
    rates = rates / (_MEASURED_S - workload.begin_s)
    rates[0] = [thing.rate for thing in sorted(run.streams.objects, key=lambda t: t.subject)]
    service_s = [run.world.nodes[name].service_ns for name in names]
    at = [brokers.index(name) for name in names]
    return FidelityProblem(
        names,
        objects,
        rates,
        np.array([times["filter"] for times in service_s]) / 1e9,
        np.array([times["send"] for times in service_s]) / 1e9,
        run.places.delays_ns[np.ix_(at, at)] / 1e9,
    )


def _plant(run: Simulation, problem: FidelityProblem, forest: Forest) -> None:
    """Give every broker its place in the trees."""
    names = problem.names
    things = {thing.subject: thing for thing in run.streams.objects}
    for subject, parents in zip(problem.objects, forest.parents.tolist(), strict=True):
        thing = things[subject]
        event = json.dumps(thing.event().document(), separators=(",", ":"))
        for child, parent in enumerate(parents):
            children = tuple(names[other] for other, above in enumerate(parents) if above == child)
            if child and parent < 0:
                continue
            place = PlantTree(
                f"{thing.source} {subject}",
                (event,),
                names[0],
                names[parent] if child else None,
                children,
            )
            run.world.tell(names[child], place, sender=HOST)


def _with_adaptation(scenario: Scenario, enabled: bool) -> Scenario:
    adaptation = replace(scenario.settings.adaptation, enabled=enabled)
    return replace(scenario, settings=replace(scenario.settings, adaptation=adaptation))


def _last_quarter(series: Sequence[tuple[float, float]]) -> float:
    last = [loss for at_s, loss in series if at_s >= 0.75 * series[-1][0]]
    return sum(last) / len(last)
