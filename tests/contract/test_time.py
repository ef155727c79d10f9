"""Time, timers, the processor, conversions and the end."""

from __future__ import annotations

from tests.contract.bench import Said, do
from tests.contract.hosts import HostUnderTest, said

from distributary.broker.host import Leave


def clocks(host: HostUnderTest) -> list[int]:
    return [message.clock_ns for _, message in host.sent if isinstance(message, Said)]


def test_timers_never_come_early(host: HostUnderTest) -> None:
    host.tell(do("say:now", "later:0.5 say:b", "later:0.25 say:a", "later:0.75 say:c"))
    host.run(0.2)
    assert said(host) == ["now"]
    host.run(2)
    assert said(host) == ["now", "a", "b", "c"]
    now, *later = clocks(host)
    for at, asked in zip(later, (0.25, 0.5, 0.75), strict=True):
        assert at - now >= asked * 1e9


def test_timers_come_early_neither_when_the_clock_goes_back(host: HostUnderTest) -> None:
    host.run(5)
    host.tell(do("say:now", "later:1 say:a"))
    host.turn_clock_back(3)
    host.run(10)
    now, later = clocks(host)
    assert later - now >= 1e9


def test_time_never_goes_back_not_even_over_a_restart(host: HostUnderTest) -> None:
    """A broker keeps the time together with what else it keeps."""
    host.run(5)
    host.tell(do("persist:a=1", "say:1"))
    host.turn_clock_back(3)
    host.tell(do("persist:a=2", "say:2"))
    host.crash()
    host.restart()
    host.tell(do("say:3"))
    host.run(10)
    host.tell(do("say:4"))
    host.run(0.1)
    times = clocks(host)
    assert times == sorted(times)
    assert len(times) == 4
    assert times[3] > times[2]


def test_timers_are_forgotten_by_a_crash(host: HostUnderTest) -> None:
    host.tell(do("later:1 say:late"))
    host.crash()
    host.restart()
    host.run(5)
    assert said(host) == []


def test_a_ticket_is_served_after_what_was_asked_before(host: HostUnderTest) -> None:
    host.tell(do("serve:say:2", "say:1", "serve:say:3"))
    host.run(0.1)
    assert said(host) == ["1", "2", "3"]


def test_a_conversion_is_answered_with_what_came_of_it_or_why_nothing_did(
    host: HostUnderTest,
) -> None:
    host.tell(do("convert:b/b"))
    host.run(10)
    assert said(host) == ["b/b"]
    host.tell(do("convert:z/z"))
    host.run(10)
    assert len(said(host)) == 2
    assert "z/z" in said(host)[1]


def test_a_conversion_that_a_crash_has_forgotten_is_answered_when_it_is_asked_for_again(
    host: HostUnderTest,
) -> None:
    host.tell(do("persist:wanted=b/b", "convert:b/b"))
    host.run(0.1)
    host.crash()
    host.restart()
    host.run(10)
    assert said(host) == ["b/b"]


def test_a_conversion_is_asked_for_again_after_a_failure_and_answered_once_it_is(
    host: HostUnderTest,
) -> None:
    host.tell(do("persist:wanted=b/b", "convert:b/b"))
    host.tell(do("fail:this"))
    host.run(10)
    assert said(host) == ["b/b"]


def test_a_host_hears_when_a_broker_has_left(host: HostUnderTest) -> None:
    host.run(1)
    assert host.left == 0
    host.tell(Leave(), "!")
    host.run(1)
    assert host.left == 1
