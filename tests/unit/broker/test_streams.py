"""Trees of brokers that carry streams: moves, losses and crashes, one at a time."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.stream_worlds import MS, StreamNetwork, StreamWorld, broker_name

from distributary.broker.client import Announce, Changed, Refused
from distributary.broker.host import PlantTree, ServiceTimes, Turn
from distributary.broker.settings import StreamSettings
from distributary.broker.streams.stream import kept_throughout, smallest
from distributary.broker.streams.tree import TRANSITIONS, TreeEvent, TreeState
from distributary.broker.telemetry import TreeLinked
from distributary.content.divergence import Version
from distributary.content.tolerance import Tolerance
from distributary.errors import PeerMisbehaved

TREE = "/s a"
STREAMS = StreamSettings()


def absolute(amount: float) -> Tolerance:
    return Tolerance("/v", "absolute", amount)


def planted(
    parents: dict[str, str], *, delay_ns: int = 0, settings: StreamSettings = STREAMS
) -> StreamWorld:
    """Return a world in which every broker has found its parent."""
    network = StreamNetwork(random.Random(0), delay_ns)
    world = StreamWorld(network=network, settings=settings)
    world.add("00", [None])
    for broker, parent in parents.items():
        world.add(broker, [parent], [child for child, above in parents.items() if above == broker])
    world.run(2.0)
    assert {broker: world.parent(broker, TREE) for broker in parents} == parents
    return world


def counts(world: StreamWorld, kind: str) -> int:
    return world.world.message_counts[kind]


def test_whoever_moves_below_an_older_copy_stays_inside() -> None:
    """The new parent gets itself a version that is as new before it relies on its own."""
    world = planted({"01": "00", "02": "00"})
    world.subscribe("01", "a", absolute(1.5))
    world.subscribe("02", "a", absolute(1.0))
    for value in (0.0, 1.0, 0.2):
        world.change("a", Version(value))
        world.run(0.0)
    world.relocate("02", "01", 0)
    world.run(0.0)
    assert world.parent("02", TREE) == "01"
    world.change("a", Version(-0.1))
    world.run(0.0)
    assert world.outside() == []


def test_copies_never_go_back() -> None:
    """Neither at brokers that move nor at their clients."""
    world = planted({"01": "00", "02": "00"}, delay_ns=20 * MS)
    follower = world.subscribe("02", "a", absolute(0.1))
    world.subscribe("01", "a", absolute(5.0))
    for number in range(40):
        world.change("a", Version(number * 0.07))
        if number % 10 == 5:
            world.relocate("02", "01" if world.parent("02", TREE) == "00" else "00", 0)
        world.run(0.011)
    world.run(1.0)
    sequences = [update.sequence for update in world.received[follower]]
    assert sequences == sorted(sequences)
    assert len(sequences) > 10


def test_the_new_link_is_up_before_the_old_one_is_dropped() -> None:
    world = planted({"01": "00", "02": "00"}, delay_ns=20 * MS)
    world.subscribe("02", "a", absolute(1.0))
    world.run(1.0)
    links: list[TreeLinked] = []
    world.world.watchers.append(
        lambda _, record, __: links.append(record) if isinstance(record, TreeLinked) else None
    )
    world.relocate("02", "01", 0)
    served = set()
    for _ in range(30):
        world.run(0.005)
        parents = [b for b in ("00", "01") if "02" in world.streams(b).children(TREE)]
        assert world.parent("02", TREE) in parents
        served.add(tuple(parents))
    assert served == {("00",), ("00", "01"), ("01",)}
    assert links == [TreeLinked(TREE, "01")]


def test_a_child_and_its_parent_trade_places() -> None:
    """Whoever is asked by its own parent to be its parent answers once it has moved."""
    world = planted({"01": "00", "02": "01"}, delay_ns=20 * MS)
    world.relocate("02", "00", 0)
    world.relocate("01", "02", 0)
    world.run(1.0)
    assert (world.parent("02", TREE), world.parent("01", TREE)) == ("00", "02")
    world.check_trees()


def test_nobody_becomes_the_child_of_its_own_descendant() -> None:
    world = planted({"01": "00", "02": "01", "03": "02"})
    world.relocate("01", "03", 0)
    world.run(0.0)
    assert world.parent("01", TREE) == "00"
    world.check_trees()


def test_a_circle_that_two_moves_close_is_opened_again() -> None:
    """Each is taken in by the other before it can know better."""
    world = planted({"01": "00", "02": "00", "03": "01"}, delay_ns=20 * MS)
    for broker in ("01", "02", "03"):
        world.subscribe(broker, "a", absolute(0.5))
    world.change("a", Version(0.0))
    world.run(1.0)
    world.relocate("01", "02", 0)
    world.relocate("02", "03", 0)
    world.run(0.07)
    above = {broker: world.parent(broker, TREE) for broker in ("01", "02", "03")}
    assert above == {"01": "02", "02": "03", "03": "01"}
    world.run(1.0)
    world.check_trees()
    world.change("a", Version(9.0))
    world.run(1.0)
    assert world.outside() == []


def test_a_child_whose_parent_is_silent_attaches_at_the_root_with_its_subtree() -> None:
    world = planted({"01": "00", "02": "01", "03": "02"}, delay_ns=20 * MS)
    world.subscribe("03", "a", absolute(1.0))
    world.world.crash("01")
    world.run(STREAMS.silence_s + 2 * STREAMS.pulse_s)
    assert world.parent("02", TREE) == "00"
    assert world.parent("03", TREE) == "02"
    world.change("a", Version(3.0))
    world.run(1.0)
    assert world.outside() == []


def test_a_broker_that_returns_gives_up_children_that_have_gone_elsewhere() -> None:
    world = planted({"01": "00", "02": "01"}, delay_ns=20 * MS)
    world.subscribe("02", "a", absolute(1.0))
    world.world.crash("01")
    world.run(STREAMS.silence_s + 2 * STREAMS.pulse_s)
    world.world.restart("01")
    world.run(2 * STREAMS.pulse_s)
    assert world.streams("01").children(TREE) == ()
    world.check_trees()


def test_a_restarted_broker_knows_what_it_has_sent() -> None:
    """Its children are sent nothing that they have, and all that they miss."""
    world = planted({"01": "00", "02": "01", "03": "01"}, delay_ns=20 * MS)
    world.subscribe("02", "a", absolute(1.0))
    world.subscribe("03", "a", absolute(4.0))
    world.change("a", Version(0.0))
    world.run(1.0)
    before = counts(world, "Update")
    world.world.crash("01")
    world.world.restart("01")
    world.run(1.0)
    assert counts(world, "Update") == before + 1, "for the broker itself, which has no copy"
    assert world.streams("01").children(TREE) == ("02", "03")
    world.world.crash("01")
    world.change("a", Version(2.0))
    world.run(0.5)
    world.world.restart("01")
    world.run(1.0)
    assert world.outside() == []
    assert {update.sequence for update in world.received["s1"]} == {1}


def test_a_restarted_root_has_its_last_version() -> None:
    world = planted({"01": "00"})
    world.change("a", Version(7.0))
    world.run(0.0)
    world.world.crash("00")
    world.world.restart("00")
    world.subscribe("01", "a", absolute(1.0))
    world.run(3 * STREAMS.pulse_s)
    assert world.outside() == []


def test_a_lost_update_is_sent_again_after_a_pulse() -> None:
    world = planted({"01": "00"}, delay_ns=20 * MS)
    world.subscribe("01", "a", absolute(1.0))
    world.change("a", Version(0.0))
    world.run(1.0)
    world.network.loss = 1.0
    world.change("a", Version(5.0))
    world.run(0.0)
    world.network.loss = 0.0
    assert world.outside() != []
    world.run(3 * STREAMS.pulse_s)
    assert world.outside() == []


@pytest.mark.parametrize(("conflate", "expected"), [(True, [1, 2, 9]), (False, [*range(1, 10)])])
def test_what_waits_for_the_processor_is_replaced_by_what_is_newer(
    conflate: bool, expected: list[int]
) -> None:
    """The first waits, the second is looked at when it has been sent, and then the last."""
    world = planted({"01": "00"}, delay_ns=MS, settings=replace(STREAMS, conflate=conflate))
    follower = world.subscribe("01", "a", absolute(0.5))
    world.change("a", Version(0.0))
    world.run(1.0)
    world.world.nodes["00"].service_ns["send"] = 50.0 * MS
    world.change("a", Version(1.0))
    world.run(0.0)
    for value in range(2, 9):
        world.change("a", Version(float(value)))
    world.run(10.0)
    sequences = list(dict.fromkeys(update.sequence for update in world.received[follower]))
    assert sequences == expected
    assert world.outside() == []


def test_a_full_broker_sends_others_on_to_its_children() -> None:
    """All of them are below it in the end, and nobody has more than there is room for."""
    world = StreamWorld(settings=replace(STREAMS, fanout=2))
    world.add("00", [None])
    for number in range(1, 15):
        world.add(broker_name(number), ["00"])
        world.run(0.0)
    world.check_trees()
    children = [len(world.streams(broker).children(TREE)) for broker in world.world.nodes]
    assert max(children) == 2
    assert sum(children) == 14


def test_rates_and_delays_are_measured() -> None:
    world = planted({"01": "00", "02": "01"}, delay_ns=20 * MS)
    world.subscribe("01", "a", absolute(1.0))
    world.subscribe("02", "a", absolute(1.5))
    # In windows of 50 s; the last that ends is that of 50 to 100 s.
    for number in range(105):
        world.change("a", Version(float(number)))
        world.run(1.0)
    assert world.streams("00").rates(TREE, "01")["/s", "a"] == pytest.approx(1.0, abs=0.05)
    assert world.streams("01").rates(TREE, "02")["/s", "a"] == pytest.approx(1.0, abs=0.05)
    assert world.streams("01").own_rates(TREE)["/s", "a"] == pytest.approx(1.0, abs=0.05)
    assert world.streams("00").own_rates(TREE) == {}
    assert world.streams("00").delay_ns("01") == 20 * MS


def test_service_times_come_from_the_host_alone() -> None:
    world = planted({"01": "00"})
    world.world.tell("00", ServiceTimes(0.005, 0.001), sender="!")
    streams = world.streams("00")
    assert (streams.filter_time_s, streams.send_time_s) == (0.005, 0.001)
    for message in (ServiceTimes(1.0, 1.0), PlantTree("t", (), "00", None, ())):
        with pytest.raises(PeerMisbehaved):
            streams.core.handle(message, "01", Turn(0))


class Listener:
    """A client that keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def receive(self, message: object, *, sender: str, now_ns: int) -> None:
        self.heard.append(message)


@pytest.mark.parametrize(
    "message",
    [
        Announce("{"),
        Announce('{"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}'),
        Changed("/s", "unheard", 1, 0, ()),
        Changed("/s", "a", -1, 0, ()),
        Changed("/s", "a", 2**63, 0, ()),
        Changed("/s", "a", 1, 2**64, ()),
    ],
)
def test_what_breaks_the_rules_is_refused(message: object) -> None:
    world = planted({"01": "00"})
    listener = Listener()
    world.world.clients["@source"] = listener
    world.world.tell("00", message, sender="@source")
    world.run(0.0)
    assert [type(heard) for heard in listener.heard] == [Refused]


def test_a_parent_is_left_only_for_another() -> None:
    """Every state can be left, and only a parent's own word takes it away."""
    losing = {
        (state, event)
        for state, event, after in TRANSITIONS
        if state in (TreeState.LINKED, TreeState.MOVING)
        and after in (TreeState.LOOSE, TreeState.SEEKING)
    }
    assert losing == {
        (TreeState.LINKED, TreeEvent.DROPPED),
        (TreeState.MOVING, TreeEvent.DROPPED),
    }
    assert {state for state, _, _ in TRANSITIONS} == set(TreeState)


def test_the_smallest_amounts_keep_everybody_and_the_largest_are_kept_in_any_case() -> None:
    one = (("/v", (("absolute", 1.0), ("age", 60.0))),)
    other = (("/v", (("absolute", 2.0), ("edit", 3.0))), ("/w", (("changes", 1.0),)))
    assert smallest([one, other]) == (
        ("/v", (("absolute", 1.0), ("age", 60.0), ("edit", 3.0))),
        ("/w", (("changes", 1.0),)),
    )
    assert kept_throughout([one, other]) == (("/v", (("absolute", 2.0),)),)
