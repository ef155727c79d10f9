"""Clients' subscriptions are registered everywhere they must be, and end when they should."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.broker_overlays import SECOND, Overlay
from tests.broker_subscribers import (
    Subscriber,
    assert_in_cells,
    cell_of,
    core_of,
    event,
    held_cells,
    holders,
    matching,
    settings_with,
)

from distributary.broker.addresses import client_address
from distributary.broker.client import Refused, Subscribe, Subscribed, Unsubscribe, Unsubscribed
from distributary.broker.subscriptions.subscription import cells_of, is_scoped, own_id, scoped_id
from distributary.errors import PeerMisbehaved

EXACT = {"exact": {"type": "alarm"}}
EVERYTHING = {"sql": "EXISTS type"}
TOLERANCE = {"value": "/v", "divergence": "absolute", "amount": 1.0}


def cells_at(overlay: Overlay, *filters: object) -> set[int]:
    text = json.dumps(list(filters), sort_keys=True, separators=(",", ":"))
    return set(cells_of(text, overlay.world.settings.space))


def test_a_subscription_is_confirmed_once_it_is_at_the_roots_of_all_its_cells() -> None:
    overlay = Overlay(12)
    home = overlay.members[2]
    client = Subscriber(overlay, "@a", home)
    cells = cells_at(overlay, EVERYTHING)
    assert len(cells) > 60
    confirmed: list[str] = []

    def check(name: str) -> None:
        assert_in_cells(overlay, home, name, cells)
        confirmed.append(name)

    client.on_confirmed = check
    client.subscribe("s", EVERYTHING)
    overlay.run_s(2)
    assert confirmed == ["s"]


def test_what_is_subscribed_to_matches_at_home_and_at_the_root() -> None:
    overlay = Overlay(8)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", EXACT, {"range": {"/level": {"min": 3}}})
    overlay.run_s(1)
    core = core_of(overlay, home)
    high, low, other = event("alarm", level=5), event("alarm", level=1), event("other", level=5)
    cell = cell_of(overlay, high)
    root = core_of(overlay, core.membership.root_of(core.rendezvous.key_of(cell)))
    for publication, wanted in ((high, ["s"]), (low, []), (other, [])):
        assert [
            local.subscription.id for local in matching(core.subscriptions, publication)
        ] == wanted
        assert [own_id(r.id) for r in root.rendezvous.matches(cell, publication)] == wanted
    assert [local.client for local in matching(core.subscriptions, high)] == ["@a"]
    (registration,) = root.rendezvous.matches(cell, high)
    assert registration.home == registration.path[0].broker == home
    assert registration.path[-1].broker == root.identity


def test_nothing_matches_at_home_before_a_subscription_is_confirmed() -> None:
    overlay = Overlay(8)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    overlay.network.apart = frozenset({home, "@a"})
    client.subscribe("s", EVERYTHING)
    overlay.run_s(0.5)
    core = core_of(overlay, home)
    assert core.subscriptions.get(scoped_id("@a", "s")) is not None
    assert matching(core.subscriptions, event("alarm")) == []
    overlay.network.apart = frozenset()
    overlay.run_s(10)
    assert [local.subscription.id for local in matching(core.subscriptions, event("alarm"))] == [
        "s"
    ]


def test_a_repeated_request_is_answered_again_and_changes_nothing() -> None:
    overlay = Overlay(6)
    client = Subscriber(overlay, "@a", overlay.members[0])
    client.subscribe("s", EXACT)
    overlay.run_s(1)
    local = core_of(overlay, client.home).subscriptions.get(scoped_id("@a", "s"))
    assert local is not None
    before = local.record()
    client.subscribe("s", EXACT)
    overlay.run_s(1)
    assert client.answers(Subscribed) == [Subscribed("s")] * 2
    assert local.record() == before


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{", ""),
        ("[]", ""),
        ('{"filters": []}', ""),
        ('{"id": 7, "filters": []}', ""),
        ('{"id": "s"}', "s"),
        ('{"id": "s", "filters": [{"nonsense": {}}]}', "s"),
        ('{"id": "s", "filters": [{"sql": "a = "}]}', "s"),
        ('{"id": "s", "filters": [], "profile": {"accept": []}}', "s"),
        ('{"id": "s", "filters": [], "tolerance": {"amount": -1}}', "s"),
        ('{"id": "s", "filters": [], "config": {"expires": "tomorrow"}}', "s"),
        ('{"id": "s", "filters": [], "config": {"expires": -1}}', "s"),
        ('{"id": "s", "filters": [], "config": {"queue_bytes": 0.5}}', "s"),
        ('{"id": "s", "filters": [], "config": {"queue_s": 0}}', "s"),
        ('{"id": "s", "filters": [], "config": {"expires": 1e-9}}', "s"),
        (json.dumps({"id": "s" * 1025, "filters": []}), ""),
        ('{"id": "\\ud800", "filters": []}', ""),
    ],
)
def test_a_subscription_that_breaks_the_rules_is_refused_with_one_sentence(
    text: str, named: str
) -> None:
    overlay = Overlay(2)
    client = Subscriber(overlay, "@a", overlay.members[0])
    client.tell(Subscribe(text))
    overlay.run_s(1)
    (refused,) = client.received
    assert isinstance(refused, Refused)
    assert (refused.what, refused.id) == ("subscription", named)
    assert "\n" not in refused.reason
    assert 10 < len(refused.reason) < 300
    assert not any(key.startswith("subscriptions/s") for key in _journal(overlay, client.home))


@pytest.mark.parametrize("homes", [(0, 0), (0, 1)])
def test_clients_need_not_agree_on_ids(homes: tuple[int, int]) -> None:
    """Neither those of one home, nor those of two that one root serves."""
    overlay = Overlay(4)
    first, second = (
        Subscriber(overlay, address, overlay.members[k])
        for address, k in zip(("@a", "@b"), homes, strict=True)
    )
    first.subscribe("s", EXACT)
    overlay.run_s(1)
    second.subscribe("s", EVERYTHING)
    overlay.run_s(1)
    assert [client.answers(Refused) for client in (first, second)] == [[], []]
    first.tell(Unsubscribe("s"))
    overlay.run_s(1)
    assert core_of(overlay, first.home).subscriptions.get(scoped_id("@a", "s")) is None
    assert core_of(overlay, second.home).subscriptions.get(scoped_id("@b", "s")) is not None
    assert_in_cells(overlay, second.home, "s", cells_at(overlay, EVERYTHING))


def test_a_change_that_has_no_number_of_its_own_is_refused() -> None:
    overlay = Overlay(4)
    client = Subscriber(overlay, "@a", overlay.members[0])
    client.subscribe("s", EXACT)
    overlay.run_s(1)
    client.subscribe("s", EVERYTHING)
    overlay.run_s(1)
    assert client.answers(Refused) == [
        Refused("subscription", "its revision 0 says something else; number changes higher", id="s")
    ]


@given(
    st.lists(
        st.tuples(
            st.text("@ab1", min_size=1, max_size=3).map(lambda name: name.replace("@", "")),
            st.sampled_from(["", "a", "1"]),
            st.text("@ab1", min_size=1, max_size=4),
        ).filter(lambda one: bool(one[0])),
        max_size=8,
    )
)
def test_no_two_subscriptions_are_called_the_same(named: list[tuple[str, str, str]]) -> None:
    called: dict[str, tuple[str, str, str]] = {}
    for name, tenant, own in named:
        scoped = scoped_id(client_address(name, tenant), own)
        assert own_id(scoped) == own
        assert is_scoped(scoped, client_address(name, tenant))
        assert called.setdefault(scoped, (name, tenant, own)) == (name, tenant, own)


def test_a_client_has_only_so_many_subscriptions() -> None:
    overlay = Overlay(3, settings=settings_with(client_max=2))
    client = Subscriber(overlay, "@a", overlay.members[0])
    other = Subscriber(overlay, "@b", overlay.members[0])
    for name in ("s1", "s2", "s3"):
        client.subscribe(name, {"exact": {"type": name}})
    other.subscribe("s4", EXACT)
    overlay.run_s(1)
    assert sorted(client.confirmed) == ["s1", "s2"]
    reason = "a client has at most 2 subscriptions"
    assert client.answers(Refused) == [Refused("subscription", reason, id="s3")]
    assert sorted(other.confirmed) == ["s4"]


def test_only_clients_subscribe() -> None:
    overlay = Overlay(2)
    with pytest.raises(PeerMisbehaved):
        overlay.broker(overlay.members[0]).receive(
            Subscribe("{}"), sender=overlay.members[1], now_ns=0
        )


def test_an_unsubscribed_subscription_is_forgotten_everywhere() -> None:
    overlay = Overlay(8)
    home = overlay.members[1]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", EVERYTHING)
    overlay.run_s(2)
    client.unsubscribe("s")
    overlay.run_s(2)
    assert client.answers(Unsubscribed) == [Unsubscribed("s")]
    core = core_of(overlay, home)
    assert matching(core.subscriptions, event("alarm")) == []
    assert not core.subscriptions.withdrawing([scoped_id("@a", "s")])
    for cell in cells_at(overlay, EVERYTHING):
        assert holders(overlay, home, "s", cell) == []
    assert [key for key in _journal(overlay, home) if key.startswith("subscriptions/")] == [
        "subscriptions/version"
    ]
    # What only says that it was withdrawn goes too, after a while.
    overlay.run_s(250)
    for identity in overlay.members:
        assert not any(key.startswith("rendezvous/") for key in _journal(overlay, identity))


def test_what_is_not_known_counts_as_unsubscribed() -> None:
    overlay = Overlay(2)
    client = Subscriber(overlay, "@a", overlay.members[0])
    client.unsubscribe("nothing")
    overlay.run_s(1)
    assert client.received == [Unsubscribed("nothing")]


def test_an_id_can_be_used_again_after_its_end() -> None:
    overlay = Overlay(8)
    home = overlay.members[1]
    client = Subscriber(overlay, "@a", home)
    overlay.network.spread_ns = SECOND // 2
    for round_ in range(6):
        wanted = f"kind {round_}"
        client.subscribe("s", {"exact": {"type": wanted}})
        overlay.run_s(4)
        assert "s" in client.confirmed
        client.unsubscribe("s")
        overlay.run_s(1.5)
        assert not client.waits
    client.subscribe("s", EXACT)
    overlay.run_s(10)
    alarm = cells_at(overlay, EXACT)
    assert_in_cells(overlay, home, "s", alarm)
    for node in overlay.world.nodes.values():
        assert held_cells(node, home, "s") <= alarm


@pytest.mark.parametrize("seed", range(6))
def test_a_home_that_crashes_while_it_registers_goes_on_after_its_return(seed: int) -> None:
    overlay = Overlay(8, seed=seed)
    home = overlay.members[seed]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", EVERYTHING)
    client.subscribe("t", EXACT)
    overlay.run_s(0.01 + 0.02 * seed)
    overlay.world.crash(home)
    overlay.run_s(1 + 2 * seed)
    overlay.restart(home)
    overlay.run_s(15)
    assert sorted(client.confirmed) == ["s", "t"]
    assert_in_cells(overlay, home, "s", cells_at(overlay, EVERYTHING))
    found = matching(core_of(overlay, home).subscriptions, event("alarm"))
    assert [local.subscription.id for local in found] == ["s", "t"]


@pytest.mark.parametrize("seed", range(3))
def test_a_home_torn_down_in_the_middle_of_its_turns_loses_no_promise(seed: int) -> None:
    overlay = Overlay(6, seed=seed)
    home = overlay.members[seed]
    client = Subscriber(overlay, "@a", home)
    torn: list[int] = []

    def torn_down() -> None:
        torn.append(overlay.world.now_ns)
        overlay.world.at(overlay.world.now_ns, overlay.restart, home)

    for name in ("s", "t", "u"):
        client.subscribe(name, EVERYTHING if name == "s" else {"exact": {"type": name}})
        overlay.world.tear(home, torn_down)
        overlay.run_s(8)
    client.unsubscribe("s")
    overlay.world.tear(home, torn_down)
    overlay.run_s(25)
    assert len(torn) >= 2
    assert sorted(client.confirmed) == ["t", "u"]
    for name in ("t", "u"):
        assert_in_cells(overlay, home, name, cells_at(overlay, {"exact": {"type": name}}))
    core = core_of(overlay, home)
    assert not core.subscriptions.withdrawing([scoped_id("@a", "s")])
    for node in overlay.world.nodes.values():
        assert held_cells(node, home, "s") == set()


@pytest.mark.parametrize("seed", range(3))
def test_losses_and_repetitions_do_no_harm(seed: int) -> None:
    overlay = Overlay(10, seed=seed)
    network = overlay.network
    network.loss, network.repeats, network.spread_ns = 0.2, 0.2, SECOND // 2
    clients = [Subscriber(overlay, f"@{n}", overlay.members[n]) for n in range(5)]
    for client in clients:
        for kind in ("a", "b", "c"):
            client.subscribe(client.address + kind, {"exact": {"type": kind}})
    overlay.run_s(40)
    for client in clients:
        assert len(client.confirmed) == 3
        client.unsubscribe(client.address + "b")
    overlay.run_s(30)
    network.loss = network.repeats = 0.0
    overlay.run_s(10)
    for client in clients:
        for kind, wanted in (("a", True), ("b", False), ("c", True)):
            name = client.address + kind
            if wanted:
                cells = cells_at(overlay, {"exact": {"type": kind}})
                assert_in_cells(overlay, client.home, name, cells)
            else:
                held = [held_cells(n, client.home, name) for n in overlay.world.nodes.values()]
                assert not any(held)


def test_a_subscription_with_a_tolerance_follows_streams_and_gets_no_content() -> None:
    overlay = Overlay(6)
    client = Subscriber(overlay, "@a", overlay.members[0])
    client.subscribe("s", EXACT, tolerance=TOLERANCE)
    overlay.run_s(1)
    core = core_of(overlay, client.home)
    publication = event("alarm", v=1)
    assert matching(core.subscriptions, publication) == []
    assert [local.subscription.id for local in core.subscriptions.streaming(publication)] == ["s"]
    cell = cell_of(overlay, publication)
    root = core_of(overlay, core.membership.root_of(core.rendezvous.key_of(cell)))
    assert root.rendezvous.matches(cell, publication) == []
    assert [own_id(r.id) for r in root.rendezvous.followers(cell, publication)] == ["s"]


def test_a_tolerance_can_be_changed_by_subscribing_again() -> None:
    overlay = Overlay(6)
    client = Subscriber(overlay, "@a", overlay.members[0])
    client.subscribe("s", EXACT, tolerance=TOLERANCE)
    overlay.run_s(1)
    client.subscribe("s", EXACT, revision=1, tolerance={**TOLERANCE, "amount": 7.0})
    overlay.run_s(1)
    assert client.answers(Subscribed) == [Subscribed("s"), Subscribed("s", 1)]
    overlay.world.crash(client.home)
    overlay.restart(client.home)
    local = core_of(overlay, client.home).subscriptions.get(scoped_id("@a", "s"))
    assert local is not None
    assert local.subscription.tolerance is not None
    assert local.subscription.tolerance.amount == 7.0


def test_a_client_that_moves_is_registered_from_its_new_home_and_not_from_the_old() -> None:
    overlay = Overlay(8)
    old, new = overlay.members[0], overlay.members[5]
    client, neighbour = Subscriber(overlay, "@a", old), Subscriber(overlay, "@b", old)
    client.subscribe("wide", EVERYTHING)
    overlay.run_s(1)
    neighbour.subscribe("narrow", EXACT)
    overlay.run_s(1)
    before = core_of(overlay, old).subscriptions
    assert before.get(scoped_id("@b", "narrow")) is not None
    moved = before.export_client("@a")
    since_ns = [record.since_ns for record in moved.subscriptions]
    after = core_of(overlay, new).subscriptions
    assert after.can_adopt([scoped_id("@a", "wide")])
    overlay.in_turn(new, lambda turn: after.adopt_client(moved, turn))
    overlay.in_turn(new, lambda turn: after.adopt_client(moved, turn))
    assert not after.settled("@a")
    overlay.run_s(1)
    assert after.settled("@a")
    assert [local.subscription.id for local in matching(after, event("alarm"))] == ["wide"]
    assert [local.since_ns for local in after.of_client("@a")] == since_ns
    overlay.in_turn(old, lambda turn: before.drop_client("@a", turn))
    assert before.withdrawing([scoped_id("@a", "wide")])
    overlay.run_s(2)
    assert not before.withdrawing([scoped_id("@a", "wide")])
    assert before.clients() == ["@b"]
    assert_in_cells(overlay, new, "wide", cells_at(overlay, EVERYTHING))
    assert_in_cells(overlay, old, "narrow", cells_at(overlay, EXACT))
    for node in overlay.world.nodes.values():
        assert held_cells(node, old, "wide") == set()
    assert client.answers(Subscribed) == [Subscribed("wide")]


def test_a_home_does_not_adopt_what_is_still_ending_there() -> None:
    overlay = Overlay(4)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("wide", EVERYTHING)
    overlay.run_s(1)
    Subscriber(overlay, "@b", home).subscribe("wide", EXACT)
    overlay.run_s(1)
    subscriptions = core_of(overlay, home).subscriptions
    own, others = scoped_id("@a", "wide"), scoped_id("@b", "wide")
    assert subscriptions.can_adopt([own, others])
    overlay.network.apart = frozenset({home, "@a", "@b"})
    client.unsubscribe("wide")
    overlay.run_s(0.5)
    assert not subscriptions.can_adopt([own])
    assert subscriptions.can_adopt([others])


def _journal(overlay: Overlay, identity: str) -> list[str]:
    return sorted(overlay.world.nodes[identity].journal)
