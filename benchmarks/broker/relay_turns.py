"""How much of a relay's time goes into reading events that it only passes on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.broker.metered import Client, MeteredWorld, event_of, route_of_three_hops
from benchmarks.broker.replay import recorded, replay
from benchmarks.study import Claim, Column, Findings, Progress, Size, Study, Table, result_hash
from distributary.broker.client import Publish
from distributary.broker.planning import publication_of
from distributary.broker.settings import Settings

__all__ = ["STUDY"]

_RATE = 100
_SHARE_MAX = 10.0


@dataclass(frozen=True)
class _Parameters:
    """How many publications pass the relay, and how often its turns are timed."""

    publications: int
    repeats: int


_SIZES: Mapping[Size, _Parameters] = {"small": _Parameters(50, 2), "large": _Parameters(1000, 5)}


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    count = parameters.publications
    settings = Settings()
    found, home, way = route_of_three_hops(settings)
    progress(f"{count:,} publications")
    events = [event_of(number, size=1024) for number in range(count)]
    with recorded(way[1]) as recording:
        world = MeteredWorld(len(found.members), settings, seed=found.world.seed)
        subscriber = Client(world, "s", way[-1], every=16)
        subscriber.subscribe("s", [{"exact": {"type": "load"}}])
        publisher = Client(world, "p", home)
        world.run(5.0)
        recording.from_here()
        for number, event in enumerate(events):
            world.at(number / _RATE, publisher.say, Publish(event))
        world.run(count / _RATE + 5.0)
    assert len(subscriber.got) == count
    replayed = replay(recording, repeats=parameters.repeats)
    reading_s = _reading_s(events, parameters.repeats) * replayed.parsed / count
    share = 100.0 * reading_s / replayed.seconds[0]
    return Findings(
        tables=(
            Table(
                "A relay between a root and a home, per publication of 1 KB",
                "speed",
                (
                    Column("events read", 2),
                    Column("microseconds"),
                    Column("of which reading"),
                    Column("calls of functions"),
                ),
                (
                    (
                        replayed.parsed / count,
                        1e6 * replayed.seconds[0] / count,
                        1e6 * reading_s / count,
                        replayed.calls / count,
                    ),
                ),
            ),
        ),
        claims=(
            Claim("time of a relay to read events", share, "<=", _SHARE_MAX, "% of seconds"),
            Claim("events that a relay reads", replayed.parsed, "==", 0, f"of {count:,}"),
        ),
        result_hash=result_hash([count, replayed.parsed]),
    )


def _reading_s(events: list[str], repeats: int) -> float:
    """Return how long it takes to read some events, at the best of several times."""
    best = float("inf")
    for _ in range(repeats):
        publication_of.clear()
        began = time.process_time()
        for event in events:
            publication_of(event)
        best = min(best, time.process_time() - began)
    return best


STUDY = Study(
    name="relay-turns",
    about="A broker that passes on content for which it has no client.",
    minutes=1,
    run=_run,
)
