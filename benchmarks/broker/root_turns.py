"""What a publication costs its root, against the first version, and how often it plans."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.broker.metered import Client, MeteredWorld, event_of, route_of_three_hops
from benchmarks.broker.replay import Replayed, recorded, replay
from benchmarks.study import Claim, Column, Findings, Progress, Size, Study, Table, result_hash
from distributary.broker.client import Publish
from distributary.broker.settings import Settings

__all__ = ["STUDY"]

_SUBSCRIBERS = 10
_HOMES = 5
_WARM = 50
_RATE = 100
_RATIO_MAX = 0.4
_PLANNED = 12

# What a publication took the root of the first version, by this study: in loops of a fixed
# piece of work, and in calls of functions.
_FIRST_LOOPS = 0.068
_FIRST_CALLS = 2007


@dataclass(frozen=True)
class _Parameters:
    """How many publications are timed, and how often."""

    publications: int
    repeats: int


_SIZES: Mapping[Size, _Parameters] = {"small": _Parameters(50, 2), "large": _Parameters(1000, 5)}


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    progress(f"{parameters.publications:,} publications")
    replayed, delivered = _root_of(parameters)
    loops = replayed.loops / parameters.publications
    calls = replayed.calls / parameters.publications
    progress(f"{_PLANNED} publications with sizes of their own")
    plans = _plans()
    return Findings(
        tables=(
            Table(
                f"A root with {_SUBSCRIBERS} subscribers at {_HOMES} homes, per publication",
                "speed",
                (
                    Column("version"),
                    Column("microseconds"),
                    Column("loops", 4),
                    Column("calls of functions"),
                ),
                (
                    ("first", None, _FIRST_LOOPS, _FIRST_CALLS),
                    ("now", 1e6 * replayed.seconds[0] / parameters.publications, loops, calls),
                ),
                notes=(
                    "All turns of the root, from the offer to the last acknowledgement, with "
                    "events of 1 KB whose sizes differ by up to a twentieth. A loop is a fixed "
                    "piece of work in the same process, so that machines can be compared. The "
                    "first version is stored as it was measured by the same study."
                ),
            ),
            Table(
                f"Plans for {_PLANNED} publications whose sizes all differ, within a tenth",
                "quality",
                (Column("made"), Column("used again")),
                ((plans["made"], plans["reused"]),),
            ),
        ),
        claims=(
            Claim(
                "the first version's root", loops / _FIRST_LOOPS, "<=", _RATIO_MAX, "times as long"
            ),
            Claim("plans used again", plans["reused"], "==", _PLANNED - 1, f"of {_PLANNED - 1}"),
        ),
        result_hash=result_hash([delivered, plans["made"], plans["reused"]]),
    )


def _root_of(parameters: _Parameters) -> tuple[Replayed, int]:
    """Return what the root has taken, and how much was delivered."""
    settings = Settings()
    found, home, way = route_of_three_hops(settings, brokers=8)
    root = way[0]
    with recorded(root) as recording:
        world = MeteredWorld(8, settings, seed=found.world.seed)
        clients = _subscribed(world, root)
        publisher = Client(world, "p", home)
        world.run(5.0)
        rng = random.Random(1)
        for first, count in ((0, _WARM), (_WARM, parameters.publications)):
            recording.from_here()
            for number in range(count):
                event = event_of(first + number, size=rng.randint(974, 1074))
                world.at(number / _RATE, publisher.say, Publish(event))
            world.run(count / _RATE + 5.0)
    delivered = sum(len(client.got) for client in clients)
    assert delivered == _SUBSCRIBERS * (_WARM + parameters.publications)
    return replay(recording, repeats=parameters.repeats), delivered


def _subscribed(world: MeteredWorld, root: str) -> list[Client]:
    homes = [one for one in world.members if one != root][:_HOMES]
    clients = []
    for number in range(_SUBSCRIBERS):
        client = Client(world, f"s{number}", homes[number % _HOMES], every=16)
        client.subscribe(f"s{number}", [{"exact": {"type": "load"}}])
        clients.append(client)
    return clients


def _plans() -> Mapping[str, int]:
    """Return how many plans a root made for publications whose sizes differ, and used again."""
    world, home, way = route_of_three_hops(Settings(), brokers=8)
    _subscribed(world, way[0])
    publisher = Client(world, "p", home)
    world.run(5.0)
    for number in range(_PLANNED):
        publisher.say(Publish(event_of(number, size=1000 + 7 * number)))
        world.run(5.0)
    found: Mapping[str, int] = world.broker(way[0]).snapshot()["dissemination"]["plans"]
    return found


STUDY = Study(
    name="root-turns",
    about="The root of a cell that is told of one publication after the other.",
    minutes=1,
    run=_run,
)
