"""What a tenant may take of a gateway, against counting it up slowly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributary.network.gateway.limits import LimitsTable, Rate, TenantLimiter
from distributary.network.gateway.problems import Problem


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@given(
    per_s=st.integers(1, 100),
    burst=st.integers(1, 100),
    steps=st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 150)), max_size=60),
)
def test_a_rate_is_never_exceeded_over_any_time(
    per_s: int, burst: int, steps: list[tuple[int, int]]
) -> None:
    """Between any two moments at most burst + rate * time are taken, besides the last batch."""
    rate = Rate(per_s, burst)
    now = 0.0
    taken: list[tuple[float, int]] = []
    for wait_ms, count in steps:
        now += wait_ms / 1000
        wait_s = rate.wait_s(count, now)
        if wait_s == 0:
            taken.append((now, count))
        else:
            # Who waits as long as it is told gets it.
            assert rate.wait_s(count, now + wait_s + 1e-6) == 0
            taken.append((now + wait_s, count))
            now += wait_s + 1e-6
    for first in range(len(taken)):
        total = 0
        for at, count in taken[first:]:
            assert total <= burst + per_s * (at - taken[first][0] + 1e-3) + 1e-6
            total += count


def test_one_tenant_takes_nothing_of_another() -> None:
    clock = Clock()
    limits = TenantLimiter(LimitsTable(events_per_s=10, stored_mib=1), clock)
    limits.take_events("a", 15)
    limits.take_bytes("a", 2**20)
    with pytest.raises(Problem, match="events_per_s") as caught:
        limits.take_events("a", 1)
    assert caught.value.status == 429
    assert caught.value.retry_s == pytest.approx(0.1)
    with pytest.raises(Problem, match="stored_mib"):
        limits.take_bytes("a", 1)
    limits.take_events("b", 15)
    limits.take_bytes("b", 2**20)
    clock.now = 1.0
    limits.take_events("a", 10)


def test_a_batch_larger_than_ever_fits_comes_through_and_is_paid_for() -> None:
    clock = Clock()
    limits = TenantLimiter(LimitsTable(events_per_s=10), clock)
    limits.take_events("", 1000)
    clock.now = 90.0
    with pytest.raises(Problem):
        limits.take_events("", 1)
    clock.now = 100.0
    limits.take_events("", 1)


def tried(limits: TenantLimiter, count: int) -> float | None:
    """When to come again, or None if some bytes are taken."""
    try:
        limits.take_bytes("t", count)
    except Problem as problem:
        return problem.retry_s
    return None


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2**19)), max_size=80))
def test_bytes_count_for_as_long_as_they_are_kept(steps: list[tuple[int, int]]) -> None:
    clock = Clock()
    limits = TenantLimiter(LimitsTable(stored_mib=1, stored_s=100), clock)
    taken: list[tuple[float, int]] = []
    for wait_s, count in steps:
        clock.now += wait_s
        recent = sum(size for at, size in taken if at > clock.now - 100)
        # What is counted together may count a little less long, never longer.
        almost = sum(size for at, size in taken if at > clock.now - 100 + 100 / 60)
        retry_s = tried(limits, count)
        if retry_s is None:
            taken.append((clock.now, count))
            assert almost + count <= 2**20
        else:
            assert recent + count > 2**20
            assert 0 < retry_s <= 100


def test_subscriptions_are_counted_by_what_there_is_and_not_each_time() -> None:
    clock = Clock()
    limits = TenantLimiter(LimitsTable(subscriptions=3), clock)
    there, counts = [1], []

    async def held() -> AsyncIterator[object]:
        counts.append(len(there))
        for one in there:
            yield one

    async def take() -> None:
        await limits.take_subscription("t", held)
        there.append(1)

    async def run() -> None:
        await take()
        await take()
        for _ in range(2):
            with pytest.raises(Problem, match="limit of 3 subscriptions"):
                await take()
        assert counts == [1]
        there.pop()
        clock.now += 3.0
        await take()
        assert counts == [1, 2]
        # Others may have made some elsewhere.
        limits.forget("t")
        with pytest.raises(Problem):
            await take()

    asyncio.run(run())


def test_one_counts_subscriptions_for_all_who_come_meanwhile() -> None:
    """A thousand are counted one by one; a hundred who do so would keep each other waiting."""
    clock = Clock()
    limits = TenantLimiter(LimitsTable(subscriptions=1_000), clock)
    counts = 0

    async def held() -> AsyncIterator[object]:
        nonlocal counts
        counts += 1
        for one in range(900):
            await asyncio.sleep(0)
            yield one

    async def run() -> None:
        await asyncio.gather(*(limits.take_subscription("t", held) for _ in range(50)))
        assert counts == 1
        # Those were not among the ones that were counted.
        for _ in range(50):
            await limits.take_subscription("t", held)
        with pytest.raises(Problem, match="limit of 1,000 subscriptions"):
            await limits.take_subscription("t", held)

    asyncio.run(run())
