"""Brokers that carry streams, in a world where everything else is kept simple.

Subscriptions are known to their own broker alone, trees are planted, and what each broker
and client holds is read from outside: from reports and from what clients receive.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from distributary.broker.addresses import Address
from distributary.broker.client import Changed, Subscribe, Unsubscribe, Updated
from distributary.broker.core import Handler, Part
from distributary.broker.encoding import VERSION
from distributary.broker.host import PlantTree, Turn
from distributary.broker.settings import AdaptationSettings, Settings, StreamSettings
from distributary.broker.subscriptions.subscription import scoped_id
from distributary.broker.telemetry import CopyChanged
from distributary.content.divergence import Version
from distributary.content.publication import Publication
from distributary.content.subscription import Subscription
from distributary.content.tolerance import Tolerance, outside
from distributary.simulator.world import World

MS = 1_000_000
SECOND = 1_000 * MS


def broker_name(number: int) -> str:
    return f"{number:02x}"


def event_of(subject: str) -> str:
    return json.dumps(
        {"specversion": "1.0", "id": "0", "source": "/s", "type": "quote", "subject": subject}
    )


@dataclass(frozen=True)
class Relocate:
    """Have a broker attach elsewhere."""

    tree: str
    parent: str


@dataclass(frozen=True)
class Local:
    """A subscription as streams see it."""

    client: Address
    subscription: Subscription

    @property
    def id(self) -> str:
        return scoped_id(self.client, self.subscription.id)


class OwnSubscriptions(Part):
    """Subscriptions that no other broker needs to know of."""

    name = "subscriptions"

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self.kept: dict[str, Local] = {}

    def handlers(self) -> Mapping[type, Handler]:
        return {
            Subscribe: self.subscribe,
            Unsubscribe: self.unsubscribe,
            Relocate: self.relocate,
        }

    def load(self, key: str, record: Subscribe) -> None:
        self.enter(record, "@" + key)

    def streaming(self, publication: Publication) -> list[Local]:
        subject = publication.attributes["subject"]
        return [
            local
            for _, local in sorted(self.kept.items())
            if local.subscription.filters == ({"exact": {"subject": subject}},)
        ]

    def enter(self, message: Subscribe, client: Address) -> str:
        subscription = Subscription.parse(json.loads(message.subscription))
        self.kept[subscription.id] = Local(client, subscription)
        return subscription.id

    def subscribe(self, message: Subscribe, sender: Address, turn: Turn) -> None:
        self.enter(message, sender)
        turn.persist(f"subscriptions/{sender[1:]}", message)
        self.core.streams.subscriptions_changed(turn)

    def unsubscribe(self, message: Unsubscribe, sender: Address, turn: Turn) -> None:
        if self.kept.pop(message.id, None) is not None:
            turn.erase(f"subscriptions/{sender[1:]}")
            self.core.streams.subscriptions_changed(turn)

    def relocate(self, message: Relocate, sender: Address, turn: Turn) -> None:
        self.core.streams.attach_to(message.tree, message.parent, turn)


class QuietMembership(Part):
    """Nobody is ever known to be down."""

    name = "membership"
    version = VERSION

    def load(self, key: str, record: Any) -> None:
        assert key == "clock"
        self.core.clock.restore(record)

    def delay_ns_to(self, peer: str) -> int:
        return 0

    def is_alive(self, peer: str) -> bool:
        return True


@dataclass
class StreamNetwork:
    """A network with a delay, and chances of loss, repetition and more delay."""

    rng: random.Random
    delay_ns: int = 0
    loss: float = 0.0
    repetition: float = 0.0
    more_ns: int = 0

    def arrivals(
        self, sender: Address, to: Address, size_bytes: int, now_ns: int
    ) -> tuple[int, ...]:
        if self.loss > 0.0 and self.rng.random() < self.loss:
            return ()
        copies = 2 if self.repetition > 0.0 and self.rng.random() < self.repetition else 1
        more = [self.rng.randrange(self.more_ns) if self.more_ns else 0 for _ in range(copies)]
        return tuple(now_ns + self.delay_ns + later for later in more)


class StreamWorld:
    """Brokers, their clients' tolerances, and the versions of objects at their source.

    Parameters
    ----------
    subjects
        The objects, all of whose trees have their root at broker 0.
    one_tree
        Whether they share a tree.
    """

    def __init__(
        self,
        subjects: Sequence[str] = ("a",),
        *,
        one_tree: bool = False,
        network: StreamNetwork | None = None,
        settings: StreamSettings | None = None,
        seed: int = 0,
        parts: Mapping[str, type[Part]] | None = None,
    ) -> None:
        self.subjects = tuple(subjects)
        self.one_tree = one_tree
        approach = "one-tree" if one_tree else "tree-each"
        self.network = network or StreamNetwork(random.Random(seed))
        quiet: dict[str, type[Part]] = {
            "membership": QuietMembership,
            "subscriptions": OwnSubscriptions,
            **(parts or {}),
        }
        streams = replace(settings or StreamSettings(), approach=approach)
        self.world = World(
            Settings(streams=streams, adaptation=AdaptationSettings(enabled=False)),
            self.network,
            seed=seed,
            parts=quiet,
        )
        self.world.watchers.append(self._watch)
        self.versions: dict[str, dict[int, Version]] = {subject: {} for subject in subjects}
        self.newest: dict[str, int] = {}
        self.copies: dict[tuple[str, str], int] = {}
        self.tolerances: dict[str, tuple[str, str, Tolerance]] = {}
        self.received: dict[str, list[Updated]] = {}
        self.count = 0

    # What happens.

    def trees(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return every tree with its objects."""
        if self.one_tree:
            return [(broker_name(0), self.subjects)]
        return [(f"/s {subject}", (subject,)) for subject in self.subjects]

    def add(self, broker: str, parents: Sequence[str | None], children: Iterable[str] = ()) -> None:
        """Start a broker with its place in each tree."""
        self.world.add(broker, *self.places(parents, children))

    def places(self, parents: Sequence[str | None], children: Iterable[str]) -> list[PlantTree]:
        below = tuple(sorted(children))
        return [
            PlantTree(tree, tuple(map(event_of, objects)), broker_name(0), parent, below)
            for (tree, objects), parent in zip(self.trees(), parents, strict=True)
        ]

    def subscribe(self, broker: str, subject: str, tolerance: Tolerance) -> str:
        """Have a new client of a broker follow an object."""
        identifier = f"s{self.count}"
        self.count += 1
        document = {
            "id": identifier,
            "filters": [{"exact": {"subject": subject}}],
            "tolerance": tolerance.document(),
        }
        self.tolerances[identifier] = (broker, subject, tolerance)
        self.received[identifier] = []
        client = "@" + identifier
        self.world.clients[client] = self
        self.world.tell(broker, Subscribe(json.dumps(document)), sender=client)
        return identifier

    def unsubscribe(self, identifier: str) -> None:
        """End what a client follows."""
        broker, _, _ = self.tolerances.pop(identifier)
        self.world.tell(broker, Unsubscribe(identifier), sender="@" + identifier)

    def change(self, subject: str, version: Version) -> None:
        """Give an object another version; its change number is at least one higher."""
        sequence = self.newest.get(subject, 0) + max(version.change_number, 1)
        self.newest[subject] = sequence
        self.versions[subject][sequence] = Version(version.value, sequence, version.time_ns)
        values = (("/v", version.value),)
        changed = Changed("/s", subject, sequence, version.time_ns, values)
        self.world.tell(broker_name(0), changed, sender="@source")

    def relocate(self, broker: str, parent: str, tree: int) -> None:
        """Have a broker attach elsewhere."""
        name = self.trees()[tree % len(self.trees())][0]
        self.world.tell(broker, Relocate(name, parent), sender="!")

    def run(self, seconds: float) -> None:
        self.world.run_until(self.world.now_ns + round(seconds * SECOND))

    # What there is to see.

    def receive(self, message: object, *, sender: Address, now_ns: int) -> None:
        assert isinstance(message, Updated)
        self.received[message.subscription].append(message)

    def streams(self, broker: str) -> Any:
        found = self.world.nodes[broker].broker
        assert found is not None
        return found.core.streams

    def parent(self, broker: str, tree: str) -> str | None:
        found: str | None = self.streams(broker).parent(tree)
        return found

    def outside(self) -> list[str]:
        """Return a sentence for everybody who is outside its tolerance."""
        found = []
        for identifier, (broker, subject, tolerance) in self.tolerances.items():
            if subject not in self.newest:
                continue
            source = self.versions[subject][self.newest[subject]]
            copy = self.versions[subject].get(self.copies.get((broker, subject), -1))
            if outside(tolerance, source, copy):
                found.append(f"{broker} holds {copy} of {source} for {tolerance}")
            updates = self.received[identifier]
            held = self.versions[subject][updates[-1].sequence] if updates else None
            if outside(tolerance, source, held):
                found.append(f"{identifier} at {broker} holds {held} of {source} for {tolerance}")
        return found

    def check_trees(self) -> None:
        """Everybody is below the root, and parents and children agree."""
        for tree, _ in self.trees():
            for broker in self.world.nodes:
                if self.world.nodes[broker].broker is None or broker == broker_name(0):
                    continue
                if tree not in self.streams(broker).trees():
                    continue
                seen = [broker]
                while seen[-1] != broker_name(0):
                    above = self.parent(seen[-1], tree)
                    assert above is not None, f"{seen[-1]} has no parent in {tree}"
                    assert above not in seen, f"{seen} in {tree}"
                    assert seen[-1] in self.streams(above).children(tree)
                    seen.append(above)
                path = self.streams(broker).path(tree)
                assert path == tuple(reversed(seen[1:])), f"{broker} takes {path} for {seen}"

    def _watch(self, broker: str, record: object, now_ns: int) -> None:
        if isinstance(record, CopyChanged):
            self.copies[broker, record.subject] = record.sequence


Step = Callable[[StreamWorld], None]
