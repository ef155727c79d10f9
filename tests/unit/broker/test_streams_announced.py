"""Streams from announcement to client, with whole brokers: publishers and followers meet."""

from __future__ import annotations

import json
import random

import pytest
from tests.stream_worlds import MS, SECOND, StreamNetwork, event_of

from distributary.broker.client import (
    Announce,
    Announced,
    Changed,
    Subscribe,
    Unsubscribe,
    Updated,
)
from distributary.broker.host import Leave, Neighbour, Surroundings
from distributary.broker.settings import (
    AdaptationSettings,
    MembershipSettings,
    Settings,
    StreamSettings,
    SubscriptionSettings,
)
from distributary.broker.streams.messages import Attach, Wanted
from distributary.simulator.world import World

BROKERS = [f"{17 * number:02x}" for number in range(8)]


class Listener:
    """A client that keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def receive(self, message: object, *, sender: str, now_ns: int) -> None:
        self.heard.append(message)

    def values(self) -> list[object]:
        """Return the values it was sent, without repetitions."""
        updates = {m.sequence: m.values[0][1] for m in self.heard if isinstance(m, Updated)}
        return list(updates.values())


class Town:
    """Whole brokers in a quiet network, with one publisher."""

    def __init__(self, approach: str) -> None:
        settings = Settings(
            membership=MembershipSettings(lost_s=15.0),
            subscriptions=SubscriptionSettings(registration_s=10.0),
            streams=StreamSettings(approach=approach, pulse_s=1.0, silence_s=3.0),
            adaptation=AdaptationSettings(enabled=False),
        )
        self.world = World(settings, StreamNetwork(random.Random(0), 5 * MS), seed=0)
        for broker in BROKERS:
            self.world.add(broker, self.surroundings(broker))
        self.publisher = self.listener("@publisher")
        self.sequence = 0
        self.run(1.0)

    def surroundings(self, broker: str) -> Surroundings:
        others = tuple(Neighbour(other, 5 * MS) for other in BROKERS if other != broker)
        return Surroundings(others, tuple(BROKERS))

    def listener(self, name: str) -> Listener:
        listener = self.world.clients[name] = Listener()
        return listener

    def follow(self, client: str, broker: str, amount: float) -> Listener:
        document = {
            "id": f"of {client}",
            "filters": [{"exact": {"type": "quote"}}],
            "tolerance": {"value": "/v", "divergence": "absolute", "amount": amount},
        }
        listener = self.listener(client)
        self.world.send(client, broker, Subscribe(json.dumps(document)))
        self.run(1.0)
        return listener

    def announce(self, broker: str) -> None:
        self.world.send("@publisher", broker, Announce(event_of("a")))
        self.run(1.0)

    def change(self, broker: str, value: float) -> None:
        self.sequence += 1
        changed = Changed("/s", "a", self.sequence, self.world.now_ns, (("/v", value),))
        self.world.send("@publisher", broker, changed)
        self.run(1.0)

    def run(self, seconds: float) -> None:
        self.world.run_until(self.world.now_ns + round(seconds * SECOND))

    def parents(self) -> dict[str, str]:
        found = {}
        for broker in BROKERS:
            there = self.world.nodes[broker].broker
            if there is not None:
                for tree in there.core.streams.trees():
                    parent = there.core.streams.parent(tree)
                    if parent is not None:
                        found[broker] = parent
        return found


@pytest.fixture(params=["tree-each", "one-tree"])
def town(request: pytest.FixtureRequest) -> Town:
    return Town(request.param)


def test_followers_before_and_after_the_announcement_get_what_they_need(town: Town) -> None:
    early = town.follow("@early", BROKERS[3], 1.0)
    town.announce(BROKERS[0])
    assert town.publisher.heard == [Announced("/s", "a")]
    late = town.follow("@late", BROKERS[6], 2.0)
    beside = town.follow("@beside", BROKERS[0], 0.25)
    for value in (0.0, 0.5, 1.0, 1.5, 2.5):
        town.change(BROKERS[0], value)
    assert early.values() == [0.0, 1.0, 2.5]
    assert late.values() == [0.0, 2.5]
    assert beside.values() == [0.0, 0.5, 1.0, 1.5, 2.5]
    assert town.parents() == {BROKERS[3]: BROKERS[0], BROKERS[6]: BROKERS[0]}


def test_announcing_again_is_answered_again(town: Town) -> None:
    town.announce(BROKERS[0])
    town.announce(BROKERS[0])
    assert town.publisher.heard == [Announced("/s", "a")] * 2


def test_a_home_without_followers_leaves_the_tree(town: Town) -> None:
    town.announce(BROKERS[0])
    listener = town.follow("@one", BROKERS[3], 1.0)
    town.follow("@two", BROKERS[3], 1.0)
    town.change(BROKERS[0], 0.0)
    town.world.send("@one", BROKERS[3], Unsubscribe("of @one"))
    town.run(1.0)
    assert town.parents() == {BROKERS[3]: BROKERS[0]}
    town.change(BROKERS[0], 9.0)
    assert listener.values() == [0.0]
    town.world.send("@two", BROKERS[3], Unsubscribe("of @two"))
    town.run(1.0)
    assert town.parents() == {}


def test_followers_go_with_a_publisher_to_its_new_home(town: Town) -> None:
    follower = town.follow("@follower", BROKERS[3], 1.0)
    town.announce(BROKERS[0])
    town.change(BROKERS[0], 0.0)
    town.announce(BROKERS[5])
    town.change(BROKERS[5], 4.0)
    # The old home says that it has the object until it is told otherwise.
    town.run(30.0)
    town.change(BROKERS[5], 8.0)
    assert follower.values() == [0.0, 4.0, 8.0]
    assert town.parents() == {BROKERS[3]: BROKERS[5]}


@pytest.mark.parametrize("role", [0, 3])
def test_homes_that_crash_find_each_other_again(town: Town, role: int) -> None:
    """The publisher's home, or a follower's."""
    follower = town.follow("@follower", BROKERS[3], 1.0)
    town.announce(BROKERS[0])
    town.change(BROKERS[0], 0.0)
    town.world.crash(BROKERS[role])
    town.run(8.0)
    town.world.restart(BROKERS[role], town.surroundings(BROKERS[role]))
    town.run(8.0)
    town.change(BROKERS[0], 5.0)
    assert follower.values() == [0.0, 5.0]
    assert town.parents() == {BROKERS[3]: BROKERS[0]}


def test_a_home_leaves_that_has_objects_and_a_publisher_announces_them_elsewhere(
    town: Town,
) -> None:
    follower = town.follow("@follower", BROKERS[3], 1.0)
    town.announce(BROKERS[0])
    town.change(BROKERS[0], 0.0)
    town.world.tell(BROKERS[0], Leave(), sender="!")
    town.run(5.0)
    kept = [key for key in town.world.nodes[BROKERS[0]].journal if key.startswith("streams/object")]
    assert kept == []
    assert town.parents() == {}
    town.announce(BROKERS[5])
    town.change(BROKERS[5], 4.0)
    assert follower.values() == [0.0, 4.0]
    assert town.parents() == {BROKERS[3]: BROKERS[5]}


def test_the_trees_of_a_home_that_is_lost_for_ever_are_given_up(town: Town) -> None:
    follower = town.follow("@follower", BROKERS[3], 1.0)
    town.announce(BROKERS[0])
    town.change(BROKERS[0], 0.0)
    town.world.crash(BROKERS[0])
    town.run(40.0)
    assert town.parents() == {}
    town.announce(BROKERS[5])
    town.change(BROKERS[5], 3.0)
    assert follower.values() == [0.0, 3.0]


def test_an_object_that_somebody_wanted_before_it_was_announced_is_announced() -> None:
    town = Town("one-tree")
    town.announce(BROKERS[0])
    wanted = (Wanted("/s", "b", 1, (("/v", (("absolute", 1.0),)),), -1),)
    attach = Attach(1, BROKERS[0], BROKERS[0], 1, wanted, insist=True)
    town.world.tell(BROKERS[0], attach, sender=BROKERS[3])
    town.world.tell(BROKERS[0], Announce(event_of("b")), sender="@publisher")
    town.run(2.0)
    announced = [one.subject for one in town.publisher.heard if isinstance(one, Announced)]
    assert announced == ["a", "b"]
