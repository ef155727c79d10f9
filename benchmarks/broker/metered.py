"""Brokers in virtual time whose turns are counted and timed.

Everything but the clock is counted at the contract of a broker with its host: what a turn
sends, and what it writes. Times are those of the process, of turns alone.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from distributary.broker.addresses import Address, client_address, is_client
from distributary.broker.broker import Broker
from distributary.broker.client import Acknowledge, Delivery, Subscribe
from distributary.broker.encoding import encode
from distributary.broker.host import Effect, Erase, Neighbour, Persist, Send, Surroundings
from distributary.broker.membership import roster
from distributary.broker.settings import Settings
from distributary.simulator.world import World
from distributary.topology import random_identifiers

__all__ = [
    "Client",
    "Counts",
    "Meter",
    "MeteredWorld",
    "event_of",
    "metered",
    "route_of_three_hops",
]

_DELAY_NS = 1_000_000
_NS = 1_000_000_000
_MEMBERSHIP = {cls for cls in vars(roster).values() if isinstance(cls, type)}


@dataclass
class Counts:
    """What brokers have done since they were last asked.

    Attributes
    ----------
    sends
        Messages to other brokers by kind, without those of membership.
    persisted, persisted_bytes, erased
        Records that were written, what they take, and records that were erased.
    turn_ns
        By broker, how long its turns took together. Reading the clock is part of it, which
        takes long on some machines; see `replay`.
    longest_ns, most_effects
        Of all turns.
    """

    sends: Counter[str] = field(default_factory=Counter)
    persisted: int = 0
    persisted_bytes: int = 0
    erased: int = 0
    turn_ns: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    longest_ns: int = 0
    most_effects: int = 0


class Meter:
    """Counts what brokers do; `counts` is to be replaced to count anew."""

    def __init__(self) -> None:
        self.counts = Counts()

    def wrap(self, method: Callable[..., list[Effect]]) -> Callable[..., list[Effect]]:
        """Return a method of a broker that counts what it does."""

        def turn(broker: Broker, *args: Any, **kwargs: Any) -> list[Effect]:
            start = time.process_time_ns()
            effects = method(broker, *args, **kwargs)
            spent = time.process_time_ns() - start
            counts = self.counts
            counts.turn_ns[broker.identity] += spent
            counts.longest_ns = max(counts.longest_ns, spent)
            counts.most_effects = max(counts.most_effects, len(effects))
            for effect in effects:
                if isinstance(effect, Send):
                    if not is_client(effect.to) and type(effect.message) not in _MEMBERSHIP:
                        counts.sends[type(effect.message).__name__] += 1
                elif isinstance(effect, Persist):
                    counts.persisted += 1
                    record = effect.record
                    counts.persisted_bytes += len(
                        record if isinstance(record, bytes) else encode(record)
                    )
                elif isinstance(effect, Erase):
                    counts.erased += 1
            return effects

        return turn


@contextmanager
def metered() -> Iterator[Meter]:
    """Count what all brokers of this process do."""
    meter = Meter()
    names = ("receive", "wake", "serve", "start")
    before = {name: getattr(Broker, name) for name in names}
    for name, method in before.items():
        setattr(Broker, name, meter.wrap(method))
    try:
        yield meter
    finally:
        for name, method in before.items():
            setattr(Broker, name, method)


class _Network:
    """The same delay everywhere, and nothing is lost."""

    def arrivals(self, sender: str, to: str, size_bytes: int, now_ns: int) -> tuple[int, ...]:
        return (now_ns + _DELAY_NS,)


class Client:
    """A client that acknowledges what it gets, every so many deliveries."""

    def __init__(self, world: MeteredWorld, name: str, home: str, *, every: int = 1) -> None:
        self.address = client_address(name)
        self.home = home
        self.got: list[Delivery] = []
        self.answers: Counter[str] = Counter()
        self._world = world.world
        self._every = every
        self._names: set[tuple[str, int]] = set()
        self._world.clients[self.address] = self

    def say(self, message: object) -> None:
        """Send something to the home."""
        self._world.send(self.address, self.home, message)

    def subscribe(self, identifier: str, filters: Sequence[object], **more: object) -> None:
        """Subscribe."""
        self.say(Subscribe(json.dumps({"id": identifier, "filters": list(filters), **more})))

    def receive(self, message: object, *, sender: Address, now_ns: int) -> None:
        """Take what the home says."""
        self.answers[type(message).__name__] += 1
        if isinstance(message, Delivery):
            name = (message.subscription, message.number)
            again = name in self._names
            if not again:
                self._names.add(name)
                self.got.append(message)
            # What comes again waits for an acknowledgement that was not due yet.
            if again or len(self.got) % self._every == 0:
                self.say(Acknowledge(message.subscription, message.number))


class MeteredWorld:
    """Brokers that know each other from the start, a millisecond from each other."""

    def __init__(self, count: int, settings: Settings, *, seed: int = 1) -> None:
        drawn = random_identifiers(count, np.random.default_rng(seed), digits=4)
        self.members = tuple(sorted(drawn))
        self.world = World(settings, _Network(), seed=seed)
        for identity in self.members:
            neighbours = tuple(
                Neighbour(other, _DELAY_NS) for other in self.members if other != identity
            )
            self.world.add(identity, Surroundings(neighbours, members=self.members))
        self.run(10.0)

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.world.run_until(self.world.now_ns + round(seconds * _NS))

    def at(self, seconds: float, call: Callable[..., None], *arguments: object) -> None:
        """Have something happen in some seconds."""
        self.world.at(self.world.now_ns + round(seconds * _NS), call, *arguments)

    def broker(self, identity: str) -> Broker:
        """Return a broker, which is up."""
        broker = self.world.nodes[identity].broker
        assert broker is not None
        return broker

    def walk(self, start: str, key: str) -> tuple[str, ...]:
        """Return the brokers that a message for a key passes."""
        way = [start]
        while (hop := self.broker(way[-1]).core.membership.next_hop(key)) is not None:
            way.append(hop)
        return tuple(way)


def event_of(number: int, *, size: int, source: str = "/load", kind: str = "load") -> str:
    """Return an event whose JSON has about some bytes."""
    document = {
        "specversion": "1.0",
        "id": f"{number:09d}",
        "source": source,
        "type": kind,
        "datacontenttype": "application/json",
        "data": {"n": number},
    }
    room = size - len(json.dumps(document)) - len(', "pad": ""')
    document["data"] = {"n": number, "pad": "x" * max(0, room)}
    return json.dumps(document)


def route_of_three_hops(
    settings: Settings, *, brokers: int = 16
) -> tuple[MeteredWorld, str, tuple[str, ...]]:
    """Return a world, a publisher's home, and the way root, relay, subscriber's home.

    The home is one hop from the root of the cell of `event_of`, so that a publication takes
    three hops.
    """
    from distributary.content import Publication

    publication = Publication.parse(json.loads(event_of(0, size=200)))
    for seed in range(1, 200):
        world = MeteredWorld(brokers, settings, seed=seed)
        key = settings.space.key(settings.space.cell_of(publication)).hex()[:4]
        root = world.walk(world.members[0], key)[-1]
        homes = [one for one in world.members if world.walk(one, key) == (one, root)]
        for home in world.members:
            way = world.walk(root, home)
            others = [one for one in homes if one not in way]
            if len(way) == 3 and others:
                return world, random.Random(seed).choice(others), way
    raise AssertionError("no overlay has such a route")
