"""What nobody wants is dropped at the first broker, and nothing that somebody wants."""

from __future__ import annotations

import pytest
from tests.broker_overlays import Overlay
from tests.broker_subscribers import Subscriber, cell_of, core_of, event, key_of, settings_with

from distributary.broker.client import Advertise, Advertised, Refused
from distributary.broker.rendezvous.messages import Interest, InterestTaken
from distributary.errors import PeerMisbehaved
from distributary.topology import root_among

ALARM = {"exact": {"type": "alarm"}}
BRIEF = settings_with(interest_s=6.0)


class Market:
    """A publisher that advertises alarms, and a subscriber at another broker."""

    def __init__(self, *, seed: int = 1, count: int = 8, at_surrogate: bool = False) -> None:
        self.overlay = Overlay(count, seed=seed, settings=BRIEF)
        self.cell = cell_of(self.overlay, event("alarm"))
        self.root, self.surrogate = self._roles()
        rest = [m for m in self.overlay.members if m not in (self.root, self.surrogate)]
        home = self.surrogate if at_surrogate else rest[0]
        self.publisher = Subscriber(self.overlay, "@p", home)
        self.subscriber = Subscriber(self.overlay, "@s", rest[1])
        self.subscriber.on_confirmed = lambda _: self.check()

    def _roles(self) -> tuple[str, str]:
        key, up = key_of(self.overlay, self.cell), sorted(self.overlay.up())
        root = root_among(up, key)
        return root, root_among([one for one in up if one != root], key)

    @property
    def unwanted(self) -> bool:
        """Whether the publisher's home drops alarms now."""
        node = self.overlay.world.nodes[self.publisher.home]
        if node.broker is None:
            return False
        now_ns = node.clock_ns(self.overlay.world.now_ns)
        return node.broker.core.rendezvous.unwanted(self.cell, now_ns)

    def check(self) -> None:
        assert not (self.unwanted and self.subscriber.confirmed)

    def watch_s(self, seconds: float) -> int:
        """Let time pass, and see to it that nothing is dropped that somebody wants.

        Returns
        -------
            How often the publisher's home would have dropped something.
        """
        count = 0
        for _ in range(round(seconds / 0.02)):
            self.overlay.run_s(0.02)
            self.check()
            count += self.unwanted
        return count


def test_what_nobody_wants_is_dropped_as_long_as_nobody_wants_it() -> None:
    market = Market()
    assert not market.unwanted
    market.publisher.advertise("shop", market.cell)
    market.overlay.run_s(1)
    assert market.publisher.answers(Advertised) == [Advertised("shop")]
    # For far longer than one answer holds.
    for _ in range(30):
        assert market.unwanted
        market.overlay.run_s(1)


def test_what_was_not_advertised_is_not_dropped() -> None:
    market = Market()
    market.publisher.advertise("shop", market.cell)
    market.overlay.run_s(1)
    home = core_of(market.overlay, market.publisher.home)
    other = (market.cell + 1) % 65
    assert not home.rendezvous.unwanted(other, market.overlay.world.now_ns)
    assert not core_of(market.overlay, market.root).rendezvous.unwanted(
        market.cell, market.overlay.world.now_ns
    )


def test_nothing_is_dropped_once_a_registration_is_confirmed_and_again_after_its_end() -> None:
    market = Market()
    market.publisher.advertise("shop", market.cell)
    market.overlay.run_s(1)
    assert market.unwanted
    market.subscriber.subscribe("s", ALARM)
    assert market.watch_s(1.0) > 0
    # The publisher's home has answered, so that it took no lease's time.
    assert "s" in market.subscriber.confirmed
    assert market.watch_s(20.0) == 0
    market.subscriber.unsubscribe("s")
    market.overlay.run_s(10)
    assert market.unwanted


def test_a_registration_waits_for_the_lease_of_a_home_that_does_not_answer() -> None:
    market = Market()
    market.publisher.advertise("shop", market.cell)
    market.overlay.run_s(1)
    assert market.unwanted
    market.overlay.network.apart = frozenset({market.publisher.home, "@p"})
    market.subscriber.subscribe("s", ALARM)
    dropped = market.watch_s(15.0)
    assert dropped > 50
    assert "s" in market.subscriber.confirmed
    market.overlay.network.apart = frozenset()
    assert market.watch_s(15.0) == 0


@pytest.mark.parametrize("victim", ["root", "surrogate", "publisher", "subscriber"])
@pytest.mark.parametrize("after_s", [0.02, 0.06, 0.5])
def test_nothing_wanted_is_dropped_whoever_crashes(victim: str, after_s: float) -> None:
    market = Market()
    market.publisher.advertise("shop", market.cell)
    market.overlay.run_s(1)
    assert market.unwanted
    identity = {
        "root": market.root,
        "surrogate": market.surrogate,
        "publisher": market.publisher.home,
        "subscriber": market.subscriber.home,
    }[victim]
    market.subscriber.subscribe("s", ALARM)
    market.watch_s(after_s)
    market.overlay.world.crash(identity)
    market.watch_s(10.0)
    market.overlay.restart(identity)
    market.watch_s(20.0)
    assert "s" in market.subscriber.confirmed
    assert not market.unwanted


@pytest.mark.parametrize("crash", [True, False])
@pytest.mark.parametrize("after_s", [0.02, 0.1, 3.0])
def test_nothing_wanted_is_dropped_by_a_surrogate_when_the_root_is_lost(
    crash: bool, after_s: float
) -> None:
    """It may be down, or out of reach, while nobody else knows that it was told anything."""
    market = Market(at_surrogate=True)
    market.publisher.advertise("shop", market.cell)
    market.overlay.run_s(1)
    assert market.unwanted
    market.overlay.world.crash(market.root)
    if crash:
        market.overlay.world.crash(market.surrogate)
    else:
        market.overlay.network.apart = frozenset({market.surrogate, "@p"})
    market.watch_s(after_s)
    market.subscriber.subscribe("s", ALARM)
    market.watch_s(15.0)
    assert "s" in market.subscriber.confirmed
    if crash:
        market.overlay.restart(market.surrogate)
    market.overlay.network.apart = frozenset()
    market.watch_s(15.0)
    assert not market.unwanted


@pytest.mark.parametrize("seed", range(4))
def test_nothing_wanted_is_dropped_under_loss_and_changes_of_the_root(seed: int) -> None:
    market = Market(seed=seed, count=6)
    network = market.overlay.network
    network.loss, network.repeats, network.spread_ns = 0.2, 0.1, 300_000_000
    market.publisher.advertise("shop", market.cell)
    dropped = 0
    for round_ in range(3):
        dropped += market.watch_s(6.0)
        market.subscriber.subscribe("s", ALARM)
        market.watch_s(0.1)
        market.overlay.world.crash(market.root)
        market.watch_s(8.0)
        market.overlay.restart(market.root)
        market.watch_s(12.0)
        assert "s" in market.subscriber.confirmed, round_
        market.subscriber.unsubscribe("s")
    network.loss = 0.0
    dropped += market.watch_s(20.0)
    assert dropped > 0


def test_a_broker_that_joins_as_the_root_waits_for_what_the_former_root_has_told() -> None:
    overlay = Overlay(6, spare=14, seed=3, settings=BRIEF)
    cells = range(65)
    publisher = Subscriber(overlay, "@p", overlay.members[0])
    publisher.advertise("shop", *cells)
    overlay.run_s(2)
    home = core_of(overlay, publisher.home)
    assert all(home.rendezvous.unwanted(cell, overlay.world.now_ns) for cell in cells)
    subscriber = Subscriber(overlay, "@s", overlay.members[1])

    def check() -> None:
        if "s" in subscriber.confirmed:
            assert not any(home.rendezvous.unwanted(c, overlay.world.now_ns) for c in cells)

    subscriber.on_confirmed = lambda _: check()
    for identity in overlay.spare:
        overlay.join(identity, contact=overlay.members[0])
    overlay.run_s(0.2)
    subscriber.subscribe("s", {"not": ALARM})
    for _ in range(300):
        overlay.run_s(0.05)
        check()
    assert "s" in subscriber.confirmed


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("after_s", [0.1, 3.0, 6.0])
def test_nothing_wanted_is_dropped_in_a_divided_overlay(both: bool, after_s: float) -> None:
    """The publisher has the root on its side, perhaps also the surrogate; others do not."""
    market = Market(count=9)
    market.publisher.advertise("shop", market.cell)
    market.overlay.run_s(1)
    assert market.unwanted
    side = {market.root, market.publisher.home, "@p"} | ({market.surrogate} if both else set())
    market.overlay.network.apart = frozenset(side)
    market.watch_s(after_s)
    market.subscriber.subscribe("s", ALARM)
    market.watch_s(14.0)
    assert "s" in market.subscriber.confirmed
    market.overlay.network.apart = frozenset()
    market.watch_s(15.0)


def told(market: Market, to: str, message: object, sender: str) -> None:
    market.overlay.world.tell(to, message, sender=sender)


def test_an_answer_that_comes_after_later_news_is_not_believed() -> None:
    market = Market()
    home, cell = market.publisher.home, market.cell
    market.publisher.advertise("shop", cell)
    market.overlay.run_s(1)
    asked_ns = market.overlay.world.now_ns
    told(market, home, Interest(cell, True, 0, asked_ns), market.root)
    assert not market.unwanted
    told(market, home, Interest(cell, False, asked_ns, asked_ns), market.root)
    assert not market.unwanted
    market.overlay.run_s(1)
    told(market, home, Interest(cell, False, market.overlay.world.now_ns, 0), market.root)
    assert market.unwanted


def test_only_the_root_can_say_that_nobody_cares_and_anybody_that_somebody_does() -> None:
    market = Market()
    home, cell = market.publisher.home, market.cell
    now_ns = market.overlay.world.now_ns + 1
    told(market, home, Interest(cell, False, now_ns, now_ns), market.surrogate)
    assert not market.unwanted
    told(market, home, Interest(cell, False, now_ns, now_ns), market.root)
    assert market.unwanted
    told(market, home, Interest(cell, True, 0, now_ns), market.surrogate)
    market.overlay.run_s(1)
    now_ns = market.overlay.world.now_ns
    told(market, home, Interest(cell, False, now_ns, now_ns), market.root)
    assert not market.unwanted


def test_a_home_that_knew_better_before_it_was_told_otherwise_is_waited_for() -> None:
    market = Market()
    home, cell = market.publisher.home, market.cell
    market.publisher.advertise("shop", cell)
    market.overlay.run_s(1)
    market.overlay.network.apart = frozenset({home, "@p"})
    market.subscriber.subscribe("s", ALARM)
    market.overlay.run_s(0.5)
    told(market, market.root, InterestTaken(cell, 0), home)
    market.watch_s(2)
    assert not market.subscriber.confirmed
    told(market, market.root, InterestTaken(cell, market.overlay.world.now_ns), home)
    market.subscriber.on_confirmed = lambda _: None
    market.overlay.run_s(0.2)
    assert market.subscriber.confirmed


def test_an_advertisement_outlives_a_crash_and_can_be_replaced_and_moved() -> None:
    market = Market()
    home = market.publisher.home
    market.publisher.advertise("shop", market.cell)
    market.overlay.run_s(1)
    market.overlay.world.crash(home)
    market.overlay.run_s(0.1)
    market.overlay.restart(home)
    market.overlay.run_s(8)
    assert market.unwanted
    advertisements = core_of(market.overlay, home).rendezvous.advertisements
    assert advertisements.rates("@p") == {market.cell: 1.0}
    moved = advertisements.export_client("@p")
    assert [record.source for record in moved.advertisements] == ["shop"]
    market.publisher.advertise("shop")
    market.overlay.run_s(8)
    assert advertisements.rates("@p") == {}
    assert not market.unwanted


@pytest.mark.parametrize(
    ("rates", "reason"),
    [
        (((65, 1.0),), "a cell is a number from 0 to 64"),
        (((-1, 1.0),), "a cell is a number from 0 to 64"),
        (((1, 1.0), (1, 2.0)), "a cell is given twice"),
        (((1, -1.0),), "a rate is at least 0 and finite"),
        (((1, float("nan")),), "a rate is at least 0 and finite"),
    ],
)
def test_an_advertisement_that_breaks_the_rules_is_refused(
    rates: tuple[tuple[int, float], ...], reason: str
) -> None:
    overlay = Overlay(2)
    client = Subscriber(overlay, "@p", overlay.members[0])
    client.tell(Advertise("shop", rates))
    overlay.run_s(1)
    assert client.received == [Refused("advertisement", reason, "shop")]


def test_only_clients_advertise() -> None:
    overlay = Overlay(2)
    one, other = overlay.members
    with pytest.raises(PeerMisbehaved):
        overlay.broker(one).receive(Advertise("shop", ()), sender=other, now_ns=0)
