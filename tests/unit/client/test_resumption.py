"""After a break nothing is handed out twice, and nothing is acknowledged before it is done."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributary.client.backoff import Backoff
from distributary.client.resumption import Resumption, delivery_number
from distributary.errors import PeerMisbehaved


@given(st.data())
def test_every_delivery_is_handed_out_once_with_breaks_at_any_time(data: st.DataObject) -> None:
    """A gateway sends again all that is not acknowledged; some of it was received before."""
    count = data.draw(st.integers(1, 20))
    progress = Resumption()
    handed: list[int] = []
    acknowledged = 0
    for _ in range(200):
        # A connection resumes after what is acknowledged, and some say more by beginning.
        if data.draw(st.booleans(), label="says what is done"):
            acknowledged = progress.done
        until = data.draw(st.integers(acknowledged, count), label="cut after")
        handed += filter(progress.is_new, range(acknowledged + 1, until + 1))
        done = data.draw(st.integers(progress.done, progress.received), label="done")
        progress.finish(done or None)
        assert acknowledged <= progress.done
        if progress.done == count:
            break
        if not data.draw(st.booleans(), label="go on"):
            break
    assert handed == list(range(1, progress.received + 1))


def test_nothing_is_told_that_is_not_done() -> None:
    progress = Resumption()
    assert [progress.is_new(number) for number in (1, 2, 3, 2, 3, 4)] == [
        True,
        True,
        True,
        False,
        False,
        True,
    ]
    assert progress.untold is None
    progress.finish(2)
    assert progress.untold == 2
    progress.was_told(2)
    assert progress.untold is None


def test_versions_of_streams_have_no_number_and_are_always_new() -> None:
    progress = Resumption()
    assert progress.is_new(5)
    assert progress.is_new(None)
    progress.finish(None)
    assert progress.untold is None


@pytest.mark.parametrize(("text", "number"), [("12", 12), ("", None), (None, None), ("0", 0)])
def test_the_number_of_a_delivery_is_read(text: str | None, number: int | None) -> None:
    assert delivery_number(text) == number


@pytest.mark.parametrize("text", ["-1", "1.5", "x", "٣", "9" * 19])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(PeerMisbehaved, match="not the number"):
        delivery_number(text)


def test_waits_grow_to_a_limit_and_begin_anew_after_a_success() -> None:
    backoff = Backoff(random.Random(4))
    waits = [backoff.wait_s() for _ in range(12)]
    assert 0.05 <= waits[0] <= 0.1
    assert 5.0 <= waits[-1] <= 10.0
    assert backoff.wait_s(told_s=30.0) == 30.0
    backoff.succeeded()
    assert backoff.wait_s() <= 0.1


def test_whoever_goes_on_with_a_subscription_has_acknowledged_what_was_before() -> None:
    progress = Resumption()
    assert progress.is_new(58)
    assert (progress.done, progress.untold) == (57, None)
    progress.finish(58)
    assert progress.untold == 58
