"""A turn is a transaction: durable together or not at all, and nothing leaves before."""

from __future__ import annotations

from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contract.bench import Do, Value, do
from tests.contract.hosts import HOSTS, OWN, PEER, HostUnderTest, bench_of, kept, said

from distributary.broker.encoding import encode
from distributary.broker.links.messages import Gathered, Hop, HopAck
from distributary.broker.membership.roster import LIFE, Gossip, Join, MemberStatus, News, Ping, Pong
from distributary.errors import JournalDamaged


def pongs(host: HostUnderTest) -> list[int]:
    return [message.number for _, message in host.sent if isinstance(message, Pong)]


def ping(host: HostUnderTest, number: int) -> None:
    digest = host.broker.core.membership.gossip.digest
    host.tell(Ping(number, 0, digest, ()), PEER)


def test_what_a_turn_writes_is_durable_when_what_it_says_has_left(host: HostUnderTest) -> None:
    """Also where it says so before it writes."""
    host.tell(do("persist:a=1", "erase:b", "say:after"))
    host.tell(do("say:before", "persist:b=2"))
    host.run(0.1)
    assert said(host) == ["after", "before"]
    assert kept(host) == {"a": "1", "b": "2"}


@pytest.mark.parametrize("durable", [False, True])
def test_a_crash_at_a_commit_leaves_all_of_a_turn_or_nothing(
    host: HostUnderTest, durable: bool
) -> None:
    host.tell(do("persist:a=old", "persist:b=old"))
    host.run(0.1)
    host.crash_at_commit(durable=durable)
    host.tell(do("say:x", "persist:a=new", "erase:b", "persist:c=new", "say:y"))
    host.run(0.1)
    assert said(host) == []
    assert kept(host) == ({"a": "new", "c": "new"} if durable else {"a": "old", "b": "old"})
    host.restart()
    assert bench_of(host).values == kept(host)


def test_nothing_leaves_before_its_commit_and_everything_in_order_after_it(
    host: HostUnderTest,
) -> None:
    """Neither what comes of a turn without writes: it has seen what those before it changed."""
    host.hold()
    host.tell(do("persist:a=1", "say:1"))
    host.tell(do("say:2", "report:2"))
    host.tell(do("say:3", "persist:b=3", "say:4"))
    host.run(1)
    assert (said(host), kept(host)) == ([], {})
    assert Value("2") not in host.reports
    host.release()
    host.run(0.1)
    assert said(host) == ["1", "2", "3", "4"]
    assert kept(host) == {"a": "1", "b": "3"}
    assert Value("2") in host.reports


def test_a_broker_goes_on_while_a_commit_is_under_way_and_many_turns_share_the_next(
    host: HostUnderTest,
) -> None:
    host.hold()
    for number in range(20):
        host.tell(do(f"persist:k={number}", f"say:{number}"))
    assert len(bench_of(host).handled) == 20
    host.release()
    host.run(0.1)
    assert kept(host) == {"k": "19"}
    assert said(host) == [str(number) for number in range(20)]
    assert host.commits == 2


def test_a_slow_disk_does_not_keep_a_broker_from_saying_that_it_is_alive(
    host: HostUnderTest,
) -> None:
    host.hold()
    host.tell(do("persist:a=1", "say:1"))
    ping(host, 7)
    host.run(0.05)
    assert pongs(host) == [7]
    assert said(host) == []


def test_an_incarnation_is_durable_before_anybody_hears_of_it(host: HostUnderTest) -> None:
    host.hold()
    own = host.broker.core.membership.gossip.incarnation
    host.tell(Gossip((News(OWN, own + LIFE, MemberStatus.DOWN),)), PEER)
    ping(host, 7)
    host.run(0.05)
    assert host.broker.core.membership.gossip.incarnation > own
    assert [message for _, message in host.sent if isinstance(message, Pong | Gossip)] == []
    host.release()
    host.run(0.05)
    assert pongs(host) == [7]
    ping(host, 8)
    host.run(0.05)
    assert pongs(host) == [7, 8]


def test_nobody_hears_of_a_new_life_before_it_is_durable(host: HostUnderTest) -> None:
    host.crash()
    host.sent.clear()
    host.hold()
    host.restart()
    ping(host, 7)
    host.run(2)
    assert host.sent == []
    host.release()
    host.run(0.05)
    assert pongs(host) == [7]
    assert [message for _, message in host.sent if isinstance(message, Join)]


def test_a_crash_forgets_turns_whose_commit_is_under_way(host: HostUnderTest) -> None:
    host.tell(do("persist:a=1", "say:1"))
    host.run(0.1)
    host.hold()
    host.tell(do("persist:a=2", "say:2"))
    host.tell(do("persist:a=3", "say:3"))
    host.crash()
    host.release()
    host.restart()
    host.run(0.1)
    assert said(host) == ["1"]
    assert bench_of(host).values == kept(host) == {"a": "1"}


words = st.sampled_from(["persist:a=", "persist:b=", "erase:a", "erase:b", "say:"])
turns = st.lists(st.lists(words, min_size=1, max_size=4), min_size=1, max_size=8)


@pytest.mark.parametrize("name", HOSTS)
@given(turns=turns, held=st.lists(st.booleans(), min_size=8, max_size=8), crash=st.integers(0, 8))
def test_a_disk_is_always_as_some_turn_has_left_it(
    name: str, turns: list[list[str]], held: list[bool], crash: int
) -> None:
    """And whatever has been said comes of turns that are on it."""
    with closing(HOSTS[name]()) as host:
        check_crash(host, turns, held, crash)


def check_crash(host: HostUnderTest, turns: list[list[str]], held: list[bool], crash: int) -> None:
    states: list[dict[str, str]] = [{}]
    told = [0]
    for place, steps in enumerate(turns):
        if place == crash:
            break
        host.hold() if held[place] else host.release()
        marked = [f"{step}{place}" if step[-1] in "=:" else step for step in steps]
        host.tell(Do(tuple(marked)))
        states.append(dict(bench_of(host).values))
        told.append(told[-1] + sum(step.startswith("say") for step in marked))
    disk, spoken = kept(host), len(said(host))
    host.crash()
    host.restart()
    assert bench_of(host).values == disk
    assert any(disk == state and spoken <= count for state, count in zip(states, told, strict=True))
    first = next(place for place, count in enumerate(told) if count >= spoken)
    assert disk in states[first:]


def test_a_record_that_cannot_be_read_is_the_fault_of_the_disk(host: HostUnderTest) -> None:
    host.tell(do("persist:a=1"))
    host.crash()
    whole = host.disk()["bench/a"]
    for data in (
        b"",
        whole[:-1],
        whole + b"\0",
        b"\xff" + whole[1:],
        host.disk()["membership/known"],
    ):
        host.damage("bench/a", data)
        with pytest.raises(JournalDamaged, match=f"{OWN}.*'bench/a'") as caught:
            host.restart()
        assert (caught.value.broker, caught.value.key) == (OWN, "bench/a")
        host.crash()
    host.damage("bench/a", whole)
    host.damage("nobody/a", whole)
    with pytest.raises(JournalDamaged, match="'nobody/a'"):
        host.restart()


def test_what_has_become_too_new_for_others_during_a_commit_is_not_sent(
    host: HostUnderTest,
) -> None:
    """Somebody of the version before may join while a turn waits for its commit."""
    host.hold()
    host.tell(Hop(1, 1, encode(do("persist:a=1", "say:1"))), PEER)
    host.run(0.1)
    host.broker.core.version = 1
    host.release()
    host.run(0.1)
    assert said(host) == ["1"]
    assert not [message for _, message in host.sent if isinstance(message, Gathered)]
    host.tell(Hop(1, 1, encode(do("persist:a=1", "say:1"))), PEER)
    host.run(0.1)
    assert [message.number for _, message in host.sent if isinstance(message, HopAck)] == [1]
