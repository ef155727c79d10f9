"""What is to happen is given out by time, and in the order in which it was entered."""

from __future__ import annotations

import heapq

from hypothesis import given
from hypothesis import strategies as st

from distributary.simulator.agenda import Agenda

# Nanoseconds: within a span of time, about its end, and far beyond.
TIMES = st.one_of(
    st.integers(0, 50),
    st.integers(2**20 - 3, 2**20 + 3),
    st.integers(0, 2**34),
)


class HeapOfAll:
    """What an agenda stands for: one heap of everything."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []
        self._count = 0

    def add(self, at_ns: int) -> None:
        self._count += 1
        heapq.heappush(self._heap, (at_ns, self._count))

    def next_until(self, end_ns: int) -> tuple[int, int] | None:
        return heapq.heappop(self._heap) if self._heap and self._heap[0][0] <= end_ns else None


@given(
    first=st.lists(TIMES, max_size=20),
    stops=st.lists(TIMES, min_size=1, max_size=6),
    more=st.lists(st.lists(TIMES, max_size=3), max_size=40),
)
def test_an_agenda_is_a_heap_of_all_that_is_to_happen(
    first: list[int], stops: list[int], more: list[list[int]]
) -> None:
    """Also of what is entered while others are given out, and between two stretches of time."""
    agenda, twin = Agenda(), HeapOfAll()
    following = iter(more)
    now_ns = 0

    def enter(after_ns: int, waits_ns: list[int]) -> None:
        for wait_ns in waits_ns:
            agenda.add(after_ns + wait_ns, print, ())
            twin.add(after_ns + wait_ns)

    enter(0, first)
    for stop in stops:
        end_ns = now_ns + stop
        for at_ns, number, _, _ in agenda.until(end_ns):
            assert (at_ns, number) == twin.next_until(end_ns)
            enter(at_ns, next(following, []))
        assert twin.next_until(end_ns) is None
        now_ns = end_ns
        enter(now_ns, next(following, []))
