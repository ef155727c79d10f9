"""Overlays of brokers on a network that can be made as bad as a test needs it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np

from distributary.broker.broker import Broker
from distributary.broker.core import Part
from distributary.broker.host import Neighbour, Surroundings, Turn
from distributary.broker.membership.membership import Membership
from distributary.broker.settings import MembershipSettings, Settings
from distributary.simulator.world import World
from distributary.topology import random_identifiers, shared_prefix_length

MS = 1_000_000
SECOND = 1_000 * MS

BRISK = Settings(
    membership=MembershipSettings(
        period_s=0.5, answer_s=0.2, suspicion_s=1.0, lost_s=20.0, gossip_s=0.05
    )
)
"""Brokers that notice soon, so that tests are short."""


class PlaneNetwork:
    """Brokers on a plane: the delay between two is their distance, 1 to 40 ms.

    Attributes
    ----------
    loss, repeats, spread_ns
        The share of messages that is lost, the share that arrives twice, and how much later
        than it could a message arrives at most, by which it is overtaken.
    apart
        Brokers that the others cannot reach, nor they the others.
    byte_ns
        How long a link is busy with each byte; what is sent meanwhile stands in line.
    """

    def __init__(self, identities: Sequence[str], *, seed: int) -> None:
        self._rng = random.Random(f"plane {seed}")
        self._places = {
            identity: complex(self._rng.random(), self._rng.random()) for identity in identities
        }
        self.loss = 0.0
        self.repeats = 0.0
        self.spread_ns = 0
        self.apart: frozenset[str] = frozenset()
        self.byte_ns = 0
        self.sent = 0
        self._free_ns: dict[tuple[str, str], int] = {}

    def delay_ns(self, one: str, other: str) -> int:
        distance = abs(self._places.get(one, 0j) - self._places.get(other, 0j))
        return MS + round(27 * MS * distance)

    def arrivals(self, sender: str, to: str, size_bytes: int, now_ns: int) -> tuple[int, ...]:
        self.sent += 1
        now_ns = max(now_ns, self._free_ns.get((sender, to), 0)) + size_bytes * self.byte_ns
        self._free_ns[sender, to] = now_ns
        if (sender in self.apart) != (to in self.apart) or self._rng.random() < self.loss:
            return ()
        copies = 2 if self._rng.random() < self.repeats else 1
        delay_ns = self.delay_ns(sender, to)
        return tuple(
            now_ns + delay_ns + round(self._rng.random() * self.spread_ns) for _ in range(copies)
        )


class Overlay:
    """A world of brokers that know each other from the start, and that can change."""

    def __init__(
        self,
        count: int,
        *,
        seed: int = 1,
        settings: Settings = BRISK,
        digits: int = 4,
        spare: int = 0,
        parts: Mapping[str, type[Part]] | None = None,
        settings_of: Mapping[int, Settings] | None = None,
    ) -> None:
        drawn = random_identifiers(count + spare, np.random.default_rng(seed), digits=digits)
        self.members = tuple(sorted(drawn[:count]))
        self.spare = drawn[count:]
        self.network = PlaneNetwork(drawn, seed=seed)
        self.world = World(settings, self.network, seed=seed, parts=parts)
        for place, own in (settings_of or {}).items():
            self.world.settings_of[self.members[place]] = own
        for identity in self.members:
            self.world.add(identity, self.surroundings(identity, members=self.members))

    def surroundings(
        self, identity: str, *, members: tuple[str, ...] = (), contact: str | None = None
    ) -> Surroundings:
        neighbours = tuple(
            Neighbour(other, self.network.delay_ns(identity, other))
            for other in sorted((*self.members, *self.spare))
            if other != identity
        )
        return Surroundings(neighbours, members=members, contact=contact)

    def join(self, identity: str, contact: str) -> None:
        self.world.add(identity, self.surroundings(identity, contact=contact))

    def restart(self, identity: str) -> None:
        self.world.restart(identity, self.surroundings(identity))

    def run_s(self, seconds: float) -> None:
        self.world.run_until(self.world.now_ns + round(seconds * SECOND))

    def in_turn(self, identity: str, call: Callable[[Turn], object]) -> None:
        """Have a broker do something that no message makes it do."""
        node = self.world.nodes[identity]
        assert node.driver is not None
        turn = self.broker(identity)._turn(node.now_ns())
        call(turn)
        node.driver._finish(turn.effects, None, identity)

    def broker(self, identity: str) -> Broker:
        broker = self.world.nodes[identity].broker
        assert broker is not None
        return broker

    def membership(self, identity: str) -> Membership:
        return self.broker(identity).core.membership

    def up(self) -> list[str]:
        return [identity for identity, node in self.world.nodes.items() if node.broker is not None]

    def walk(self, start: str, key: str) -> list[str]:
        """The brokers that a message for a key passes, each asked for the next."""
        path = [start]
        while (following := self.membership(path[-1]).next_hop(key)) is not None:
            assert following not in path
            path.append(following)
        return path


def hops_max(identities: Sequence[str]) -> int:
    """The longest prefix that two of them share, and one more."""
    pairs = combinations(identities, 2)
    return 1 + max((shared_prefix_length(one, other) for one, other in pairs), default=-1)
