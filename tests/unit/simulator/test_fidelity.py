"""Loss of fidelity: exact intervals, and what is made of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.measured_loss import Copy, measured_loss

from distributary.content import Tolerance, Version
from distributary.simulator.checkers.fidelity import Fidelity, TolerancesCheck

THING = ("/q", "o")
WITHIN_ONE = Tolerance("/value", "absolute", 1.0)


def source(fidelity: Fidelity, sequence: int, value: float, now_ns: int) -> None:
    fidelity.changed(THING, sequence, {"/value": Version(value, sequence, now_ns)}, now_ns)


def test_time_outside_is_counted_from_the_change_to_the_copy() -> None:
    fidelity = Fidelity(100)
    source(fidelity, 1, 0.0, 0)
    fidelity.follow("f", THING, WITHIN_ONE)
    fidelity.copied("f", THING, 1, 0)
    source(fidelity, 2, 0.9, 10)
    source(fidelity, 3, 1.0, 20)
    fidelity.copied("f", THING, 3, 50)
    source(fidelity, 4, 2.5, 80)
    source(fidelity, 5, 1.5, 90)
    fidelity.finish(200)
    assert fidelity.intervals == [("f", THING, 20, 50), ("f", THING, 80, 90)]
    assert fidelity.series() == [(0.0, 0.4), (1e-7, 0.0)]
    assert fidelity.average() == pytest.approx(0.2)


def test_a_follower_counts_from_its_first_copy_to_its_end() -> None:
    fidelity = Fidelity(100)
    fidelity.follow("f", THING, WITHIN_ONE)
    source(fidelity, 1, 0.0, 0)
    source(fidelity, 2, 5.0, 10)
    assert [following.follower for following in fidelity.without_copy()] == ["f"]
    fidelity.copied("f", THING, 1, 50)
    fidelity.unfollow("f", 100)
    source(fidelity, 3, 9.0, 110)
    fidelity.finish(200)
    assert fidelity.series() == [(0.0, 1.0)]


def test_an_interval_is_split_between_the_windows_it_lies_in() -> None:
    fidelity = Fidelity(100)
    source(fidelity, 1, 0.0, 0)
    fidelity.follow("f", THING, WITHIN_ONE)
    fidelity.copied("f", THING, 1, 0)
    source(fidelity, 2, 5.0, 50)
    fidelity.copied("f", THING, 2, 225)
    fidelity.finish(300)
    assert [loss for _, loss in fidelity.series()] == [0.5, 1.0, 0.25]


def test_a_server_counts_once_however_many_objects_it_follows() -> None:
    """Pooling all copies, the one that is outside would count for a quarter."""
    fidelity = Fidelity(100)
    for subject in ("a", "b", "c"):
        thing = ("/q", subject)
        fidelity.changed(thing, 1, {"/value": Version(0.0, 1, 0)}, 0)
        fidelity.follow(f"many-{subject}", thing, WITHIN_ONE, server="many")
        fidelity.copied(f"many-{subject}", thing, 1, 0)
    source(fidelity, 1, 0.0, 0)
    fidelity.follow("one", THING, WITHIN_ONE)
    fidelity.copied("one", THING, 1, 0)
    source(fidelity, 2, 5.0, 0)
    fidelity.finish(200)
    assert fidelity.series() == [(0.0, 0.5), (1e-7, 0.5)]
    assert fidelity.average() == 0.5


def test_a_server_that_changes_its_tolerance_has_one_copy_all_the_time() -> None:
    fidelity = Fidelity(1000)
    source(fidelity, 1, 0.0, 0)
    fidelity.follow("f", THING, WITHIN_ONE, server="s")
    fidelity.copied("f", THING, 1, 0)
    source(fidelity, 2, 5.0, 50)
    fidelity.follow("f-2", THING, Tolerance("/value", "absolute", 10.0), server="s")
    fidelity.unfollow("f", 100)
    fidelity.copied("f-2", THING, 1, 100)
    fidelity.finish(400)
    assert fidelity.average() == pytest.approx(50 / 400)


COPIES = st.builds(
    Copy,
    server=st.sampled_from("abc"),
    subject=st.sampled_from("xyz"),
    begun=st.integers(0, 60),
    length=st.integers(1, 60),
    outside=st.frozensets(st.integers(0, 120)),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(COPIES, max_size=6, unique_by=lambda copy: (copy.server, copy.subject)),
    st.integers(1, 50),
)
def test_loss_is_averaged_over_the_objects_of_a_server_and_then_over_servers(
    copies: list[Copy], window: int
) -> None:
    fidelity = Fidelity(window)
    for at in range(130):
        for number, copy in enumerate(copies):
            name, thing = f"f{number}", (str(number), copy.subject)
            if at == 0:
                fidelity.follow(name, thing, WITHIN_ONE, server=copy.server)
            if at == copy.begun:
                fidelity.changed(thing, 1, {"/value": Version(0.0, 1, at)}, at)
                fidelity.copied(name, thing, 1, at)
            if copy.begun <= at < copy.begun + copy.length:
                value = 5.0 if at in copy.outside else 0.0
                fidelity.changed(thing, at + 2, {"/value": Version(value, at + 2, at)}, at)
            if at == copy.begun + copy.length:
                fidelity.unfollow(name, at)
    every = [measured_loss(copies, k * window, (k + 1) * window) for k in range(130)]
    expected = [(k * window / 1e9, float(loss)) for k, loss in enumerate(every) if loss is not None]
    series = fidelity.series()
    assert [at_s for at_s, _ in series] == [at_s for at_s, _ in expected]
    assert [loss for _, loss in series] == pytest.approx([loss for _, loss in expected])
    assert fidelity.average() == pytest.approx(float(measured_loss(copies, 0, 1000) or 0))


@pytest.mark.parametrize("without_delay", [True, False])
def test_a_copy_that_was_outside_for_a_while_is_wrong_only_where_nothing_takes_time(
    without_delay: bool,
) -> None:
    fidelity = Fidelity(100)
    checker = TolerancesCheck(fidelity, without_delay=without_delay)
    source(fidelity, 1, 0.0, 0)
    fidelity.follow("f", THING, WITHIN_ONE)
    fidelity.copied("f", THING, 1, 0)
    source(fidelity, 2, 5.0, 50)
    fidelity.copied("f", THING, 2, 60)
    checker.finish(100)
    assert len(checker.violations) == without_delay


def test_a_change_that_is_copied_in_the_same_instant_is_no_time_outside() -> None:
    fidelity = Fidelity(100)
    checker = TolerancesCheck(fidelity, without_delay=True)
    source(fidelity, 1, 0.0, 0)
    fidelity.follow("f", THING, WITHIN_ONE)
    fidelity.copied("f", THING, 1, 0)
    source(fidelity, 2, 5.0, 50)
    fidelity.copied("f", THING, 2, 50)
    checker.finish(100)
    assert checker.violations == []


def test_a_follower_that_stays_outside_or_has_no_copy_at_all_is_seen() -> None:
    fidelity = Fidelity(100)
    checker = TolerancesCheck(fidelity, without_delay=False)
    source(fidelity, 1, 0.0, 0)
    fidelity.follow("stale", THING, WITHIN_ONE)
    fidelity.follow("bare", THING, WITHIN_ONE)
    fidelity.copied("stale", THING, 1, 0)
    source(fidelity, 2, 5.0, 50)
    checker.finish(100)
    assert ["never got" in v.what for v in checker.violations] == [True, False]
    assert "stays so" in checker.violations[1].what
