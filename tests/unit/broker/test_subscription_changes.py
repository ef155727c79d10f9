"""A subscription can be changed: what was published before is owed by what it was before."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count

import pytest
from tests.broker_overlays import MS, SECOND, Overlay
from tests.broker_subscribers import (
    Subscriber,
    cell_of,
    core_of,
    event,
    holders,
    matching,
    settings_with,
)
from tests.content_worlds import JPEG, PDF, SETTINGS, TEXT, ContentWorld
from tests.migration_worlds import MoveWorld

from distributary.broker.addresses import HOST
from distributary.broker.client import Delivery, Subscribed
from distributary.broker.host import OrderMove, Turn
from distributary.broker.migration.messages import Connected, Redirect, RedirectEnd
from distributary.broker.subscriptions.registrar import Register, Withdraw
from distributary.broker.subscriptions.subscription import scoped_id
from distributary.content import Subscription
from distributary.simulator.workload.publisher import Publisher

ALARM, OTHER = {"exact": {"type": "alarm"}}, {"exact": {"type": "other"}}
LARGE = {"range": {"level": {"min": 10}}}
TOLERANCE = {"value": "/v", "divergence": "absolute", "amount": 1.0}
RETENTION_S = SETTINGS.content.retention_s


def wanting(kind: str, accept: Sequence[str] | None = None) -> Subscription:
    document: dict[str, object] = {"id": "s", "filters": [{"exact": {"type": kind}}]}
    if accept is not None:
        document["profile"] = {"accept": list(accept)}
    return Subscription.parse(document)


def test_what_a_change_asks_for_comes_after_its_answer_and_the_rest_before() -> None:
    world = ContentWorld(5)
    device = world.subscribe("s", world.members[0], [ALARM])
    world.run_s(2)
    for name, kind in (("1", "alarm"), ("2", "other")):
        world.publish(name, world.members[1], kind=kind)
    world.run_s(2)
    device.change(wanting("other"))
    world.run_s(3)
    for name, kind in (("3", "alarm"), ("4", "other")):
        world.publish(name, world.members[1], kind=kind)
    world.run_s(3)
    assert [name for name, _ in world.got("s")] == ["1", "4"]
    assert device.received_numbers() == (("s", 2),), "the queue and its numbers stay"
    assert world.violations() == []


def test_what_was_published_before_a_change_and_comes_after_it_is_owed() -> None:
    """From behind a partition, long after the answer."""
    world = ContentWorld(6)
    home, root = world.members[0], world.root_of("alarm")
    far = next(one for one in world.members if one not in (home, root, world.root_of("other")))
    device = world.subscribe("s", home, [ALARM])
    world.run_s(3)
    world.overlay.network.apart = frozenset({far, "@publisher of /maps"})
    world.publish("1", far, kind="alarm")
    world.run_s(3)
    device.change(wanting("other"))
    world.run_s(6)
    assert world.ledger.wishes["s of @s"].change is None
    world.overlay.network.apart = frozenset()
    world.run_s(25)
    assert [name for name, _ in world.got("s")] == ["1"]
    assert world.violations() == []


@pytest.mark.parametrize("covered", [False, True])
@pytest.mark.parametrize("crashes", [False, True])
def test_what_a_root_still_owes_to_what_was_before_a_change_is_taken(
    crashes: bool, covered: bool
) -> None:
    """However long ago the change was: roots say when they owe nothing any more.

    A home may have no room for what it holds back, and leave it to the root to send that again.
    """
    world = ContentWorld(5)
    home, root = world.members[0], world.root_of("alarm")
    far = next(one for one in world.members if one not in (home, root))
    if covered:
        world.subscribe("wide", home, [{"any": [ALARM, OTHER]}])
        world.run_s(3)
    device = world.subscribe("s", home, [ALARM])
    world.run_s(3)
    deliveries = core_of(world.overlay, home).deliveries
    deliveries.receive = lambda arrival, turn: None  # type: ignore[method-assign]
    world.publish("1", far, kind="alarm", media_type=None)
    world.run_s(2)
    device.change(wanting("other"))
    world.run_s(RETENTION_S + 5)
    subscriptions = core_of(world.overlay, home).subscriptions
    name = scoped_id("@s", "s")
    assert subscriptions.registered(name) is None
    assert subscriptions.withdrawing([name])
    if crashes:
        world.overlay.world.crash(home)
        world.overlay.restart(home)
    else:
        del deliveries.receive
    world.run_s(60)
    assert [name for name, _ in world.got("s")] == ["1"]
    assert world.violations() == []
    subscriptions = core_of(world.overlay, home).subscriptions
    assert not subscriptions.withdrawing([name])
    assert subscriptions.ghosts(name) == []


@pytest.mark.parametrize(("filters", "got"), [([LARGE], ["1"]), ([], ["1", "2"])])
def test_what_is_published_after_a_change_does_not_come_by_what_was_before(
    filters: Sequence[object], got: Sequence[str]
) -> None:
    """A root that was away and does not know of the change yet would have it overtake others.

    Seen with `changes.toml`, seed 70084.
    """
    world = ContentWorld(5)
    root = world.root_of()
    home, far, *_ = (one for one in world.members if one != root)
    device = world.subscribe("s", home, [{"not": LARGE}])
    world.run_s(3)
    device.change(Subscription.parse({"id": "s", "filters": list(filters)}))
    world.run_s(0.4)
    rendezvous = core_of(world.overlay, root).rendezvous
    entry = rendezvous._table.get((home, "1+" + scoped_id("@s", "s")))
    assert entry is not None, "it has been told of the change"
    copy = entry.copy()
    world.overlay.in_turn(
        root, lambda turn: rendezvous._registry.drop(entry, set(entry.cells), turn)
    )
    for name, level in (("1", 20), ("2", 1)):
        world.publish(name, far, media_type=None, level=level)
        world.run_s(0.2)
    world.overlay.in_turn(root, lambda turn: rendezvous._registry.take(copy, turn, late=True))
    world.run_s(3)
    assert [name for name, _ in world.got("s")] == got
    assert world.violations() == []


def test_no_root_knows_what_a_subscription_is_now_and_not_what_it_was() -> None:
    """What is on its way to a root that goes down takes another way, to the next one.

    Seen with `changes.toml`, seed 70168.
    """
    overlay = Overlay(6)
    cell = cell_of(overlay, event("alarm"))
    line = core_of(overlay, overlay.members[0]).rendezvous._replication.line(cell)
    home = next(one for one in overlay.members if one not in line)
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", ALARM)
    overlay.run_s(2)
    client.subscribe("s", {"any": [ALARM, OTHER]}, revision=1)
    overlay.run_s(2)
    for broker in line[:2]:
        overlay.world.crash(broker)
    client.subscribe("s", {"any": [ALARM, LARGE]}, revision=2)
    own = scoped_id("@a", "s")
    table = core_of(overlay, line[2]).rendezvous._table
    known: set[str] = set()
    while len(known) < 3:
        overlay.run_s(0.001)
        known = {entry.key[1] for entry in table.in_cell(cell)}
        assert known <= {own, f"1+{own}", f"2+{own}"}
        assert f"2+{own}" not in known or f"1+{own}" in known
        assert f"1+{own}" not in known or own in known


def test_a_device_can_be_changed() -> None:
    world = ContentWorld(5)
    device = world.subscribe("s", world.members[0], [ALARM], accept=[JPEG])
    world.run_s(2)
    world.publish("1", world.members[1], kind="alarm")
    world.run_s(3)
    device.change(wanting("alarm", [TEXT]))
    world.run_s(3)
    world.publish("2", world.members[1], kind="alarm")
    world.run_s(3)
    device.change(wanting("alarm"))
    world.run_s(3)
    world.publish("3", world.members[1], kind="alarm")
    world.run_s(3)
    assert world.got("s") == [("1", JPEG), ("2", TEXT), ("3", PDF)]
    assert world.violations() == []


def test_the_new_registration_precedes_the_withdrawal_of_the_old() -> None:
    overlay = Overlay(6, settings=settings_with())
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", ALARM)
    overlay.run_s(2)
    said: list[object] = []
    links = core_of(overlay, home).links
    route = links.route

    def listen(key: str, message: object, turn: Turn, *, kept: bool = True) -> None:
        said.append(message)
        route(key, message, turn, kept=kept)

    links.route = listen  # type: ignore[method-assign]
    client.subscribe("s", OTHER, revision=1)
    overlay.run_s(2)
    assert client.answers(Subscribed) == [Subscribed("s"), Subscribed("s", 1)]
    retention_s = overlay.world.settings.content.retention_s
    assert any(isinstance(message, Register) for message in said)
    assert not any(isinstance(message, Withdraw) for message in said)
    alarm, other = cell_of(overlay, event("alarm")), cell_of(overlay, event("other"))
    overlay.run_s(retention_s - 5)
    assert len(holders(overlay, home, "s", alarm)) == 2
    overlay.run_s(10)
    assert any(isinstance(message, Withdraw) for message in said)
    assert holders(overlay, home, "s", alarm) == []
    assert len(holders(overlay, home, "s", other)) == 2
    found = matching(core_of(overlay, home).subscriptions, event("other"))
    assert [local.subscription.id for local in found] == ["s"]
    keys = overlay.world.nodes[home].journal
    assert sum(key.startswith("subscriptions/s/") for key in keys) == 1


def test_what_was_said_before_a_change_is_not_heard_after_it() -> None:
    overlay = Overlay(4)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", ALARM)
    overlay.run_s(1)
    client.subscribe("s", OTHER, revision=2)
    client.subscribe("s", ALARM, revision=1)
    overlay.run_s(3)
    local = core_of(overlay, home).subscriptions.get(scoped_id("@a", "s"))
    assert local is not None
    assert local.filter.matches(event("other"))
    assert client.answers(Subscribed) == [Subscribed("s"), Subscribed("s", 2)]


@pytest.mark.parametrize("crash_s", [0.005, 0.05, 0.1, 0.3])
def test_changes_in_a_row_leave_the_last_and_nothing_else(crash_s: float) -> None:
    overlay = Overlay(6)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", ALARM)
    overlay.run_s(2)
    for revision in range(1, 6):
        client.subscribe("s", {"exact": {"type": f"kind {revision}"}}, revision=revision)
        overlay.run_s(crash_s)
        if revision in (2, 5):
            overlay.world.crash(home)
            overlay.restart(home)
    overlay.run_s(10)
    assert client.answers(Subscribed)[-1] == Subscribed("s", 5)
    subscriptions = core_of(overlay, home).subscriptions
    found = matching(subscriptions, event("kind 5"))
    assert [local.subscription.id for local in found] == ["s"]
    overlay.run_s(2 * overlay.world.settings.content.retention_s)
    assert [local.revision for local in subscriptions.of_client("@a")] == [5]
    for revision in range(1, 5):
        cell = cell_of(overlay, event(f"kind {revision}"))
        if cell != cell_of(overlay, event("kind 5")):
            assert holders(overlay, home, "s", cell) == []
    client.unsubscribe("s")
    overlay.run_s(3)
    assert [key for key in overlay.world.nodes[home].journal if key.startswith("subscr")] == [
        "subscriptions/version"
    ]


def test_an_end_is_that_of_all_that_a_subscription_was() -> None:
    world = ContentWorld(4)
    client = Subscriber(world.overlay, "@a", world.members[0])
    client.subscribe("s", ALARM)
    world.run_s(2)
    client.subscribe("s", OTHER, revision=1)
    world.run_s(2)
    client.unsubscribe("s")
    world.run_s(3)
    for name, kind in (("1", "alarm"), ("2", "other")):
        world.publish(name, world.members[1], kind=kind)
    world.run_s(10)
    assert client.answers(Delivery) == []
    subscriptions = core_of(world.overlay, world.members[0]).subscriptions
    assert subscriptions.clients() == []


def test_a_wide_one_that_is_narrowed_still_covers_what_it_covered() -> None:
    overlay = Overlay(6)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("wide", {"sql": "EXISTS type"})
    overlay.run_s(1)
    client.subscribe("narrow", ALARM)
    overlay.run_s(1)
    client.subscribe("wide", OTHER, revision=1)
    overlay.run_s(2)
    cell = cell_of(overlay, event("alarm"))
    retention_s = overlay.world.settings.content.retention_s
    for _ in range(round(retention_s) + 20):
        overlay.run_s(1)
        assert holders(overlay, home, "wide", cell) or holders(overlay, home, "narrow", cell)
    assert holders(overlay, home, "wide", cell) == []
    assert len(holders(overlay, home, "narrow", cell)) == 2


def test_content_can_be_exchanged_for_streams_and_back() -> None:
    overlay = Overlay(4)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    subscriptions = core_of(overlay, home).subscriptions
    client.subscribe("s", ALARM)
    overlay.run_s(1)
    client.subscribe("s", ALARM, revision=1, tolerance=TOLERANCE)
    overlay.run_s(2)
    publication = event("alarm", v=1)
    assert [local.revision for local in subscriptions.streaming(publication)] == [1]
    client.subscribe("s", ALARM, revision=2, tolerance={**TOLERANCE, "value": "/w"})
    client.subscribe("s", ALARM, revision=3)
    overlay.run_s(2)
    assert subscriptions.streaming(publication) == []
    owed = [local.revision for local in matching(subscriptions, publication) if not local.until_ns]
    assert owed == [3]


def test_a_client_that_moves_takes_along_what_it_asked_for_before() -> None:
    world = MoveWorld()
    device = world.customer("s", world.old, near=world.new)
    world.run_s(1)
    device.change(wanting("map"))
    world.run_s(1)
    told = world.sent(Register)
    world.publish_for(10)
    world.run_s(5)
    assert device.home == world.new
    first = scoped_id("@s", "s")
    changed = [message for message in told if message.id == f"1+{first}"]
    assert changed
    assert all([name for name, _ in message.before] == [first] for message in changed)
    assert len(world.got("s")) == 40
    own = world.core(world.new).subscriptions.of_client("@s")
    assert [(local.revision, local.until_ns > 0) for local in own] == [(1, False), (0, True)]
    world.run_s(RETENTION_S)
    own = world.core(world.new).subscriptions.of_client("@s")
    assert [local.revision for local in own] == [1]
    assert world.violations() == []


@pytest.mark.parametrize("moves_s", [-6, -3, -1, 5])
@pytest.mark.parametrize("crashes", [False, True])
def test_what_a_subscription_was_stays_while_its_client_moves(
    moves_s: float, crashes: bool
) -> None:
    """What a root owes to that at the old home is taken there, redirected, and delivered.

    Parameters
    ----------
    moves_s
        How long after what was before the change would be withdrawn the client is to move.
    """
    world = MoveWorld()
    device = world.subscribe("s", world.old)
    world.run_s(3)
    deliveries = world.core(world.old).deliveries
    deliveries.receive = lambda arrival, turn: None  # type: ignore[method-assign]
    world.publish("1", world.far, media_type=None)
    world.run_s(2)
    device.change(wanting("other"))
    world.run_s(RETENTION_S + moves_s)
    for _ in range(15):
        world.world.tell(world.old, OrderMove("@s", world.new), sender=HOST)
        world.run_s(1)
    assert world.got("s") == []
    if crashes:
        for broker in (world.new, world.old):
            world.crash_for(broker, 1)
    else:
        del deliveries.receive
    for _ in range(60):
        world.world.tell(world.old, OrderMove("@s", world.new), sender=HOST)
        world.run_s(1)
    assert device.home == world.new
    assert [name for name, _ in world.got("s")] == ["1"]
    for broker in (world.new, world.old):
        subscriptions = world.core(broker).subscriptions
        assert subscriptions.registered(scoped_id("@s", "s")) is None
        assert not subscriptions.withdrawing([scoped_id("@s", "s")])
    assert world.violations() == []


@pytest.mark.parametrize(
    ("covered", "seed"), [(False, 1), (False, 17), (False, 34), (True, 4), (True, 20)]
)
def test_what_a_client_changes_at_its_new_home_is_not_overtaken_by_what_is_redirected(
    seed: int, *, covered: bool
) -> None:
    """Messages get lost. The old home does not know of the change, and roots not who is covered."""
    rng = random.Random(seed)
    world = MoveWorld(seed=seed)
    if covered:
        world.subscribe("w", world.old, [{"not": {"range": {"level": {"min": 15}}}}])
        world.run_s(2)
    device = world.customer("s", world.old, near=world.new, filters=[{"not": LARGE}])
    world.run_s(2)
    filters = [] if rng.random() < 0.5 else [{"range": {"level": {"min": 5}}}]
    changed = Subscription.parse({"id": "s", "filters": filters})
    quick = Publisher(world.world, "quick", world.far, "/quick", world.ledger, pipeline=8)
    world.publishers["/quick"] = quick
    redirected, ended, answers = (world.sent(kind) for kind in (Redirect, RedirectEnd, Subscribed))
    answered: list[int] = []
    numbers = count(1)

    def later(seconds: float, call: Callable[[], None]) -> None:
        world.world.at(world.world.now_ns + round(seconds * SECOND), call)

    def publish() -> None:
        for _ in range(rng.randint(2, 8)):
            name, level = f"q{next(numbers)}", rng.choice([20, 1, 7])
            world.publish(name, world.far, media_type=None, source="/quick", level=level)

    def arrived() -> None:
        later(rng.choice([0.05, 0.05, 0.3]), partial(device.change, changed))
        for _ in range(8):
            later(rng.random() * 2, publish)
        network = world.overlay.network
        network.loss, network.repeats = rng.choice([0.1, 0.3]), 0.1
        network.spread_ns = rng.choice([0, 50 * MS])
        later(4, partial(setattr, network, "loss", 0.0))

    world.on_first(Connected, arrived)
    world.on_first(RedirectEnd, lambda: answered.append(len(answers)))
    world.publish_for(3)
    world.run_s(40)
    assert device.home == world.new
    assert redirected
    assert ended
    assert answered == [0], "the change waits until the last was redirected"
    assert [message.revision for message in answers] == [1]
    assert world.violations() == []
