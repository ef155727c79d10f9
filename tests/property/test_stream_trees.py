"""Without delay no copy is ever outside its tolerance, whatever happens to the trees."""

from __future__ import annotations

import random
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies_content import AMOUNTS, KINDS, streams
from tests.stream_worlds import MS, StreamNetwork, StreamWorld, broker_name

from distributary.broker.settings import StreamSettings
from distributary.content.divergence import Version
from distributary.content.tolerance import Tolerance

BROKERS_MAX = 7
SUBJECTS = ("a", "b", "c")


@dataclass(frozen=True)
class Change:
    """The source has another version."""

    subject: int
    version: Version


@dataclass(frozen=True)
class Tempt:
    """The source moves to where some follower only just need not be sent anything, or must.

    Attributes
    ----------
    share
        How much of its amount that uses up.
    """

    which: int
    share: float


@dataclass(frozen=True)
class Come:
    """A client follows an object."""

    broker: int
    subject: int
    tolerance: Tolerance


@dataclass(frozen=True)
class Go:
    """A client does not follow it any more."""

    which: int


@dataclass(frozen=True)
class Shift:
    """A broker attaches elsewhere."""

    broker: int
    parent: int
    tree: int


@dataclass(frozen=True)
class Join:
    """A broker that was not there takes its place."""

    parent: int


@dataclass(frozen=True)
class Crash:
    """A broker loses everything but its disk, and is back before anything else happens."""

    broker: int


Event = Change | Tempt | Come | Go | Shift | Join | Crash


@dataclass(frozen=True)
class Plot:
    """Brokers in trees, and what happens to them.

    Attributes
    ----------
    parents
        By object, then by broker: whom the broker attaches to at first.
    moments
        What happens at the same time, and how many seconds pass after it.
    """

    subjects: int
    one_tree: bool
    conflate: bool
    fanout: int
    parents: tuple[tuple[int, ...], ...]
    moments: tuple[tuple[tuple[Event, ...], float], ...]


NUMBERS = st.integers(0, 99)


@st.composite
def plots(draw: st.DrawFn, *, crashes: bool = True) -> Plot:
    subjects = draw(st.integers(1, len(SUBJECTS)))
    brokers = draw(st.integers(2, BROKERS_MAX))
    one_tree = draw(st.booleans())
    parents = tuple(
        tuple(draw(st.integers(0, broker - 1)) for broker in range(1, brokers))
        for _ in range(1 if one_tree else subjects)
    )
    few = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True))
    amounts = draw(st.sampled_from([AMOUNTS, st.floats(0.01, 0.9)]))
    tolerances = st.builds(Tolerance, st.just("/v"), st.sampled_from(few), amounts)
    walks = [draw(streams(versions_max=14)) for _ in range(subjects)]
    others: list[st.SearchStrategy[Event]] = [
        st.builds(Come, NUMBERS, NUMBERS, tolerances),
        st.builds(Go, NUMBERS),
        st.builds(Shift, NUMBERS, NUMBERS, NUMBERS),
        st.builds(Join, NUMBERS),
    ]
    if crashes:
        others.append(st.builds(Crash, NUMBERS))
    first = draw(st.lists(st.builds(Come, NUMBERS, NUMBERS, tolerances), min_size=1, max_size=8))
    moments: list[tuple[tuple[Event, ...], float]] = [(tuple(first), 0.0)]
    pause = st.sampled_from([0.0, 0.001, 0.4, 7.0])
    for number in range(max(map(len, walks))):
        for subject, walk in enumerate(walks):
            if number < len(walk):
                moments.append(((Change(subject, walk[number]),), draw(pause)))
        happening = draw(st.lists(st.one_of(others), max_size=4))
        if happening:
            moments.append((tuple(happening), draw(pause)))
    fanout = draw(st.sampled_from([1, 2, 8]))
    return Plot(subjects, one_tree, draw(st.booleans()), fanout, parents, tuple(moments))


@st.composite
def temptations(draw: st.DrawFn) -> Plot:
    """Draw a plot in which the source knows every copy, and everybody follows one object."""
    brokers = draw(st.integers(3, 6))
    chain = draw(st.booleans())
    parents = tuple(v - 1 if chain else draw(st.integers(0, v - 1)) for v in range(1, brokers))
    kinds = draw(
        st.sampled_from([["absolute"], ["relative"], ["absolute", "changes"], ["changes"]])
    )
    tolerances = st.builds(
        Tolerance, st.just("/v"), st.sampled_from(kinds), st.floats(0.05, 0.95)
    ).map(
        lambda t: Tolerance(
            t.value, t.divergence, t.amount * (8 if t.divergence == "changes" else 1)
        )
    )
    first: list[Event] = [Come(broker, 0, draw(tolerances)) for broker in range(brokers)]
    moments: list[tuple[tuple[Event, ...], float]] = [(tuple(first), 0.0)]
    moments.append(((Change(0, Version(draw(st.sampled_from([1.0, -3.0, 100.0])))),), 0.0))
    tempting = st.builds(
        Tempt, NUMBERS, st.sampled_from([0.999, -0.999, 0.9, -0.9, 1.5]) | st.floats(-1.0, 1.0)
    )
    others = st.one_of(
        st.builds(Come, NUMBERS, st.just(0), tolerances),
        st.builds(Go, NUMBERS),
        st.builds(Shift, NUMBERS, NUMBERS, st.just(0)),
        st.builds(Shift, NUMBERS, NUMBERS, st.just(0)),
    )
    restless = draw(st.booleans())
    for _ in range(draw(st.integers(5, 25))):
        moments.append(((draw(tempting),), 0.0))
        if restless and draw(st.integers(0, 2)) == 0:
            moments.append(((draw(others),), 0.0))
    return Plot(1, False, draw(st.booleans()), 8, (parents,), tuple(moments))


class Stage:
    """Plays a plot in a world without delay."""

    def __init__(self, plot: Plot, *, network: StreamNetwork | None = None) -> None:
        self.plot = plot
        self.world = StreamWorld(
            SUBJECTS[: plot.subjects],
            one_tree=plot.one_tree,
            network=network,
            settings=StreamSettings(conflate=plot.conflate, fanout=plot.fanout),
        )
        trees = len(self.world.trees())
        self.brokers = [broker_name(0)]
        self.world.add(broker_name(0), [None] * trees)
        for number in range(1, len(plot.parents[0]) + 1):
            above = [broker_name(parents[number - 1]) for parents in plot.parents]
            self.brokers.append(broker_name(number))
            self.world.add(broker_name(number), above)

    def play(self) -> None:
        for events, pause in self.plot.moments:
            for event in events:
                self.happen(event)
            self.world.run(0.0)
            assert self.world.outside() == []
            self.world.check_trees()
            self.world.run(pause)
            assert self.world.outside() == []

    def happen(self, event: Event) -> None:
        world = self.world
        match event:
            case Change(subject, version):
                world.change(SUBJECTS[subject], version)
            case Tempt(which, share):
                self.tempt(which, share)
            case Come(broker, subject, tolerance):
                world.subscribe(
                    self.broker(broker), SUBJECTS[subject % self.plot.subjects], tolerance
                )
            case Go(which):
                if world.tolerances:
                    world.unsubscribe(sorted(world.tolerances)[which % len(world.tolerances)])
            case Shift(broker, parent, tree):
                if self.broker(broker) != self.broker(0):
                    world.relocate(self.broker(broker), self.broker(parent), tree)
            case Join(parent):
                new = broker_name(len(self.brokers))
                world.add(new, [self.broker(parent)] * len(world.trees()))
                self.brokers.append(new)
            case Crash(broker):
                world.world.crash(self.broker(broker))
                world.world.restart(self.broker(broker))

    def tempt(self, which: int, share: float) -> None:
        """Move the source to where somebody is nearly outside, if it is not sent anything."""
        world = self.world
        if not world.tolerances:
            return
        identifier = sorted(world.tolerances)[which % len(world.tolerances)]
        _, subject, tolerance = world.tolerances[identifier]
        held = world.versions[subject][world.received[identifier][-1].sequence].value
        assert isinstance(held, float)
        value = held
        if tolerance.divergence == "absolute":
            value = held + share * tolerance.amount
        elif tolerance.divergence == "relative":
            # Where |value - held| = share * amount * |value|, on one side or the other.
            value = held / (1.0 - min(share * tolerance.amount, 0.99))
        world.change(subject, Version(value))

    def broker(self, number: int) -> str:
        return self.brokers[number % len(self.brokers)]


@settings(max_examples=60, deadline=None)
@given(plots(crashes=False))
def test_without_delay_no_copy_is_ever_outside_its_tolerance(plot: Plot) -> None:
    """For any trees and tolerances, while both change, and while brokers join."""
    Stage(plot).play()


@settings(max_examples=80, deadline=None)
@given(temptations())
def test_a_source_that_knows_every_copy_finds_no_way_outside(plot: Plot) -> None:
    """It moves to where a copy is nearly too far off, while brokers and clients move too."""
    Stage(plot).play()


@settings(max_examples=25, deadline=None)
@given(plots())
def test_a_crash_that_takes_no_time_leaves_nobody_outside(plot: Plot) -> None:
    """What is on the disk is enough to go on."""
    Stage(plot).play()


class StormyStage(Stage):
    """Plays a plot while messages are late, lost, repeated and overtaken."""

    def __init__(self, plot: Plot, seed: int) -> None:
        self.storm = StreamNetwork(random.Random(seed), 20 * MS, 0.2, 0.1, 300 * MS)
        super().__init__(plot, network=self.storm)
        self.down: list[str] = []

    def play(self) -> None:
        for events, pause in self.plot.moments:
            for event in events:
                self.happen(event)
            self.world.run(pause)
            self.return_one()
        while self.down:
            self.return_one()
        self.storm.loss = self.storm.repetition = 0.0
        self.storm.more_ns = 0
        self.world.run(90.0)
        assert self.world.outside() == []
        self.world.check_trees()

    def happen(self, event: Event) -> None:
        """Let brokers that go down stay away for some moments."""
        if isinstance(event, Crash):
            broker = self.broker(event.broker)
            if broker not in self.down:
                self.world.world.crash(broker)
                self.down.append(broker)
        elif self.possible(event):
            super().happen(event)

    def possible(self, event: Event) -> bool:
        """Whether the broker that it is about is there."""
        if isinstance(event, Change):
            return self.broker(0) not in self.down
        if isinstance(event, Come | Shift):
            return self.broker(event.broker) not in self.down
        return not (isinstance(event, Go) and self.down)

    def return_one(self) -> None:
        if self.down:
            self.world.world.restart(self.down.pop(0))


@settings(max_examples=25, deadline=None)
@given(plots(), st.integers(0, 2**32))
def test_after_a_storm_everybody_is_inside_again(plot: Plot, seed: int) -> None:
    """Whatever was lost, repeated or overtaken, and whoever was down for a while."""
    StormyStage(plot, seed).play()
