"""Clients that move while brokers crash, are lost for ever, or cannot hear each other well."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from tests.broker_overlays import MS, SECOND
from tests.content_worlds import SETTINGS
from tests.migration_worlds import MOVING as MOVING_SETTINGS
from tests.migration_worlds import MoveWorld
from tests.planted_bugs import forgets

from distributary.broker.addresses import HOST
from distributary.broker.client import Ended, Subscribe, Subscribed, Unsubscribed
from distributary.broker.deliveries.queues import Queued
from distributary.broker.encoding import journal_key
from distributary.broker.host import Erase, OrderMove, Persist, Turn
from distributary.broker.migration.arrivals import Arrival, Arrivals, HeldRecord
from distributary.broker.migration.messages import (
    MOVING,
    AcceptMove,
    Arrived,
    Connect,
    Connected,
    MoveNow,
    Redirect,
    RedirectEnd,
    Replicate,
    Replicated,
    RequestToMove,
    Reserve,
    Reserved,
)
from distributary.broker.publishing.publications import Kept
from distributary.broker.publishing.publishing import Publishing
from distributary.broker.subscriptions.lifecycle import EXPIRED, NoticeRecord
from distributary.broker.subscriptions.registrar import Withdraw
from distributary.broker.subscriptions.subscription import WithdrawalRecord, scoped_id
from distributary.broker.subscriptions.subscriptions import Subscriptions
from distributary.content import Subscription
from distributary.simulator.workload.subscriber import Subscriber

STEPS = (
    Reserve,
    Reserved,
    RequestToMove,
    AcceptMove,
    Replicate,
    Replicated,
    MoveNow,
    Connect,
    Redirect,
    Arrived,
    RedirectEnd,
)


def moving() -> tuple[MoveWorld, Subscriber]:
    """A world in which a client will move as soon as something is published."""
    world = MoveWorld()
    device = world.customer("s", world.old, near=world.new)
    return world, device


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
@pytest.mark.parametrize("who", ["old", "new", "root"])
def test_a_crash_at_any_step_loses_repeats_and_reorders_nothing(who: str, step: type) -> None:
    world, device = moving()
    world.on_first(step, lambda: world.crash_for(getattr(world, who), 3))
    world.run_s(3)
    world.publish_for(8, every_s=0.5)
    world.run_s(16)
    assert world.world.nodes[getattr(world, who)].life == 1
    assert device.home == world.new
    assert world.arrivals() == [("@s", world.new)]
    assert len(world.got("s")) == 16
    assert world.violations() == []
    assert world.leftovers() == []


@pytest.mark.parametrize(
    "step",
    [Reserved, AcceptMove, Replicate, Replicated, MoveNow, Connect],
    ids=lambda step: step.__name__,
)
def test_a_client_stays_with_all_that_is_its_own_when_the_target_is_lost(step: type) -> None:
    world, device = moving()
    world.on_first(step, lambda: world.lose(world.new))
    world.run_s(3)
    world.publish_for(8, every_s=0.5)
    world.run_s(35)
    assert device.home == world.old
    assert world.arrivals() == []
    assert not world.core(world.old).migration.departures.has_left("@s")
    world.publish_for(2)
    world.run_s(2)
    assert len(world.got("s")) == 16 + 8
    assert world.violations() == []


@pytest.mark.parametrize("step", [Redirect, Arrived, RedirectEnd], ids=lambda step: step.__name__)
@pytest.mark.parametrize("back", [False, True], ids=["elsewhere", "back"])
def test_a_client_that_was_at_the_target_goes_on_at_any_other_broker(
    back: bool, step: type
) -> None:
    world, device = moving()
    if back:
        world.other = world.old
    world.on_first(step, lambda: world.lose(world.new))
    world.run_s(3)
    world.publish_for(8, every_s=0.5)
    world.run_s(35)
    assert device.home == world.other
    assert not world.core(world.old).migration.departures.has_left("@s")
    before = len(world.got("s"))
    world.publish_for(2)
    world.run_s(2)
    assert len(world.got("s")) == before + 8
    assert world.violations() == []


@pytest.mark.parametrize(
    "step", [MoveNow, Connect, Redirect, Arrived, RedirectEnd], ids=lambda step: step.__name__
)
def test_the_new_home_does_not_wait_for_an_old_one_that_is_lost(step: type) -> None:
    world, device = moving()
    world.on_first(step, lambda: world.lose(world.old))
    world.run_s(3)
    world.publish_for(8, every_s=0.5)
    world.run_s(35)
    assert device.home == world.new
    assert len(world.got("s")) == 16
    assert world.violations() == []
    assert world.leftovers() == []


@pytest.mark.parametrize("forgetful", [False, True])
def test_a_home_goes_on_redirecting_after_a_crash_until_roots_have_heard_of_it(
    forgetful: bool,
) -> None:
    """Which it would not if it did not keep what it withdraws."""
    parts = {"subscriptions": forgets(Subscriptions, WithdrawalRecord)} if forgetful else None
    world = MoveWorld(parts=parts)
    device = world.customer("s", world.old, near=world.new)
    world.run_s(3)
    network, ended = world.overlay.network, world.sent(RedirectEnd)

    def separate() -> None:
        network.apart = frozenset({world.root})
        world.crash_for(world.old, 0.5)

    world.on_first(Withdraw, separate)
    while not network.apart:
        world.publish_for(0.25)
    # Not so long that there is another root.
    world.run_s(1.25)
    assert device.home == world.new
    assert bool(ended) is forgetful
    network.apart = frozenset()
    world.publish_for(2)
    world.run_s(8)
    assert ended
    assert world.violations() == []


def disturbed(seed: int, *, loss: float, crashes: int) -> MoveWorld:
    """Two clients that move to two brokers in a bad network, with crashes within turns."""
    world = MoveWorld(seed=seed)
    world.customer("s", world.old, near=world.new)
    world.customer("t", world.old, near=world.other, filters=[{"exact": {"type": "map"}}])
    world.run_s(3)
    network, rng = world.overlay.network, random.Random(seed)
    network.loss, network.repeats, network.spread_ns = loss, 0.1, 200 * MS
    for _ in range(crashes):
        at_ns = world.world.now_ns + round(rng.uniform(0.0, 12.0) * SECOND)
        world.world.at(at_ns, world.tear, rng.choice(world.members))
    world.publish_for(12, every_s=0.5)
    world.run_s(20)
    network.loss = network.repeats = 0.0
    network.spread_ns = 0
    world.run_s(25)
    return world


@pytest.mark.parametrize(
    ("seed", "loss", "crashes"),
    [(1, 0.2, 0), (2, 0.2, 0), (2, 0.05, 5), (5, 0.05, 5), (24, 0.1, 7)],
)
def test_clients_move_through_a_bad_network_and_crashes(
    seed: int, loss: float, crashes: int
) -> None:
    world = disturbed(seed, loss=loss, crashes=crashes)
    assert world.subscribers["s"].home == world.new
    assert world.subscribers["t"].home == world.other
    assert sorted(world.arrivals()) == [("@s", world.new), ("@t", world.other)]
    assert len(world.got("s")) == len(world.got("t")) == 24
    assert world.violations() == []
    assert world.leftovers() == []


def test_a_client_that_is_long_in_coming_is_waited_for_through_a_crash() -> None:
    world, device = moving()
    deaf = [MoveNow]
    hear = device._move
    device.handle(MoveNow, lambda message: None if deaf else hear(message))
    world.run_s(3)
    world.publish_for(4)
    world.run_s(4)
    assert world.core(world.old).migration.departures.has_left("@s")
    world.crash_for(world.old, 2)
    world.run_s(6)
    assert device.home == world.old
    deaf.clear()
    world.run_s(3)
    assert device.home == world.new
    assert len(world.got("s")) == 16
    assert world.violations() == []


def test_a_client_that_is_long_in_hearing_of_its_new_home_is_no_new_one_at_the_old_one() -> None:
    world = MoveWorld()
    device = world.customer("s", world.old, near=world.new)
    world.run_s(1)
    answered: list[Connected] = []
    device._connected = answered.append  # type: ignore[assignment, method-assign]
    world.publish_for(10)
    assert answered, "it does not hear the answer"
    world.run_s(MOVING_SETTINGS.content.retention_s + 5)
    assert world.arrivals() == [("@s", world.new)]
    device.change(Subscription.parse({"id": "s", "filters": [{"exact": {"type": "map"}}]}))
    world.run_s(4)
    assert world.core(world.old).subscriptions.of_client("@s") == []
    del device._connected
    world.run_s(20)
    assert device.home == world.new
    world.publish_for(10)
    world.run_s(20)
    assert [local.revision for local in world.core(world.new).subscriptions.of_client("@s")]
    assert len(world.got("s")) == 80
    assert world.violations() == []


def test_a_late_answer_to_a_reservation_does_not_refuse_what_is_replicated() -> None:
    """A `Reserve` that is repeated and comes late finds the client there, and moving."""
    world, device = moving()
    late = Reserved("@s", MOVING)
    world.on_first(Replicate, lambda: world.world.tell(world.old, late, sender=world.new))
    world.run_s(3)
    world.publish_for(8, every_s=0.5)
    world.run_s(16)
    assert device.home == world.new
    assert world.arrivals() == [("@s", world.new)]
    assert len(world.got("s")) == 16
    assert world.violations() == []
    assert world.leftovers() == []


def test_what_was_redirected_early_is_taken_when_a_crash_has_come_in_between() -> None:
    """The first is taken and on the disk; it comes again, as it was not acknowledged."""
    world, _ = moving()
    core = world.core(world.new)
    arrivals = Arrivals(core)
    first, second = (
        HeldRecord(
            "@s", "s", Queued("@s", "s", 0, "/s", name, "{}", None, "", None), 0, 0, 1, place
        )
        for place, name in enumerate(("first", "second"), start=1)
    )
    record = replace(Arrival("@s", world.old).record(), taken=1)
    arrivals.load("arriving/@s", record)
    arrivals.load("early/@s/000000002", second)
    turn = Turn(world.world.now_ns)
    arrivals.redirected(1, first, world.old, turn)
    kept = [one.record for one in turn.effects if isinstance(one, Persist)]
    assert kept == [replace(record, taken=2)]
    assert turn.effects[-1] == Erase(f"migration/early/{journal_key('@s')}/000000002")


def test_what_waits_for_a_client_that_comes_is_kept_once_however_often_it_is_sent() -> None:
    world, _ = moving()
    arrivals, turn = Arrivals(world.core(world.new)), Turn(world.world.now_ns)
    arrivals.load("arriving/@s", Arrival("@s", world.old).record())
    one, other = (
        Queued("@s", "s", 0, "/s", name, "{}", None, "", None) for name in ("one", "other")
    )
    for parcel, subscription in ((one, "s"), (other, "s"), (one, "t"), (one, "s"), (other, "s")):
        arrivals.hold(subscription, parcel, (0, 0, 1, 1), turn, doubtful=False)
    kept: dict[str, HeldRecord] = {}
    for effect in turn.effects:
        assert isinstance(effect, Persist)
        assert isinstance(effect.record, HeldRecord)
        kept[effect.key.removeprefix("migration/")] = effect.record
    assert [(key[-2:], record.name) for key, record in kept.items()] == [
        ("01", ("s", one.identity)),
        ("02", ("s", other.identity)),
        ("03", ("t", one.identity)),
    ]
    restored, again = Arrivals(world.core(world.new)), Turn(world.world.now_ns)
    restored.load("arriving/@s", Arrival("@s", world.old).record())
    for key, record in kept.items():
        restored.load(key, record)
    restored.hold("s", one, (0, 0, 1, 1), again, doubtful=False)
    assert again.effects == []


@pytest.mark.parametrize("crashed", [False, True])
def test_what_a_client_said_when_it_came_does_not_bring_it_back(crashed: bool) -> None:
    """It comes twice, and the second time so late that the client has left again."""
    world = MoveWorld()
    asked = world.sent(Subscribe)
    device = world.customer("s", world.old, near=world.new)
    world.run_s(3)
    world.publish_for(4)
    world.run_s(8)
    assert device.home == world.new
    assert world.core(world.old).migration.departures.snapshot()[0]["state"] == "left"
    if crashed:
        world.crash_for(world.old, 1)
        world.run_s(5)
    told = world.sent(MoveNow)
    for message in (Connect(()), asked[0]):
        world.world.tell(world.old, message, sender="@s")
    assert [message.target for message in told] == [world.new] * 2
    world.publish_for(2)
    world.run_s(8)
    assert len(world.got("s")) == 16 + 8
    assert world.violations() == []


@pytest.mark.parametrize("crashed", [False, True])
def test_what_a_client_said_on_its_first_visit_is_not_its_coming_to_the_second(
    crashed: bool,
) -> None:
    """Its last home would leave it alone with what it has: it has not heard where to go."""
    world = MoveWorld(settings=SETTINGS)
    device = world.subscribe("s", world.old)
    said = world.sent(Connect)
    for target in (world.new, world.old):
        world.run_s(3)
        world.world.tell(device.home, OrderMove("@s", target), sender=HOST)
        world.run_s(15)
        assert device.home == target
    deaf = [MoveNow]
    hear = device._move
    device.handle(MoveNow, lambda message: None if deaf else hear(message))
    world.world.tell(world.old, OrderMove("@s", world.new), sender=HOST)
    world.run_s(3)
    if crashed:
        world.crash_for(world.new, 1)
        world.run_s(5)
    world.world.tell(world.new, said[0], sender="@s")
    world.run_s(20)
    assert world.core(world.old).migration.departures.snapshot()[0]["state"] == "redirecting"
    world.publish("1", world.far, media_type=None)
    deaf.clear()
    world.run_s(15)
    assert device.home == world.new
    assert world.core(world.old).migration.departures.snapshot()[0]["state"] == "left"
    assert [name for name, _ in world.got("s")] == ["1"]
    assert world.violations() == []


@pytest.mark.parametrize("way", ["lost", "lost and crashed", "moved"])
def test_a_home_that_a_client_comes_back_to_forgets_what_had_waited_there(way: str) -> None:
    """The client has got newer things elsewhere, where it had subscribed anew."""
    world = MoveWorld(settings=SETTINGS)
    device = world.subscribe("s", world.old)
    world.run_s(3)
    world.overlay.network.apart = frozenset({"@s"})
    world.publish("1", world.far, media_type=None)
    world.run_s(2)
    world.overlay.network.apart = frozenset()
    world._reattach(world.old)
    world.run_s(4)
    world.publish("2", world.far, media_type=None)
    world.run_s(2)
    assert [name for name, _ in world.got("s")] == ["2"]
    home, world.other = world.other, world.old
    if way == "moved":
        device._lost.clear()
        world.world.tell(home, OrderMove("@s", world.old), sender=HOST)
    else:
        world.lose(home)
    if way == "lost and crashed":
        world.run_s(4)
        world.crash_for(world.old, 1)
    world.run_s(20)
    assert device.home == world.old
    world.publish("3", world.far, media_type=None)
    world.run_s(4)
    assert [name for name, _ in world.got("s")] == ["2", "3"]
    assert world.violations() == []
    assert world.leftovers() == []


def test_a_client_that_repeats_what_it_said_before_it_began_anew_is_not_heard() -> None:
    world = MoveWorld(settings=SETTINGS)
    device = world.subscribe("s", world.old)
    world.run_s(3)
    world.other = world.old
    world._reattach(world.old)
    world.run_s(3)
    known = world.core(world.old).subscriptions.get(scoped_id("@s", "s"))
    assert known is not None
    world.world.tell(world.old, Subscribe(known.text, known.revision), sender="@s")
    world.run_s(2)
    after = world.core(world.old).subscriptions.get(scoped_id("@s", "s"))
    assert after is known
    assert (known.epoch, known.generation, known.confirmed) == (1, 1, True)
    world.publish("1", world.far, media_type=None)
    world.run_s(2)
    assert [name for name, _ in world.got("s")] == ["1"]
    assert device.received_numbers() == (("s", 1),)


OTHER = {"protocol": "HTTP", "sink": "http://x", "types": [], "filters": [{"exact": {"type": "x"}}]}


def ended_elsewhere() -> tuple[MoveWorld, Subscriber]:
    """A client that has ended its subscription at a new home, which is lost before others know."""
    world = MoveWorld(settings=SETTINGS)
    device = world.subscribe("s", world.old)
    world.run_s(3)
    world.world.tell(world.old, OrderMove("@s", world.new), sender=HOST)
    world.on_first(Connected, lambda: device.unsubscribe("s"))
    world.on_first(Unsubscribed, lambda: world.lose(world.new))
    return world, device


@pytest.mark.parametrize("crashed", [False, True])
def test_what_a_client_has_ended_at_a_home_that_is_lost_stays_ended(crashed: bool) -> None:
    world, device = ended_elsewhere()
    world.other = world.old
    arrived = world.sent(Arrived)
    if crashed:
        world.run_s(10)
        world.crash_for(world.old, 1)
    world.run_s(35)
    assert arrived == []
    assert device.home == world.old
    assert world.core(world.old).subscriptions.of_client("@s") == []
    world.publish("1", world.far, media_type=None)
    world.run_s(4)
    assert world.got("s") == []
    assert world.violations() == []


def test_what_a_client_has_ended_stays_so_when_another_home_sends_it_back() -> None:
    world, device = ended_elsewhere()
    world.run_s(35)
    assert device.home == world.other
    device.subscribe(Subscription.parse({"id": "t", **OTHER}))
    # While the one that was ended is withdrawn, the client cannot come.
    for _ in range(2):
        world.run_s(2)
        world.world.tell(world.other, OrderMove("@s", world.old), sender=HOST)
        world.run_s(13)
    assert device.home == world.old
    names = [local.id for local in world.core(world.old).subscriptions.of_client("@s")]
    assert names == [scoped_id("@s", "t")]
    world.publish("1", world.far, media_type=None)
    world.run_s(4)
    assert world.got("s") == []
    assert world.violations() == []


def test_a_home_does_not_serve_what_a_client_has_changed_elsewhere_as_it_was() -> None:
    """It answers when the client has said again what it wants, which it may do later."""
    world = MoveWorld(settings=SETTINGS)
    world.subscribe("s", world.old)
    world.run_s(3)
    knock = Connect((), 1, wanted=(("s", 1),))
    changed = Subscribe(json.dumps({"id": "s", **OTHER}), 1, epoch=1)
    connected, subscribed = world.sent(Connected), world.sent(Subscribed)
    for number, message in enumerate((knock, changed, knock)):
        world.publish(f"{number}", world.far, media_type=None)
        world.run_s(2)
        world.world.tell(world.old, message, sender="@s")
        world.run_s(2)
    assert subscribed == [Subscribed("s", 1)]
    # What has come before waits no more.
    assert connected == [Connected((("s", 2),))]


def test_a_home_does_not_tell_of_ends_that_a_client_has_put_off_elsewhere() -> None:
    world = MoveWorld(settings=SETTINGS)
    world.run_s(3)
    subscriptions = world.core(world.old).subscriptions
    told = world.sent(Ended)
    for own, epoch in (("s", 0), ("t", 1)):
        notice = NoticeRecord("@c", own, EXPIRED, 0, 0, 0, world.world.now_ns, epoch=epoch)
        subscriptions._notices.add(notice, Turn(world.world.now_ns))
    world.world.tell(world.old, Connect((), 1, wanted=(("s", 1),)), sender="@c")
    world.run_s(5)
    assert {message.id for message in told} == {"t"}


@pytest.mark.parametrize("crashed", [False, True])
@pytest.mark.parametrize("step", [Redirect, Arrived, RedirectEnd], ids=lambda step: step.__name__)
def test_a_client_that_has_waited_for_its_home_is_served_when_that_is_back(
    step: type, crashed: bool
) -> None:
    """Others have taken the home for lost; its old one has kept the client, or forgotten it."""
    world = MoveWorld(settings=SETTINGS)
    device = world.subscribe("s", world.old)
    world.run_s(3)
    world.world.tell(world.old, OrderMove("@s", world.new), sender=HOST)
    world.on_first(step, lambda: world.crash_for(world.new, 30))
    world.publish_for(5)
    if crashed:
        world.run_s(22)
        world.crash_for(world.old, 1)
    world.run_s(40)
    assert device.home == world.new
    assert world.core(world.old).subscriptions.of_client("@s") == []
    before = len(world.got("s"))
    world.publish_for(5)
    world.run_s(5)
    assert len(world.got("s")) == before + 20
    assert world.leftovers() == []


@pytest.mark.parametrize("step", [MoveNow, Connect], ids=lambda step: step.__name__)
def test_a_client_that_has_stayed_does_not_go_to_a_home_that_is_back(step: type) -> None:
    """That has what the client had when it was to come."""
    world = MoveWorld(settings=SETTINGS)
    device = world.subscribe("s", world.old)
    world.run_s(3)
    world.world.tell(world.old, OrderMove("@s", world.new), sender=HOST)
    world.on_first(step, lambda: world.crash_for(world.new, 30))
    world.run_s(28)
    device.unsubscribe("s")
    world.run_s(30)
    assert device.home == world.old
    world.publish("1", world.far, media_type=None)
    world.run_s(4)
    assert world.got("s") == []
    assert world.violations() == []


class ToldBySplit(Publishing):
    """A publisher's home that a root of the other side has told who was served there."""

    served: tuple[tuple[str, str], ...] = ()

    def offer(self, kept: Kept, turn: Turn) -> None:
        kept.served = self.served
        super().offer(kept, turn)


def test_what_a_client_covers_that_moves_comes_though_its_next_home_has_been_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A root that was behind a split did not know of its old one, where it covers others still.

    Seen in a random scenario: the others got it behind later items, by registrations of their own.
    """
    migration = replace(MOVING_SETTINGS.migration, redirect_s=60.0)
    settings = replace(MOVING_SETTINGS, migration=migration)
    world = MoveWorld(settings=settings, parts={"publishing": ToldBySplit})
    world.subscribe("w", world.old)
    world.run_s(2)
    world.subscribe("n", world.old)
    world.run_s(2)
    world.world.tell(world.old, OrderMove("@w", world.new), sender=HOST)
    world.run_s(5)
    assert world.subscribers["w"].home == world.new
    told = ((world.new, scoped_id("@w", "w")),)
    monkeypatch.setattr(ToldBySplit, "served", told)
    world.publish("1", world.far, media_type=None)
    world.run_s(3)
    assert [name for name, _ in world.got("n")] == ["1"]
    assert [name for name, _ in world.got("w")] == ["1"]
    monkeypatch.undo()
    world.run_s(90)
    assert world.violations() == []


def test_a_subscription_of_a_client_that_arrives_covers_nobody() -> None:
    """Roots serve its old home until that withdraws."""
    migration = replace(MOVING_SETTINGS.migration, redirect_s=6.0)
    world = MoveWorld(settings=replace(MOVING_SETTINGS, migration=migration))
    world.customer("s", world.old, near=world.new)

    def subscribe() -> None:
        world.subscribe("n", world.new)

    world.on_first(Arrived, subscribe)
    world.publish_for(20)
    world.run_s(20)
    assert world.arrivals()
    assert world.got("n")
    assert world.violations() == []


def begun_anew_elsewhere(*, home_is_away: bool) -> MoveWorld:
    """A client whose subscription covers another at its home has begun anew at another one."""
    settings = replace(SETTINGS, content=replace(SETTINGS.content, retention_s=5.0))
    world = MoveWorld(settings=settings)
    wide = world.subscribe("wide", world.old)
    world.run_s(3)
    world.subscribe("narrow", world.old, [{"exact": {"type": "map"}}])
    world.run_s(3)
    if home_is_away:
        world.world.crash(world.old)
    wide.reattach(world.new)
    # It takes homes for lost that are only away.
    wide._lost.clear()
    world.run_s(8 if home_is_away else 3)
    return world


@pytest.mark.parametrize("home_is_away", [False, True])
def test_what_a_client_covers_that_begins_anew_elsewhere_goes_on(home_is_away: bool) -> None:
    """No fault is needed, and however long its home is away: others there are owed everything."""
    world = begun_anew_elsewhere(home_is_away=home_is_away)
    world.publish("1", world.far, media_type=None)
    world.run_s(12)
    if home_is_away:
        world.world.restart(world.old)
        world.run_s(12)
    for name in ("2", "3"):
        world.publish(name, world.far, media_type=None)
        world.run_s(12)
    assert [name for name, _ in world.got("wide")] == ["1", "2", "3"]
    assert [name for name, _ in world.got("narrow")] == ["1", "2", "3"]
    assert world.violations() == []


def test_what_a_client_has_begun_anew_elsewhere_ends_where_it_was() -> None:
    """What it covered has a registration of its own then, and nothing comes for nobody."""
    world = begun_anew_elsewhere(home_is_away=False)
    core = world.core(world.old)
    narrow = core.subscriptions.get(scoped_id("@narrow", "narrow"))
    assert narrow is not None
    assert narrow.coverer == scoped_id("@wide", "wide")
    world.publish("1", world.far, media_type=None)
    world.run_s(12)
    assert core.subscriptions.of_client("@wide") == []
    assert core.subscriptions.withdrawing([scoped_id("@wide", "wide")]) is False
    assert narrow.coverer is None
    assert core.deliveries.left(scoped_id("@wide", "wide")) == (0, 0, 0)
    assert world.core(world.root).rendezvous.registration(world.old, narrow.registration)


def test_what_is_said_late_of_an_earlier_registration_ends_no_later_one() -> None:
    world = begun_anew_elsewhere(home_is_away=False)
    home = world.core(world.new).subscriptions
    known = home.get(scoped_id("@wide", "wide"))
    assert known is not None
    turn = Turn(world.world.now_ns)
    home.supersede(known.registration, known.claim - 1, turn)
    assert known.live
    home.supersede(known.registration, known.claim, turn)
    assert not known.live
