"""What waits for a client that moves has limits too, at its old home and at its new one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from tests.migration_worlds import MOVING, MoveWorld

from distributary.broker.client import Ended
from distributary.broker.deliveries.queues import Queued
from distributary.broker.dissemination.messages import Missed
from distributary.broker.migration.messages import Arrived, Redirect, Replicated
from distributary.broker.settings import LinkSettings

PATIENT = replace(
    MOVING,
    membership=replace(MOVING.membership, lost_s=300.0),
    links=LinkSettings(outbox_items=8),
)


def test_an_old_home_redirects_no_more_than_fits_into_its_outbox() -> None:
    """The new home is away; when it is back it is told, and the subscription ends there."""
    world = MoveWorld(settings=PATIENT)
    world.ledger.may_miss = lambda client: True
    ended = world.sent(Ended)
    missed = world.sent(Missed)
    redirected = world.sent(Redirect)
    world.customer("s", world.old, near=world.new)
    world.subscribe("t", world.other)
    world.on_first(Replicated, lambda: world.world.crash(world.new))
    world.publish_for(30)
    assert world.world.nodes[world.new].broker is None, "it was to move"
    core = world.core(world.old)
    outbox = core.links._outboxes[world.new]
    assert 8 <= len(outbox) <= 12
    assert core.deliveries.left("2@ss")[0] <= 12, "nor does it keep more"
    world.overlay.restart(world.new)
    world.run_s(30)
    assert missed[0].registrations == (("2@ss", 1),)
    assert {(one.id, one.reason) for one in ended} == {("s", "missed")}
    assert len(redirected) <= 3 * 12
    assert world.violations() == []
    assert len(world.got("t")) > 60, "others get everything"


@pytest.mark.parametrize("back", [False, True])
def test_what_a_root_gives_up_of_an_old_home_ends_where_the_client_is(back: bool) -> None:
    """The old home is away, and may never be back to say that something is missing."""
    content = replace(MOVING.content, absent_items=3)
    membership = replace(MOVING.membership, lost_s=20.0)
    world = MoveWorld(settings=replace(MOVING, content=content, membership=membership))
    world.ledger.may_miss = lambda client: True
    ended = world.sent(Ended)
    world.customer("s", world.old, near=world.new)
    world.subscribe("t", world.other)
    world.on_first(Arrived, lambda: world.world.crash(world.old))
    world.publish_for(15)
    assert world.world.nodes[world.old].broker is None, "it was to move"
    if back:
        world.overlay.restart(world.old)
    world.run_s(60)
    assert {(one.id, one.reason) for one in ended} == {("s", "missed")}
    assert world.violations() == []
    assert len(world.got("t")) > 50, "others get everything"


@pytest.mark.parametrize("crashed", [False, True])
def test_what_an_old_home_has_given_up_ends_there_if_the_client_stays(crashed: bool) -> None:
    settings = replace(PATIENT, membership=replace(MOVING.membership, lost_s=20.0))
    world = MoveWorld(settings=settings)
    world.ledger.may_miss = lambda client: True
    ended = world.sent(Ended)
    world.customer("s", world.old, near=world.new)
    world.on_first(Replicated, lambda: world.world.crash(world.new))
    world.publish_for(15)
    assert ended == []
    if crashed:
        world.world.crash(world.old)
        world.overlay.restart(world.old)
    world.run_s(30)
    assert {(one.id, one.reason, one.missed) for one in ended} == {("s", "missed", 1)}
    assert world.violations() == []


def test_a_new_home_holds_no_more_for_a_client_than_its_queue_may_have() -> None:
    """The old home is away before it has redirected the last."""
    subscriptions = replace(PATIENT.subscriptions, queue_bytes=2_000)
    world = MoveWorld(settings=replace(PATIENT, subscriptions=subscriptions))
    ended = world.sent(Ended)
    world.customer("s", world.old, near=world.new)
    world.run_s(3)
    # From now on it may end.
    world.ledger.ending("s of @s", world.world.now_ns)
    world.on_first(Arrived, lambda: world.world.crash(world.old))
    world.publish_for(10)
    assert world.world.nodes[world.old].broker is None, "it was to move"
    arrivals = world.core(world.new).migration.arrivals
    for number in range(40):
        # As a root would that has not heard of the old home.
        if world.core(world.new).subscriptions.get("2@ss") is not None:
            parcel = Queued("@s", "2@ss", 0, "/maps", str(number), "x" * 100, None, "", None)
            hold = partial(arrivals.hold, "2@ss", parcel, (0, 0, 1, number), doubtful=False)
            world.overlay.in_turn(world.new, hold)
    world.run_s(5)
    arrival = world.core(world.new).migration.arrivals._by_client["@s"]
    assert arrival.size_bytes == sum(one.parcel.size_bytes for one in arrival.held.values())
    assert 0 < arrival.size_bytes < 3_000
    assert {(one.id, one.reason) for one in ended} == {("s", "bytes")}
    world.overlay.restart(world.old)
    world.run_s(30)
    assert "@s" not in world.core(world.new).migration.arrivals._by_client
    assert world.violations() == []
