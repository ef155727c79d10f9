"""A broker whose turn fails is restored from its disk, and does not meet the message again."""

from __future__ import annotations

import pytest
from tests.contract.bench import do
from tests.contract.hosts import PEER, HostUnderTest, bench_of, kept, said

from distributary.broker.addresses import HOST, Blob
from distributary.broker.client import Refused
from distributary.broker.encoding import encode
from distributary.broker.host import Converted
from distributary.broker.links.messages import Gathered, Hop, HopAck
from distributary.broker.telemetry import SetAsideMessage

BREAKS = do("persist:a=broken", "say:broken", "fail:this")


def set_aside(host: HostUnderTest) -> list[tuple[str, str]]:
    found = [record for record in host.reports if isinstance(record, SetAsideMessage)]
    return [(record.peer, record.kind) for record in found]


def acknowledged(host: HostUnderTest) -> list[int]:
    numbers: list[int] = []
    for _, message in host.sent:
        if isinstance(message, HopAck):
            numbers.append(message.number)
        elif isinstance(message, Gathered):
            numbers += [one.number for one in message.acknowledgements]
    return numbers


def test_a_turn_that_fails_has_not_happened(host: HostUnderTest) -> None:
    host.tell(do("persist:a=1", "say:1"))
    host.tell(BREAKS)
    host.tell(do("say:2"))
    host.run(0.1)
    assert said(host) == ["1", "2"]
    assert bench_of(host).values == kept(host) == {"a": "1"}
    assert host.failures == ["AssertionError over Do: the bench breaks over this"]
    assert set_aside(host) == [("@c", "Do")]


def test_a_client_is_refused_what_breaks_its_home(host: HostUnderTest) -> None:
    host.tell(BREAKS)
    host.run(0.1)
    assert ("@c", Refused("request", "this broker cannot handle it")) in host.sent


def test_a_message_over_a_link_that_breaks_a_broker_counts_as_handled(
    host: HostUnderTest,
) -> None:
    for number, message in ((1, do("persist:a=1")), (2, BREAKS), (3, do("persist:b=3"))):
        host.tell(Hop(number, 1, encode(message)), PEER)
        host.run(0.1)
    host.tell(Hop(2, 1, encode(BREAKS)), PEER)
    host.run(0.1)
    assert kept(host) == {"a": "1", "b": "3"}
    assert acknowledged(host) == [1, 2, 3, 2]
    assert set_aside(host) == [(PEER, "Do")]
    assert len(host.failures) == 1
    host.crash()
    host.restart()
    host.tell(Hop(2, 1, encode(BREAKS)), PEER)
    host.run(0.1)
    assert acknowledged(host)[-1] == 2
    assert len(host.failures) == 1


def test_the_turns_before_one_that_fails_are_durable_first(host: HostUnderTest) -> None:
    """What comes meanwhile waits, and is handled by the broker that is restored."""
    host.hold()
    host.tell(do("persist:a=1", "say:1"))
    host.tell(do("persist:b=1", "say:2"))
    host.tell(BREAKS)
    host.tell(do("persist:c=1", "say:3"))
    host.run(0.1)
    assert (said(host), kept(host), host.failures) == ([], {}, [])
    host.release()
    host.run(0.1)
    assert said(host) == ["1", "2", "3"]
    assert bench_of(host).values == kept(host) == {"a": "1", "b": "1", "c": "1"}
    assert bench_of(host).handled == [do("persist:c=1", "say:3")]


@pytest.mark.parametrize("held", [False, True])
def test_a_broker_whose_commit_fails_is_as_its_disk_has_it(host: HostUnderTest, held: bool) -> None:
    """In a commit of many turns only one is to blame; those behind it are done anew."""
    host.fail(lambda writes: "bench/bad" in writes)
    if held:
        host.hold()
    for steps in (("persist:a=1", "say:1"), ("say:2",), ("persist:bad=1", "persist:a=2", "say:3")):
        host.tell(do(*steps))
    host.tell(do("persist:b=1", "say:4"))
    host.tell(do("say:5"))
    host.release()
    host.run(0.1)
    assert said(host) == ["1", "2", "4", "5"]
    assert bench_of(host).values == kept(host) == {"a": "1", "b": "1"}
    assert host.failures == ["CommitFailed over Do: disk"]
    assert set_aside(host) == [("@c", "Do")]


def test_a_timer_that_fails_is_not_about_a_message(host: HostUnderTest) -> None:
    host.tell(do("persist:a=1", "later:1 fail:late"))
    host.run(2)
    assert host.failures == ["AssertionError over NoneType: the bench breaks over late"]
    assert set_aside(host) == []
    assert bench_of(host).values == {"a": "1"}
    host.tell(do("say:2"))
    host.run(0.1)
    assert said(host) == ["2"]


def test_three_failures_within_ten_minutes_stop_a_broker(host: HostUnderTest) -> None:
    for _ in range(2):
        host.tell(BREAKS)
        host.run(60)
    assert host.stopped == []
    host.tell(BREAKS)
    host.tell(do("say:nobody is here"))
    host.run(60)
    (reason,) = host.stopped
    assert "3 times within ten minutes" in reason
    assert "the bench breaks over this" in reason
    assert said(host) == []


def test_failures_that_are_rare_stop_nobody(host: HostUnderTest) -> None:
    for _ in range(4):
        host.tell(BREAKS)
        host.run(301)
    assert host.stopped == []
    assert len(host.failures) == 4


def test_a_disk_on_which_nothing_can_be_written_stops_a_broker(host: HostUnderTest) -> None:
    host.fail(lambda writes: True)
    host.tell(do("persist:a=1", "say:1"))
    host.run(60)
    assert len(host.stopped) == 1
    assert said(host) == []


def test_a_damaged_disk_is_noticed_when_a_broker_is_restored(host: HostUnderTest) -> None:
    host.tell(do("persist:a=1"))
    host.damage("bench/a", b"nonsense")
    host.tell(BREAKS)
    host.run(0.1)
    (reason,) = host.stopped
    assert "'bench/a' cannot be read" in reason


def test_a_broker_that_cannot_start_is_stopped(host: HostUnderTest) -> None:
    host.tell(do("persist:broken=yes"))
    host.tell(BREAKS)
    host.run(60)
    assert len(host.stopped) == 1
    assert "the bench cannot start" in host.stopped[0]


def test_answers_to_a_broker_that_failed_do_not_reach_the_next_one(host: HostUnderTest) -> None:
    """Its tickets are its own; what the next one asks for is answered by itself."""
    host.tell(do("persist:wanted=b/b", "convert:b/b"))
    host.hold()
    host.tell(do("persist:a=1"))
    host.tell(BREAKS)
    host.tell(Converted(1, Blob.imagined("z/z", 1, "z")), HOST)
    host.release()
    host.run(10)
    assert said(host) == ["b/b"]


def test_what_its_host_asks_in_vain_is_only_reported(host: HostUnderTest) -> None:
    host.tell(BREAKS, HOST)
    host.run(0.1)
    assert set_aside(host) == [("!", "Do")]
    assert host.stopped == []
