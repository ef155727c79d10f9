"""Registrations are at the root and at the surrogate of a cell, whatever becomes of either.

Where one of them is the registration's own home, they are at the next in line too.
"""

from __future__ import annotations

import json
import random
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.broker_overlays import MS, SECOND, Overlay
from tests.broker_subscribers import (
    Subscriber,
    assert_in_cells,
    cell_of,
    core_of,
    event,
    held_cells,
    holders,
    key_of,
    settings_with,
)

from distributary.broker.dissemination.dissemination import Dissemination
from distributary.broker.encoding import encode
from distributary.broker.host import Leave, Turn
from distributary.broker.links.messages import Hop, Step
from distributary.broker.rendezvous.messages import Copies, Copy, Held, Registration
from distributary.broker.rendezvous.table import Table, _portions
from distributary.broker.subscriptions.registrar import Register
from distributary.broker.subscriptions.subscription import (
    Matcher,
    own_id,
    scoped_id,
    subscription_of,
)
from distributary.errors import PeerMisbehaved
from distributary.filters import Filter
from distributary.topology import root_among

ALARM = {"exact": {"type": "alarm"}}


def roles(overlay: Overlay, kind: str = "alarm") -> tuple[int, str, str]:
    """The cell of a type, its root and its surrogate among those that are up."""
    cell = cell_of(overlay, event(kind))
    key, up = key_of(overlay, cell), sorted(overlay.up())
    root = root_among(up, key)
    return cell, root, root_among([one for one in up if one != root], key)


def line(overlay: Overlay, cell: int) -> list[str]:
    """The root of a cell among those that are up, who would be without it, and without both."""
    found: list[str] = []
    while len(found) < min(3, len(overlay.up())):
        rest = sorted(set(overlay.up()) - set(found))
        found.append(root_among(rest, key_of(overlay, cell)))
    return found


def keepers(overlay: Overlay, cell: int, home: str) -> list[str]:
    """Who is to keep what a home has registered: two besides the home."""
    first = line(overlay, cell)
    return sorted(first if home in first[:2] else first[:2])


def third(overlay: Overlay) -> str:
    """A broker that is neither root nor surrogate of alarms."""
    _, root, surrogate = roles(overlay)
    return next(one for one in overlay.members if one not in (root, surrogate))


def served(overlay: Overlay, identity: str, kind: str = "alarm") -> list[tuple[str, str]]:
    """Whom a broker would send an alarm to."""
    publication = event(kind)
    found = core_of(overlay, identity).rendezvous.matches(
        cell_of(overlay, publication), publication
    )
    return [(registration.home, own_id(registration.id)) for registration in found]


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_confirmed_that_is_not_on_two_disks(seed: int) -> None:
    """Under loss, and with a crash of the root or the surrogate at any moment."""
    overlay = Overlay(7, seed=seed)
    overlay.network.loss, overlay.network.spread_ns = 0.15, 200 * MS
    home = third(overlay)
    cell, root, surrogate = roles(overlay)
    client = Subscriber(overlay, "@a", home)
    counts: list[int] = []
    client.on_confirmed = lambda name: counts.append(len(holders(overlay, home, name, cell)))
    client.subscribe("s", ALARM)
    victim = (root, surrogate)[seed % 2]
    overlay.run_s(0.02 + 0.03 * (seed // 2))
    overlay.world.crash(victim)
    overlay.run_s(25)
    assert len(counts) == 1
    assert counts[0] >= 2
    overlay.restart(victim)
    overlay.network.loss = 0.0
    overlay.run_s(20)
    assert_in_cells(overlay, home, "s", {cell})


def test_the_surrogate_of_a_root_that_is_lost_serves_at_once() -> None:
    overlay = Overlay(9)
    home = third(overlay)
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", ALARM)
    overlay.run_s(2)
    cell, root, surrogate = roles(overlay)
    assert served(overlay, surrogate) == [(home, "s")]
    overlay.world.crash(root)
    overlay.world.crash(home)
    overlay.run_s(8)
    # Nobody has registered anything again, as the home is away too.
    assert roles(overlay)[1] == surrogate
    assert core_of(overlay, surrogate).membership.next_hop(key_of(overlay, cell)) is None
    assert served(overlay, surrogate) == [(home, "s")]
    assert_in_cells(overlay, home, "s", {cell})


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_confirmed_that_only_one_broker_has_besides_its_home(
    seed: int, place: int
) -> None:
    """The home is the root or the surrogate, and the other one crashes at any moment."""
    overlay = Overlay(7, seed=seed)
    overlay.network.loss, overlay.network.spread_ns = 0.15, 200 * MS
    cell = roles(overlay)[0]
    home, other = line(overlay, cell)[place], line(overlay, cell)[1 - place]
    client = Subscriber(overlay, "@a", home)
    others: list[set[str]] = []
    client.on_confirmed = lambda name: others.append(
        set(holders(overlay, home, name, cell)) - {home}
    )
    client.subscribe("s", ALARM)
    overlay.run_s(0.02 + 0.05 * seed)
    overlay.world.crash(other)
    overlay.run_s(25)
    assert len(others) == 1
    assert len(others[0]) >= 2
    overlay.restart(other)
    overlay.network.loss = 0.0
    overlay.run_s(20)
    assert set(keepers(overlay, cell, home)) <= set(holders(overlay, home, "s", cell))


@pytest.mark.parametrize("place", [0, 1])
def test_what_a_home_that_is_root_or_surrogate_has_registered_outlives_the_other(
    place: int,
) -> None:
    """Seen with `lost-root.toml`, seed 0: the home is down, and the other lost for ever."""
    overlay = Overlay(9)
    cell = roles(overlay)[0]
    *both, fresh = line(overlay, cell)
    home = both[place]
    client = Subscriber(overlay, "@a", home)

    def crash_both(_: str) -> None:
        for one in both:
            overlay.world.crash(one)

    client.on_confirmed = crash_both
    client.subscribe("s", ALARM)
    overlay.run_s(8)
    assert client.confirmed
    assert roles(overlay)[1] == fresh
    assert served(overlay, fresh) == [(home, "s")]
    assert_in_cells(overlay, home, "s", {cell})
    # Back before it is lost.
    overlay.restart(home)
    overlay.run_s(8)
    assert holders(overlay, home, "s", cell) == sorted({*keepers(overlay, cell, home), *both})
    assert served(overlay, home) == [(home, "s")]


def test_a_surrogate_that_takes_another_for_it_does_not_forget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Brokers learn at different times who is there; the root says who keeps what."""
    overlay = Overlay(8)
    home = third(overlay)
    Subscriber(overlay, "@a", home).subscribe("s", ALARM)
    overlay.run_s(1)
    cell, root, surrogate = roles(overlay)
    rendezvous = core_of(overlay, surrogate).rendezvous
    monkeypatch.setattr(rendezvous._replication, "keeps", lambda *_: False)
    overlay.in_turn(surrogate, rendezvous._upkeep._rearrange)
    overlay.run_s(1)
    assert holders(overlay, home, "s", cell) == sorted((root, surrogate))
    assert core_of(overlay, root).rendezvous._registry._requests._waiting == {}


def test_two_brokers_are_enough_for_each_other() -> None:
    overlay = Overlay(2)
    cell, root, surrogate = roles(overlay)
    for home in (root, surrogate):
        client = Subscriber(overlay, f"@{home}", home)
        client.subscribe("s", ALARM)
        overlay.run_s(1)
        assert client.confirmed
        assert holders(overlay, home, "s", cell) == sorted((root, surrogate))


def test_each_registration_is_with_those_who_are_to_keep_it_and_with_nobody_else() -> None:
    """Whoever joins, leaves, goes down or comes back in the meantime."""
    overlay = Overlay(6, spare=6, seed=3, settings=settings_with(registration_s=5.0))
    cell = roles(overlay)[0]
    homes = list(overlay.members)
    for home in homes:
        Subscriber(overlay, f"@{home}", home).subscribe("s", ALARM)

    def check(up: list[str]) -> None:
        overlay.run_s(15)
        for home in up:
            having = [one for one in holders(overlay, home, "s", cell) if one in overlay.up()]
            assert having == keepers(overlay, cell, home), home

    check(homes)
    for identity in overlay.spare:
        overlay.join(identity, contact=homes[0])
        overlay.run_s(0.5)
    check(homes)
    victims = line(overlay, cell)[:2]
    for victim in victims:
        overlay.world.crash(victim)
        check([home for home in homes if home not in victims])
        overlay.restart(victim)
        check(homes)
    leaver = next(one for one in line(overlay, cell) if one not in homes)
    overlay.world.tell(leaver, Leave(), sender="!")
    overlay.run_s(2)
    overlay.world.crash(leaver)
    check(homes)


@pytest.mark.parametrize("place", [0, 1])
def test_what_ends_is_forgotten_by_the_next_in_line_too(place: int) -> None:
    overlay = Overlay(8, settings=settings_with(registration_s=2.0))
    cell = roles(overlay)[0]
    home = line(overlay, cell)[place]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", ALARM)
    # As if the home had forgotten that it ever registered this.
    ghost = Register(
        scoped_id("@a", "ghost"), 1, json.dumps([ALARM]), None, False, 0, False, (cell,)
    )
    key = key_of(overlay, cell)
    overlay.in_turn(home, partial(core_of(overlay, home).links.route, key, ghost))
    overlay.run_s(1)
    for name in ("s", "ghost"):
        assert holders(overlay, home, name, cell) == sorted(line(overlay, cell))
    client.unsubscribe("s")
    overlay.run_s(15)
    for name in ("s", "ghost"):
        assert holders(overlay, home, name, cell) == []
    assert list(core_of(overlay, line(overlay, cell)[2]).rendezvous._table) == []


def test_a_root_that_comes_back_learns_what_it_missed() -> None:
    overlay = Overlay(9)
    home = third(overlay)
    client = Subscriber(overlay, "@a", home)
    client.subscribe("old", ALARM)
    client.subscribe("kept", ALARM)
    overlay.run_s(2)
    cell, root, _ = roles(overlay)
    overlay.world.crash(root)
    overlay.run_s(5)
    client.unsubscribe("old")
    client.subscribe("new", ALARM, {"exact": {"subject": "x"}})
    client.subscribe("other", {"exact": {"type": "alarm"}}, profile={"accept": ["text/plain"]})
    overlay.run_s(2)
    assert sorted(client.confirmed) == ["kept", "new", "other"]
    overlay.world.crash(home)
    overlay.run_s(5)
    overlay.restart(root)
    overlay.run_s(5)
    assert roles(overlay)[1] == root
    # From the surrogate, as the home is away.
    assert served(overlay, root) == [(home, "kept"), (home, "other")]
    assert_in_cells(overlay, home, "other", {cell})
    assert held_cells(overlay.world.nodes[root], home, "old") == set()


def test_a_root_that_comes_back_learns_from_the_only_one_that_knows() -> None:
    overlay = Overlay(3)
    home = third(overlay)
    client = Subscriber(overlay, "@a", home)
    cell, root, _ = roles(overlay)
    overlay.world.crash(root)
    overlay.run_s(5)
    client.subscribe("s", ALARM)
    overlay.run_s(3)
    assert "s" in client.confirmed
    overlay.world.crash(home)
    overlay.run_s(5)
    overlay.restart(root)
    overlay.run_s(5)
    assert served(overlay, root) == [(home, "s")]
    assert holders(overlay, home, "s", cell) == sorted(overlay.members)


def test_a_broker_that_joins_gets_the_cells_of_which_it_is_the_root() -> None:
    overlay = Overlay(8, spare=12, seed=3)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    kinds = [f"kind {number}" for number in range(12)]
    for kind in kinds:
        client.subscribe(kind, {"exact": {"type": kind}})
    overlay.run_s(3)
    before = {kind: roles(overlay, kind)[1] for kind in kinds}
    for identity in overlay.spare:
        overlay.join(identity, contact=home)
        overlay.run_s(1)
    overlay.run_s(5)
    moved = [kind for kind in kinds if roles(overlay, kind)[1] != before[kind]]
    assert moved
    for kind in kinds:
        cell, root, _ = roles(overlay, kind)
        assert served(overlay, root, kind) == [(home, kind)]
        assert_in_cells(overlay, home, kind, {cell})
    # Those that are not to keep it any more forget.
    overlay.run_s(90)
    for kind in kinds:
        cell = roles(overlay, kind)[0]
        assert holders(overlay, home, kind, cell) == keepers(overlay, cell, home)


def test_a_root_that_leaves_in_good_order_hands_everything_over() -> None:
    overlay = Overlay(8)
    home = third(overlay)
    Subscriber(overlay, "@a", home).subscribe("s", ALARM)
    overlay.run_s(2)
    cell, root, surrogate = roles(overlay)
    overlay.world.tell(root, Leave(), sender="!")
    overlay.run_s(1)
    overlay.world.crash(root)
    overlay.run_s(1)
    assert roles(overlay)[1] == surrogate
    assert served(overlay, surrogate) == [(home, "s")]
    assert_in_cells(overlay, home, "s", {cell})


def test_what_a_lost_home_had_registered_is_forgotten_and_what_a_sleeping_one_has_is_not() -> None:
    overlay = Overlay(8, settings=settings_with(registration_s=2.0))
    home = third(overlay)
    Subscriber(overlay, "@a", home).subscribe("s", ALARM)
    overlay.run_s(2)
    cell, root, surrogate = roles(overlay)
    overlay.world.crash(home)
    overlay.run_s(15)
    # Longer than its lease, but it may come back.
    assert holders(overlay, home, "s", cell) == sorted((root, surrogate))
    overlay.run_s(25)
    assert holders(overlay, home, "s", cell) == []
    overlay.restart(home)
    overlay.run_s(5)
    assert_in_cells(overlay, home, "s", {cell})


def test_what_a_home_does_not_renew_is_forgotten_by_root_and_surrogate() -> None:
    overlay = Overlay(8, settings=settings_with(registration_s=2.0))
    home = third(overlay)
    cell, root, surrogate = roles(overlay)
    core = core_of(overlay, home)
    # As if the home had forgotten that it ever registered this.
    register = Register(
        scoped_id("@a", "ghost"), 1, json.dumps([ALARM]), None, False, 0, False, (cell,)
    )
    key = core.rendezvous.key_of(cell)
    overlay.in_turn(home, lambda turn: core.links.route(key, register, turn))
    overlay.run_s(1)
    assert holders(overlay, home, "ghost", cell) == sorted((root, surrogate))
    overlay.run_s(15)
    assert holders(overlay, home, "ghost", cell) == []


def test_a_registration_that_comes_after_its_withdrawal_is_not_believed() -> None:
    overlay = Overlay(8)
    home = third(overlay)
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", ALARM)
    overlay.run_s(1)
    cell, root, _ = roles(overlay)
    client.unsubscribe("s")
    overlay.run_s(1)
    for version in (1, 2):
        old = Register(
            scoped_id("@a", "s"), version, json.dumps([ALARM]), None, False, 0, True, (cell,)
        )
        key = key_of(overlay, cell)
        overlay.in_turn(home, partial(core_of(overlay, home).links.route, key, old))
        overlay.run_s(0.2)
        assert served(overlay, root) == []
    overlay.run_s(1)
    assert holders(overlay, home, "s", cell) == []


class Recording(Dissemination):
    """Notes which registrations were late."""

    late: list[tuple[str, int, str]]

    def registered_late(self, cell: int, registration: Registration, turn: Turn) -> None:
        Recording.late.append((self.core.identity, cell, registration.id))
        super().registered_late(cell, registration, turn)


def test_a_registration_is_late_only_where_it_is_new_and_has_been_confirmed() -> None:
    Recording.late = []
    overlay = Overlay(8, seed=3, spare=12, parts={"dissemination": Recording})
    home = third(overlay)
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", ALARM)
    overlay.run_s(100)
    # Renewed twice since.
    assert Recording.late == []
    cell = cell_of(overlay, event("alarm"))
    for identity in overlay.spare:
        overlay.join(identity, contact=home)
    overlay.run_s(5)
    assert roles(overlay)[1] in overlay.spare
    assert (roles(overlay)[1], cell, scoped_id("@a", "s")) in Recording.late
    assert {name for _, _, name in Recording.late} == {scoped_id("@a", "s")}


@pytest.mark.parametrize("again", ["home", "root"])
def test_a_root_by_whose_answer_a_client_was_told_has_missed_nothing(again: str) -> None:
    """Its clock says that the client was told before it had the registration."""
    Recording.late = []
    overlay = Overlay(8, parts={"dissemination": Recording})
    _, root, _ = roles(overlay)
    overlay.world.nodes[root].skew_ns = SECOND * 9 // 10
    home = third(overlay)
    Subscriber(overlay, "@a", home).subscribe("s", ALARM)
    overlay.run_s(1)
    (entry,) = core_of(overlay, root).rendezvous._table
    assert entry.registration is not None
    assert not entry.registration.confirmed
    victim = home if again == "home" else root
    overlay.world.crash(victim)
    overlay.run_s(1)
    overlay.restart(victim)
    overlay.run_s(5)
    (entry,) = core_of(overlay, root).rendezvous._table
    assert entry.registration is not None
    assert entry.registration.confirmed
    assert entry.registration.since_ns < entry.entered_ns
    assert root not in {identity for identity, _, _ in Recording.late}


def test_cells_that_are_none_are_misbehaviour() -> None:
    overlay = Overlay(2)
    one, other = overlay.members
    registration = Registration(
        other, "s", 1, "[]", None, False, 0, False, (Step(other, 0.0, 1.0),)
    )
    for message in (
        Register("s", 1, "[]", None, False, 0, False, (65,)),
        Copies((Copy(Held(other, "s", 1, (-1,)), registration),)),
    ):
        with pytest.raises(PeerMisbehaved, match="a cell that is not among"):
            overlay.broker(one).receive(message, sender=other, now_ns=0)


def test_a_registration_that_was_not_routed_is_refused_and_leaves_nothing() -> None:
    overlay = Overlay(8)
    cell, root, _ = roles(overlay)
    home = third(overlay)
    before = dict(overlay.world.nodes[root].journal)
    register = Register("s", 1, json.dumps([ALARM]), None, False, 0, False, (cell,))
    with pytest.raises(PeerMisbehaved, match="not routed"):
        overlay.broker(root).receive(register, sender=home, now_ns=overlay.world.now_ns)
    overlay.world.tell(root, Hop(1, 1, encode(register)), sender=home)
    overlay.run_s(1)
    assert holders(overlay, home, "s", cell) == []
    assert served(overlay, root) == []
    assert overlay.world.nodes[root].journal.keys() - before.keys() == {f"links/seen/{home}"}


def test_a_root_registers_with_itself() -> None:
    overlay = Overlay(8)
    cell, root, _ = roles(overlay)
    Subscriber(overlay, "@a", root).subscribe("s", ALARM)
    overlay.run_s(1)
    assert holders(overlay, root, "s", cell) == sorted(line(overlay, cell))


def test_a_table_keeps_the_latest_word_in_whatever_order_it_comes() -> None:
    def said(version: int, cells: tuple[int, ...], *, live: bool = True) -> Copy:
        registration = Registration(
            "h", "s", version, json.dumps([ALARM]), None, False, 0, False, (Step("h", 0.0, 1.0),)
        )
        return Copy(Held("h", "s", version, cells), registration if live else None)

    words = [said(1, (1, 2)), said(2, (1,), live=False), said(3, (2, 3)), said(3, (4,))]
    for order in ((0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1), (0, 3, 2, 1)):
        table = Table()
        for place in order:
            table.take(words[place])
        alarm = event("alarm")
        found = [cell for cell in range(6) if table.matches(cell, alarm, tolerance=False)]
        assert found == [2, 3, 4]
        assert table.cells() == [2, 3, 4]
        assert not table.wanted(1)
        (entry,) = table
        table.drop(entry, {2, 3, 4})
        assert list(table) == []


@pytest.mark.parametrize("indexed_min", [0, 4, 1000])
def test_an_index_changes_no_answer(indexed_min: int) -> None:
    """The same, added and removed in any order, whether there is an index or not."""
    matcher: Matcher[str] = Matcher(indexed_min=indexed_min)
    filters = {
        f"{low}-{kind}": Filter.parse([{"range": {"/v": {"min": low}}}, {"prefix": {"type": kind}}])
        for low in range(6)
        for kind in ("a", "ab", "b")
    }
    publications = [event(kind, v=v) for kind in ("a", "abc", "b", "c") for v in range(7)]
    there: dict[str, Filter] = {}

    def check() -> None:
        for publication in publications:
            expected = sorted(k for k, f in there.items() if f.matches(publication))
            assert matcher.match(publication) == expected

    for number, (key, filter_) in enumerate(filters.items()):
        matcher.put(key, filter_)
        there[key] = filter_
        if number % 5 == 4:
            check()
    for key in list(filters)[::2]:
        matcher.discard(key)
        del there[key]
        check()
    matcher.put("5-b", filters["0-a"])
    there["5-b"] = filters["0-a"]
    matcher.discard("not there")
    check()
    assert len(matcher) == len(there)


def test_many_registrations_are_handed_over_in_portions() -> None:
    overlay = Overlay(6, settings=settings_with(covering=False))
    home = third(overlay)
    client = Subscriber(overlay, "@a", home)
    for number in range(600):
        client.subscribe(f"s{number:03}", ALARM, {"range": {"/v": {"min": number}}})
    overlay.run_s(3)
    assert len(client.confirmed) == 600
    cell, root, surrogate = roles(overlay)
    overlay.world.crash(root)
    overlay.run_s(6)
    assert roles(overlay)[1] == surrogate
    fresh = roles(overlay)[2]
    for name in ("s000", "s599"):
        assert cell in held_cells(overlay.world.nodes[fresh], home, name)
    found = core_of(overlay, fresh).rendezvous.matches(cell, event("alarm", v=299))
    assert len(found) == 300
    assert overlay.world.now_ns < 10 * SECOND


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 300)), max_size=20), st.randoms())
def test_what_a_subscription_was_and_is_are_not_told_apart(
    wanted: list[tuple[int, int]], rng: random.Random
) -> None:
    """Each with so many generations, of filters of so many thousand characters."""
    copies = []
    for number, (generations, size) in enumerate(wanted):
        for generation in range(generations):
            own = scoped_id("@a", f"s{number}")
            name = f"{generation}+{own}" if generation else own
            held = Held("h", name, 1, (0,))
            filters = " " * 1000 * size
            path = (Step("h", 0.0, 1.0),)
            copies.append(
                Copy(held, Registration("h", name, 1, filters, None, False, generation, True, path))
            )
    rng.shuffle(copies)
    portions = _portions(copies)
    told = [copy for portion in portions for copy in portion]
    assert sorted(copy.held.id for copy in told) == sorted(copy.held.id for copy in copies)
    where: dict[str, list[tuple[int, int]]] = {}
    for place, portion in enumerate(portions):
        texts = [one.registration.filters for one in portion if one.registration is not None]
        assert sum(map(len, texts)) <= 2**20
        for copy in portion:
            assert copy.registration is not None
            name = subscription_of(copy.held.id)
            where.setdefault(name, []).append((place, copy.registration.since_ns))
    for number, (generations, size) in enumerate(wanted):
        places = where[scoped_id("@a", f"s{number}")]
        assert [since_ns for _, since_ns in places] == list(range(generations))
        assert len({place for place, _ in places}) == 1 or generations * size * 1000 > 2**20
