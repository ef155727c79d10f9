"""How long a broker is deaf to everybody else: its longest turn when much is to be done."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from benchmarks.broker.metered import (
    Client,
    Counts,
    Meter,
    MeteredWorld,
    event_of,
    metered,
    route_of_three_hops,
)
from benchmarks.study import Claim, Column, Findings, Progress, Size, Study, Table, result_hash
from distributary.broker.client import Publish
from distributary.broker.settings import ContentSettings, Settings

__all__ = ["STUDY"]

_BROKERS = 8
_RATE = 2000
_LONGEST_MS = 100.0
_SETTINGS = replace(Settings(), content=ContentSettings(retention_s=600.0))


@dataclass(frozen=True)
class _Parameters:
    """How many items are kept."""

    items: int


_SIZES: Mapping[Size, _Parameters] = {"small": _Parameters(150), "large": _Parameters(20_000)}


@dataclass(frozen=True)
class _Stage:
    """What has happened, and the most that a turn then took, and asked for."""

    what: str
    longest_ms: float
    most_effects: int


class _Run:
    """An overlay in which many items are kept, and what happens to it."""

    def __init__(self, meter: Meter, items: int) -> None:
        self.world, self.home, way = route_of_three_hops(_SETTINGS, brokers=_BROKERS)
        self.root, self.reader = way[0], way[-1]
        self.items = items
        self.stages: list[_Stage] = []
        self._meter = meter
        self._subscriber = Client(self.world, "s", self.reader, every=16)
        self._subscriber.subscribe("s", [{"exact": {"type": "load"}}])
        self.world.run(5.0)

    @property
    def delivered(self) -> int:
        """How many items the subscriber has got."""
        return len(self._subscriber.got)

    def publish(self) -> None:
        """Publish everything."""
        publisher = Client(self.world, "p", self.home)
        for number in range(self.items):
            event = event_of(number, size=300)
            self.world.at(number / _RATE, publisher.say, Publish(event))
        self.world.run(self.items / _RATE + 5.0)
        assert publisher.answers["Accepted"] == self.items

    def stage(self, what: str, happens: Callable[[MeteredWorld], None], seconds: float) -> None:
        """Have something happen, and note the longest turn for some seconds."""
        self._meter.counts = counts = Counts()
        happens(self.world)
        self.world.run(seconds)
        self.stages.append(_Stage(what, counts.longest_ns / 1e6, counts.most_effects))

    def crash(self, identity: str) -> Callable[[MeteredWorld], None]:
        """Return what stops a broker."""
        return lambda world: world.world.crash(identity)

    def restart(self, identity: str) -> Callable[[MeteredWorld], None]:
        """Return what brings a broker back."""
        return lambda world: world.world.restart(identity)


def _run(size: Size, progress: Progress) -> Findings:
    items = _SIZES[size].items
    stages: list[_Stage] = []
    for name, happens in (("the root", _root_changes), ("a subscriber's home", _reader_is_away)):
        progress(f"{items:,} items kept, and {name} goes and comes")
        with metered() as meter, _no_collector():
            run = _Run(meter, items)
            happens(run)
            assert run.delivered == items
            stages.extend(run.stages)
    longest_ms = max(stage.longest_ms for stage in stages)
    return Findings(
        tables=(
            Table(
                f"The longest turn of any broker, {items:,} items kept",
                "speed",
                (Column("what happens"), Column("ms", 1), Column("effects")),
                tuple((stage.what, stage.longest_ms, stage.most_effects) for stage in stages),
                notes=(
                    f"{_BROKERS} brokers in one process, whose garbage is not collected "
                    "meanwhile: it is that of all brokers and of the simulator."
                ),
            ),
        ),
        claims=(Claim("the longest turn", longest_ms, "<=", _LONGEST_MS, "ms"),),
        result_hash=result_hash([stage.most_effects for stage in stages]),
    )


def _root_changes(run: _Run) -> None:
    run.publish()
    run.stage("the publisher's home restarts", _both(run, run.home), 30.0)
    run.stage("the root is down: there is another", run.crash(run.root), 60.0)
    run.stage("the first root is back", run.restart(run.root), 60.0)
    run.stage("what was kept is forgotten", lambda world: None, 1300.0)


def _reader_is_away(run: _Run) -> None:
    run.world.world.crash(run.reader)
    run.world.run(12.0)
    run.publish()
    run.stage("the root restarts while a home is away", _both(run, run.root), 60.0)
    run.stage("the home is back", run.restart(run.reader), 120.0)


def _both(run: _Run, identity: str) -> Callable[[MeteredWorld], None]:
    def happens(world: MeteredWorld) -> None:
        world.world.crash(identity)
        world.world.restart(identity)

    return happens


@contextmanager
def _no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


STUDY = Study(
    name="long-turns",
    about="Brokers that keep many items when a broker goes, comes back or restarts.",
    minutes=6,
    run=_run,
)
