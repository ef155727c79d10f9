"""Content reaches everybody who was registered, once, in its format, whatever happens."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.content_worlds import JPEG, PDF, SETTINGS, SPEECH, TEXT, ContentWorld

from distributary.broker.dissemination.dissemination import Dissemination
from distributary.broker.dissemination.messages import ItemId, ProbeAnswer, Served
from distributary.broker.dissemination.task import TASK, TaskEvent, TaskState
from distributary.broker.settings import Settings
from distributary.broker.subscriptions.subscription import Matcher
from distributary.broker.telemetry import Planned, Refined, Worth
from distributary.errors import PeerMisbehaved

FORMATS = (PDF, JPEG, TEXT, SPEECH)
MAPS = ({"exact": {"type": "map"}},)


def discovering() -> Settings:
    return replace(SETTINGS, content=replace(SETTINGS.content, tree="discovered"))


def populated(
    count: int = 12, *, seed: int = 1, settings: Settings = SETTINGS, failing: tuple[str, ...] = ()
) -> ContentWorld:
    """An overlay with a subscriber at every broker, of one of four kinds of devices."""
    world = ContentWorld(count, seed=seed, settings=settings, failing=failing, spare=2)
    for place, home in enumerate(world.members):
        world.subscribe(f"s{place:02d}", home, MAPS, accept=[FORMATS[place % 4]])
    world.run_s(3)
    return world


def part_of(world: ContentWorld, broker: str) -> Dissemination:
    running = world.world.nodes[broker].broker
    assert running is not None
    return running.core.dissemination


def counts(world: ContentWorld) -> dict[str, int]:
    return dict(world.world.message_counts)


@pytest.mark.parametrize("settings", [SETTINGS, discovering()], ids=["estimated", "discovered"])
def test_everybody_gets_everything_once_in_its_format(settings: Settings) -> None:
    world = populated(settings=settings)
    for number in range(4):
        world.publish(f"map {number}", world.members[5])
    world.publish("other", world.members[4], kind="other", source="/others")
    world.run_s(15)
    assert world.violations() == []
    assert world.once.made == world.once.owed == 4 * 12
    assert world.got("s01") == [(f"map {number}", JPEG) for number in range(4)]
    assert world.got("s03") == [(f"map {number}", SPEECH) for number in range(4)]


def test_a_tree_that_was_discovered_needs_no_refinement() -> None:
    world = populated(settings=discovering())
    world.publish("map", world.members[5])
    world.run_s(10)
    assert counts(world)["Probe"] == 11
    assert counts(world)["ProbeAnswer"] == 11
    assert world.reported(Refined) == []
    assert len(world.reported(Planned)) == 1


def test_a_probe_takes_what_probes_are_agreed_to_take() -> None:
    world = populated(3, settings=discovering())
    world.publish("map", world.members[0])
    world.run_s(10)
    assert world.world.message_bytes["Probe"] == 100 * counts(world)["Probe"]


def test_a_tree_that_was_estimated_is_refined_where_next_hops_differ() -> None:
    world = populated(40, seed=3)
    world.publish("map", world.members[5])
    world.run_s(10)
    assert "Probe" not in counts(world)
    assert len(world.reported(Refined)) >= 1
    assert world.violations() == []


def test_a_root_without_answers_to_its_probe_plans_on_an_estimate() -> None:
    world = populated(settings=discovering())
    away = next(m for m in world.members if m != world.root_of())
    # Its probe and its answer are lost; it is still taken to be there.
    world.overlay.network.apart = frozenset({away})
    world.publish("map", world.root_of())
    world.run_s(0.3)
    world.overlay.network.apart = frozenset()
    world.run_s(20)
    assert world.violations() == []
    assert world.once.made == 12


def test_plans_are_compared_with_converting_at_the_root_and_at_the_leaves() -> None:
    world = populated()
    world.publish("map", world.members[5], megabytes=2.0)
    world.run_s(10)
    (planned,) = world.reported(Planned)
    assert isinstance(planned, Planned)
    assert planned.broker_count == 12
    assert planned.all_in_root is not None
    assert planned.all_in_leaves is not None
    assert planned.chosen in ("planned", "single-format")

    def total(worth: Worth) -> float:
        weight = SETTINGS.content.delay_weight
        return worth.transmission + worth.conversion + weight * worth.delay_s

    best = min(total(planned.all_in_root), total(planned.all_in_leaves))
    assert total(planned.worth) <= best * (1.0 + 1e-12)
    assert planned.all_in_leaves.delay_s < planned.all_in_root.delay_s


@pytest.mark.parametrize("method", ["all-in-root", "all-in-leaves", "single-format"])
def test_brokers_keep_to_a_simple_policy(method: str) -> None:
    """Whatever it costs: so that it can be compared with planning."""
    content = replace(SETTINGS.content, method=method, delay_weight=100.0)
    world = populated(settings=replace(SETTINGS, content=content))
    for number in range(3):
        world.publish(f"map {number}", world.members[5])
    world.run_s(20)
    reported = [p for p in world.reported(Planned) if isinstance(p, Planned)]
    assert {planned.chosen for planned in reported} == {method}
    assert world.violations() == []


def test_what_nobody_wants_is_settled_at_once() -> None:
    world = populated()
    world.publish("quiet", world.members[5], kind="quiet")
    world.run_s(5)
    assert counts(world).get("Settled", 0) <= 1
    assert "Portion" not in counts(world)
    (kept,) = [
        record
        for key, record in world.world.nodes[world.members[5]].records().items()
        if key.startswith("publishing/settled/")
    ]
    assert kept.settled_by == world.root_of("quiet")  # type: ignore[attr-defined]


@pytest.mark.parametrize("settings", [SETTINGS, discovering()], ids=["estimated", "discovered"])
def test_a_bad_network_loses_nothing_and_repeats_nothing(settings: Settings) -> None:
    world = populated(10, settings=settings)
    network = world.overlay.network
    network.loss, network.repeats, network.spread_ns = 0.15, 0.15, 200_000_000
    for number in range(6):
        world.publish(f"map {number}", world.members[2])
    world.run_s(20)
    network.loss = 0.0
    world.run_s(60)
    assert world.violations() == []
    assert world.once.made == 60


def test_a_relay_that_is_lost_for_ever_is_planned_around() -> None:
    world = populated(16, seed=3, settings=discovering())
    root = world.root_of()
    # Whoever the root reaches others through goes away just when the content is on its way.
    membership = world.overlay.membership(root)
    hops = {home: membership.next_hop(home) for home in world.members if home != root}
    relay = next(hop for home, hop in hops.items() if hop not in (home, None))
    assert relay is not None
    world.publish("map", root)
    world.run_s(0.08)
    world.world.crash(relay)
    world.run_s(40)
    lost = {name for name, home in zip(sorted_names(world), world.members, strict=True)}
    missing = [name for name in sorted(lost) if not world.got(name)]
    assert missing == [name_at(world, relay)]
    assert len(world.reported(Planned)) > 1


def sorted_names(world: ContentWorld) -> list[str]:
    return sorted(world.subscribers)


def name_at(world: ContentWorld, home: str) -> str:
    return next(name for name, device in world.subscribers.items() if device.home == home)


def test_a_root_that_is_lost_for_ever_is_replaced_by_its_surrogate() -> None:
    world = populated()
    root = world.root_of()
    publisher = next(m for m in world.members if m != root)
    for number in range(3):
        world.publish(f"map {number}", publisher)
    world.run_s(0.08)
    world.world.crash(root)
    world.run_s(60)
    others = [name for name in sorted_names(world) if name != name_at(world, root)]
    for name in others:
        assert [got for got, _ in world.got(name)] == [f"map {n}" for n in range(3)], name
    assert world.once.duplicates == 0
    assert world.order.violations == []


def test_a_home_that_was_away_gets_what_it_missed_in_order() -> None:
    world = populated()
    root = world.root_of()
    home = next(m for m in world.members if m != root)
    publisher = next(m for m in world.members if m not in (root, home))
    world.publish("map 0", publisher)
    world.run_s(5)
    world.world.crash(home)
    world.run_s(4)
    for number in range(1, 4):
        world.publish(f"map {number}", publisher)
    world.run_s(10)
    kept = part_of(world, root)
    assert any(task.state is TaskState.WAITING for task in kept._tasks.values())
    world.overlay.restart(home)
    world.run_s(20)
    assert world.violations() == []
    assert [got for got, _ in world.got(name_at(world, home))] == [f"map {n}" for n in range(4)]


def test_how_long_a_home_was_away_is_not_taken_for_a_way() -> None:
    """It may be back before the root knows, and confirm what somebody has kept for it."""
    patient = replace(SETTINGS, content=replace(SETTINGS.content, repeat_s=6.0))
    world = ContentWorld(12, settings=patient, spare=2)
    root = world.root_of()
    home, publisher = [member for member in world.members if member != root][:2]
    world.subscribe("s", home, MAPS)
    world.run_s(3)
    world.publish("map 0", publisher)
    world.run_s(3)
    supervision = part_of(world, root)._supervision
    timeout_ns = supervision._trip.timeout_ns
    assert timeout_ns > 0
    world.world.crash(home)
    world.publish("map 1", publisher)
    world.run_s(12)
    (task,) = (task for task in part_of(world, root)._tasks.values() if not task.settled)
    assert (task.state, task.attempt) == (TaskState.WAITING, 1)
    names = tuple(task.pending[home].registrations)
    world.world.tell(root, Served(task.identity, 1, names, ()), sender=home)
    assert task.settled
    assert supervision._trip.timeout_ns == timeout_ns


def test_a_home_that_is_lost_for_ever_does_not_hold_up_the_rest() -> None:
    world = populated()
    root = world.root_of()
    home = next(m for m in world.members if m != root)
    publisher = next(m for m in world.members if m not in (root, home))
    world.world.crash(home)
    world.run_s(4)
    world.publish("map", publisher)
    world.run_s(4)
    settled = [task.settled for task in part_of(world, root)._tasks.values()]
    assert settled == [False]
    world.run_s(30)
    settled = [task.settled for task in part_of(world, root)._tasks.values()]
    assert settled == [True]


def test_a_registration_that_comes_late_gets_what_it_is_owed_in_order() -> None:
    """Publisher and some subscribers do not see the same root for a while."""
    world = populated()
    root = world.root_of()
    publisher = next(m for m in world.members if m != root)
    world.overlay.network.apart = frozenset({root, publisher})
    world.run_s(4)
    for number in range(3):
        world.publish(f"map {number}", publisher)
    world.run_s(6)
    world.overlay.network.apart = frozenset()
    for number in range(3, 5):
        world.publish(f"map {number}", publisher)
    world.run_s(40)
    assert world.violations() == []
    assert world.once.made == 5 * 12


def test_a_registration_that_comes_late_is_looked_at_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A root that all homes tell anew would else match all that it keeps with all of them."""
    world = populated(6)
    root = world.root_of()
    publisher = next(m for m in world.members if m != root)
    for number in range(3):
        world.publish(f"map {number}", publisher, media_type=None)
    world.run_s(3)
    part = part_of(world, root)
    kept = list(part._tasks.values())
    assert len(kept) == 3
    cell = kept[0].item.cell
    entry = world.overlay.broker(root).core.rendezvous._table.in_cell(cell)[0]
    registration = entry.registration
    assert registration is not None
    for task in kept:
        task.served.discard((registration.home, registration.id))
    asked: list[object] = []
    monkeypatch.setattr(Matcher, "match", lambda _self, event: asked.append(event))
    world.overlay.in_turn(root, lambda turn: part.registered_late(cell, registration, turn))
    assert [list(task.pending) for task in kept] == [[registration.home]] * 3
    assert asked == []


def test_a_broker_that_joins_and_becomes_the_root_misses_nothing() -> None:
    world = populated(6, seed=4)
    for kind in ("map", "a", "b", "c", "d", "e", "f"):
        world.subscribe(f"all {kind}", world.members[0], [{"exact": {"type": kind}}])
    world.run_s(3)
    for number in range(10):
        for kind in ("map", "a", "b", "c", "d", "e", "f"):
            world.publish(f"{kind} {number}", world.members[1], kind=kind, media_type=None)
        if number == 3:
            world.overlay.join(world.overlay.spare[0], world.members[2])
        if number == 6:
            world.overlay.join(world.overlay.spare[1], world.members[3])
        world.run_s(0.7)
    world.run_s(40)
    assert world.violations() == []


def test_the_next_entry_is_tried_when_a_conversion_fails_and_then_none_is_left() -> None:
    world = ContentWorld(8, failing=(JPEG, TEXT))
    world.subscribe("picture", world.members[0], MAPS, accept=[JPEG, "application/pdf;q=0.5"])
    world.subscribe("nothing", world.members[1], MAPS, accept=[JPEG, "text/plain;q=0.5"])
    world.subscribe("speech", world.members[2], MAPS, accept=[SPEECH, PDF + ";q=0.1"])
    world.subscribe("original", world.members[3], MAPS)
    world.subscribe("never", world.members[4], MAPS, accept=["video/mp4"])
    world.run_s(3)
    world.publish("map", world.members[5])
    world.run_s(30)
    assert world.got("picture") == [("map", PDF)]
    assert world.got("nothing") == [("map", None)]
    assert world.got("speech") == [("map", PDF)], "text, of which it is made, cannot be made"
    assert world.got("original") == [("map", PDF)]
    assert world.got("never") == [("map", None)]
    reasons = {wish.split()[0]: receipt.reason for (wish, _), receipt in world.ledger.got.items()}
    assert "could not be made: it is broken" in reasons["nothing"]
    assert "video/mp4" in reasons["never"]
    assert world.once.owed == 5
    assert world.once.duplicates == 0


def test_work_given_to_a_broker_counts_until_it_should_be_done() -> None:
    loaded = replace(SETTINGS, content=replace(SETTINGS.content, load_growth=50.0))
    world = populated(settings=loaded)
    root = world.root_of()
    workloads = part_of(world, root)._planner._workloads
    for number in range(8):
        world.publish(f"map {number}", root)
    world.run_s(0.05)
    now_ns = world.world.nodes[root].clock_ns(world.world.now_ns)
    left_s = {broker: workloads.left_s(broker, now_ns) for broker in world.members}
    assert left_s[root] == 0.0, "its own work it knows better"
    assert max(left_s.values()) > 0.0
    busiest = max(left_s, key=lambda broker: left_s[broker])
    assert workloads.left_s(busiest, now_ns + 10**7) == pytest.approx(left_s[busiest] - 0.01)
    world.run_s(30)
    now_ns = world.world.nodes[root].clock_ns(world.world.now_ns)
    assert all(workloads.left_s(broker, now_ns) == 0.0 for broker in world.members)
    assert world.violations() == []


def test_an_item_is_forgotten_when_nobody_can_ask_for_it_any_more() -> None:
    world = populated()
    world.publish("map", world.members[5])
    world.run_s(30)
    root = world.root_of()
    assert len(part_of(world, root)._tasks) == 1
    world.run_s(60)
    assert len(part_of(world, root)._tasks) == 0
    world.run_s(SETTINGS.publishing.dedupe_s + 10)
    for node in world.world.nodes.values():
        left = [
            key
            for key in node.journal
            if key.startswith(("dissemination/", "relays/", "publishing/", "deliveries/item"))
        ]
        assert left == []
    world.publish("map again", world.members[5])
    world.run_s(10)
    assert world.violations() == []
    assert world.once.made == 24


def test_everything_that_can_happen_to_an_item_is_in_the_table() -> None:
    assert TASK.initial is TaskState.TAKEN
    assert {state for state, _, _ in TASK} == set(TaskState)
    assert {event for _, event, _ in TASK} == set(TaskEvent)
    assert TASK.step(TaskState.SETTLED, TaskEvent.SENT) is None


@given(
    st.sampled_from(["root", "publisher", "home", "relay"]),
    st.integers(0, 40),
    st.sampled_from([0.3, 2.0, 6.0]),
    st.booleans(),
    st.sampled_from(["estimated", "discovered"]),
)
@settings(max_examples=20, deadline=None)
def test_a_crash_of_anybody_at_any_step_loses_nothing(
    role: str, step: int, away_s: float, torn: bool, tree: str
) -> None:
    """The property: whoever goes down, whenever, comes back, and nobody notices."""
    chosen = SETTINGS if tree == "estimated" else discovering()
    world = populated(8, settings=chosen)
    root = world.root_of()
    publisher = next(m for m in world.members if m != root)
    others = [m for m in world.members if m not in (root, publisher)]
    victim = {"root": root, "publisher": publisher, "home": others[0], "relay": others[-1]}[role]
    for number in range(3):
        world.publish(f"map {number}", publisher)
    world.run_s(0.015 * step)

    def back() -> None:
        at_ns = world.world.now_ns + round(away_s * 1e9)
        world.world.at(at_ns, world.overlay.restart, victim)

    if torn:
        world.world.tear(victim, back)
    else:
        world.world.crash(victim)
        back()
    world.run_s(60)
    assert world.violations() == []
    assert world.once.made == world.once.owed == 24


def test_the_way_of_a_probe_that_ends_elsewhere_is_refused() -> None:
    """A plan on it would serve nobody."""
    world = populated(4, settings=discovering())
    root = world.root_of()
    one, other = [member for member in world.members if member != root][:2]
    world.overlay.network.apart = frozenset((one,))
    world.publish("map", root)
    world.run_s(0.1)
    answer = ProbeAnswer(ItemId("", "/maps", "map"), 1, ((other, 1.0, 1.0),))
    broker = world.overlay.broker(root)
    with pytest.raises(PeerMisbehaved, match="the way of a probe"):
        broker.receive(answer, sender=one, now_ns=world.world.now_ns)
    world.overlay.network.apart = frozenset()
    world.run_s(20)
    assert world.violations() == []
