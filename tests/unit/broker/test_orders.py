"""Orders of an operator go the way of the protocol, or are refused with a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.content_worlds import ContentWorld
from tests.migration_worlds import MoveWorld
from tests.stream_worlds import SECOND, StreamWorld, broker_name

from distributary.broker.adaptation.messages import Order
from distributary.broker.addresses import HOST
from distributary.broker.host import ClientGone, OrderMove, OrderTree
from distributary.broker.telemetry import Measured, Migrated, MoveRefused, TreeOrdered
from distributary.content.tolerance import Tolerance


def reports_of(world: Any, kind: type) -> list[Any]:
    found: list[Any] = []

    def watch(broker: str, record: object, now_ns: int) -> None:
        if isinstance(record, kind):
            found.append(record)

    world.watchers.append(watch)
    return found


def test_a_client_is_moved_by_order_and_misses_nothing() -> None:
    """It saves nothing where it goes: only an order takes it there."""
    world = MoveWorld()
    client = world.customer("c", world.old, near=world.old)
    moved = reports_of(world.world, Migrated)
    world.run_s(5)
    world.world.at(
        world.world.now_ns + 5 * SECOND,
        lambda: world.world.tell(world.old, OrderMove(client.address, world.new), sender=HOST),
    )
    world.publish_for(20)
    world.run_s(30)
    assert [(record.client, record.home) for record in moved][:1] == [(client.address, world.new)]
    assert world.violations() == []


@pytest.mark.parametrize(
    ("client", "target", "reason"),
    [
        ("@nobody", "new", "no client"),
        ("@c", "old", "its home"),
        ("@c", "gone", "not there"),
        ("@c", "away", "no connection"),
    ],
)
def test_a_move_that_cannot_be_is_refused_with_a_reason(
    client: str, target: str, reason: str
) -> None:
    world = MoveWorld()
    world.customer("c", world.old, near=world.old)
    world.run_s(5)
    refused = reports_of(world.world, MoveRefused)
    to = {"old": world.old, "gone": "f" * len(world.old)}.get(target, world.new)
    if target == "away":
        world.world.tell(world.old, ClientGone(client), sender=HOST)
    world.world.tell(world.old, OrderMove(client, to), sender=HOST)
    assert len(refused) == 1
    assert reason in refused[0].reason


TREE = "/s a"


def star(count: int) -> StreamWorld:
    """Everybody below the root."""
    world = StreamWorld()
    below = [broker_name(n) for n in range(1, count)]
    world.add(broker_name(0), [None], below)
    for broker in below:
        world.add(broker, [broker_name(0)])
        world.subscribe(broker, "a", Tolerance("/v", "absolute", 1.0))
    world.run(5)
    return world


def chain(count: int) -> tuple[tuple[str, str], ...]:
    """Everybody below the one before."""
    return tuple((broker_name(n), broker_name(n - 1)) for n in range(1, count))


def test_a_tree_is_brought_into_an_ordered_shape() -> None:
    world = star(7)
    tree, root = TREE, broker_name(0)
    done = reports_of(world.world, TreeOrdered)
    world.world.tell(root, OrderTree(tree, chain(7)), sender=HOST)
    world.run(60)
    assert done == [TreeOrdered(tree, 6, ())]
    assert {n: world.parent(broker_name(n), TREE) for n in range(1, 7)} == {
        n: broker_name(n - 1) for n in range(1, 7)
    }


def test_a_shape_that_goes_round_in_a_circle_is_refused() -> None:
    world = star(4)
    done = reports_of(world.world, TreeOrdered)
    circle = ((broker_name(1), broker_name(2)), (broker_name(2), broker_name(1)))
    world.world.tell(broker_name(0), OrderTree(TREE, circle), sender=HOST)
    assert [(record.moved, record.reason) for record in done] == [
        (0, "the shape goes round in a circle")
    ]


def test_only_the_root_of_a_tree_is_told_its_shape() -> None:
    world = star(4)
    done = reports_of(world.world, TreeOrdered)
    sent: list[object] = []
    world.world.listeners.append(lambda _s, _t, message, _n: sent.append(message))
    world.world.tell(broker_name(1), OrderTree(TREE, chain(4)), sender=HOST)
    assert "not the root" in done[0].reason
    assert not [message for message in sent if isinstance(message, Order)]


def test_who_does_not_answer_is_said_to_have_stayed() -> None:
    world = star(4)
    done = reports_of(world.world, TreeOrdered)
    world.world.crash(broker_name(2))
    world.world.tell(broker_name(0), OrderTree(TREE, chain(4)), sender=HOST)
    world.run(200)
    assert done[0].moved == 1
    assert (broker_name(2), broker_name(1)) in done[0].refused


def test_a_snapshot_is_plain_data_and_shows_what_there_is() -> None:
    world = ContentWorld(5)
    world.subscribe("s", world.members[0])
    world.run_s(5)
    measured = reports_of(world.world, Measured)
    world.publish("map 1", world.members[1])
    world.run_s(15)
    seen = {one: world.overlay.broker(one).snapshot() for one in world.members}
    assert json.loads(json.dumps(seen)) == seen
    home = seen[world.members[0]]
    assert [one["id"] for one in home["subscriptions"]["subscriptions"]] == ["s"]
    assert [(one["last"], one["waiting"]) for one in home["deliveries"]["queues"]] == [(1, 0)]
    assert {one["broker"] for one in home["membership"]["members"]} == {*world.members[1:]}
    plans = [plan for one in seen.values() for plan in one["dissemination"]["recent"]]
    assert [(plan["source"], plan["id"]) for plan in plans] == [("/maps", "map 1")]
    nodes = plans[0]["plan"]
    assert nodes[0]["parent"] is None
    assert nodes[-1]["broker"] == world.members[0]
    assert all(node["parent"] in {one["broker"] for one in nodes} for node in nodes[1:])
    assert sum(count for one in measured for _, count in one.delivered) == 1
    assert sum(share.publications for one in measured for share in one.published) == 1
    assert all(hop.mean_s >= 0.0 for one in measured for hop in one.hops)
