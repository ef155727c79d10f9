"""Timers: what a broker wants to do later, how long it or others wait, and what it forgets in time.

Timers are volatile. A broker that is restored sets them anew from what it kept.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from distributary.broker.encoding import encodable
from distributary.broker.host import Persist, Turn

__all__ = [
    "PORTION",
    "Backlog",
    "Backoff",
    "Clock",
    "ClockRecord",
    "Obstacle",
    "Pacing",
    "Retention",
    "RoundTrip",
    "Timer",
    "Timers",
]


# The clock: the time that a broker goes by, which never goes back.
#
# A host gives the time of its wall clock. That may be set back, and a broker may be restored by a
# host whose clock is behind the one before; but what a broker has numbered, promised or forgotten
# by its time must not come to lie in the future. So where the wall clock is behind, the broker's
# time goes on at half its pace until they meet: it is slewed. A clock that stands still until then
# would do for order, but nothing would ever be due meanwhile: no ping, no retry.
#
# A wall clock that is set forward is followed at once. Nobody can tell that from a machine that was
# asleep.


_SLOWNESS = 2
# One that is slow may begin below 0.
_AT_ONCE = -(2**63)


@encodable(640)
@dataclass(frozen=True, slots=True)
class ClockRecord:
    """A time that has passed, as a broker keeps it."""

    floor_ns: int


class Clock:
    """The time of one broker.

    Parameters
    ----------
    period_ns
        How far the time may be ahead of what is kept of it. What a restored broker does not
        know of is at most that, and only if the wall clock has gone back as well.

    Attributes
    ----------
    due_ns
        From when on it is to be kept.
    slewed_since_ns
        Since when it is slewed, by the wall clock and by itself; None while it is not.
    """

    def __init__(self, period_ns: int) -> None:
        self._period_ns = period_ns
        self._own_ns = 0
        self._wall_ns: int | None = None
        self.due_ns = _AT_ONCE
        self.slewed_since_ns: tuple[int, int] | None = None

    def restore(self, record: ClockRecord) -> None:
        """Begin no earlier than a life before."""
        self._own_ns = record.floor_ns
        self.due_ns = record.floor_ns + self._period_ns

    def read(self, wall_ns: int) -> int:
        """Return the own time when a wall clock shows another."""
        if self.slewed_since_ns is None and wall_ns >= self._own_ns:
            # As nearly always: it goes on.
            self._own_ns = self._wall_ns = wall_ns
            return wall_ns
        set_back = self._wall_ns is None or wall_ns < self._wall_ns
        if set_back and wall_ns < self._own_ns:
            self.slewed_since_ns = (wall_ns, self._own_ns)
        slewed_ns = 0
        if self.slewed_since_ns is not None:
            since_wall_ns, since_own_ns = self.slewed_since_ns
            slewed_ns = since_own_ns + (wall_ns - since_wall_ns) // _SLOWNESS
        if wall_ns >= slewed_ns:
            self.slewed_since_ns = None
        self._own_ns = max(wall_ns, slewed_ns)
        self._wall_ns = wall_ns
        return self._own_ns

    def wall_ns_at(self, own_ns: int) -> int:
        """Return what the wall clock will show at an own time, as far as it goes on as it does."""
        if self.slewed_since_ns is None:
            return own_ns
        since_wall_ns, since_own_ns = self.slewed_since_ns
        return min(own_ns, since_wall_ns + _SLOWNESS * (own_ns - since_own_ns))

    def keep(self, turn: Turn) -> None:
        """Keep the time now and then, in turns that keep something anyhow."""
        if turn.now_ns < self.due_ns:
            return
        for effect in turn.effects:
            if type(effect) is Persist:
                self.due_ns = turn.now_ns + self._period_ns
                turn.persist("membership/clock", ClockRecord(turn.now_ns))
                return


# So many that are cancelled do not matter.
_CANCELLED_MIN = 1_000


# A turn does not do more than this, so that it does not take long: what a timer calls may plan and
# send an item, and what is forgotten is erased.
_CALLS_MAX = 32
_FORGOTTEN_MAX = 256

# What is kept for a time is kept until the end of such a span.
_TICK_NS = 50_000_000


class Timer:
    """One thing to be done at some time, unless it is cancelled."""

    __slots__ = ("_timers", "arguments", "at_ns", "call")

    def __init__(
        self,
        timers: Timers,
        at_ns: int,
        call: Callable[..., None],
        arguments: tuple[Any, ...],
    ) -> None:
        self._timers = timers
        self.at_ns = at_ns
        self.call: Callable[..., None] | None = call
        self.arguments = arguments

    def cancel(self) -> None:
        """Do nothing when the time comes."""
        if self.call is not None:
            self.call = None
            self.arguments = ()
            self._timers.cancelled()


class Timers:
    """All that one broker wants to do later, earliest first, then in the order it was set."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
        self._count = 0
        self._cancelled = 0

    def cancelled(self) -> None:
        """Note that one is cancelled; when most are, forget them.

        Some would stay for days otherwise. To look for each at once would take longer than all
        the rest that is done with it.
        """
        self._cancelled += 1
        if self._cancelled > _CANCELLED_MIN and self._cancelled > len(self._heap) // 2:
            self._heap[:] = [entry for entry in self._heap if entry[2].call is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def at(self, at_ns: int, call: Callable[..., None], *arguments: Any) -> Timer:
        """Have `call(turn, *arguments)` called at a time."""
        timer = Timer(self, at_ns, call, arguments)
        self._count += 1
        heapq.heappush(self._heap, (at_ns, self._count, timer))
        return timer

    def next_ns(self) -> int | None:
        """Return when there is something to do next."""
        heap = self._heap
        while heap and heap[0][2].call is None:
            heapq.heappop(heap)
            self._cancelled -= 1
        return heap[0][0] if heap else None

    def run(self, turn: Turn) -> bool:
        """Do what is due, so much of it that a turn does not take long; the rest is due next.

        Return whether there was anything.
        """
        heap = self._heap
        left = _CALLS_MAX
        while left and heap and heap[0][0] <= turn.now_ns:
            timer = heapq.heappop(heap)[2]
            if timer.call is None:
                self._cancelled -= 1
                continue
            left -= 1
            call, timer.call = timer.call, None
            call(turn, *timer.arguments)
        return left < _CALLS_MAX


class Backoff:
    """How long to wait for an answer: twice as long after every attempt, up to a limit.

    Parameters
    ----------
    first_ns, longest_ns
        How long after the first attempt, and at most.
    """

    __slots__ = ("first_ns", "longest_ns")

    def __init__(self, first_ns: int, longest_ns: int) -> None:
        self.first_ns = first_ns
        self.longest_ns = longest_ns

    def after(self, attempts: int) -> int:
        """Return how long to wait when so many attempts before this one were in vain."""
        doubled = self.first_ns << (attempts if attempts < 32 else 32)
        return doubled if doubled < self.longest_ns else self.longest_ns


_Key = TypeVar("_Key")


class Retention(Generic[_Key]):
    """Keys with the time at which each is forgotten; one timer serves all of them.

    Parameters
    ----------
    forget
        Called with `(key, turn)` when the time has come, or a little later.
    tick_ns
        At most so much later: what came one after the other is forgotten together, in one turn.
    wanted
        Whether there is still something to be done about a key; unless given, there always is.
        The broker is not woken for keys of which this is no longer so.
    """

    def __init__(
        self,
        timers: Timers,
        forget: Callable[[_Key, Turn], None],
        *,
        tick_ns: int = _TICK_NS,
        wanted: Callable[[_Key], bool] | None = None,
    ) -> None:
        self._tick_ns = tick_ns
        self._wanted = wanted
        self._timers = timers
        self._forget = forget
        self._heap: list[tuple[int, int, _Key]] = []
        self._count = 0
        self._timer: Timer | None = None

    def keep(self, key: _Key, until_ns: int) -> None:
        """Have a key forgotten at a time; one that is kept twice is forgotten twice."""
        self._count += 1
        heapq.heappush(self._heap, (until_ns, self._count, key))
        # Most are kept for as long as others, and so behind them.
        if self._timer is None or until_ns < self._timer.at_ns:
            self._wake_at(until_ns)

    def keep_all(self, keys: Iterable[_Key], until_ns: int) -> None:
        """Have many keys forgotten at the same time, in order."""
        before = self._count
        for key in keys:
            self._count += 1
            self._heap.append((until_ns, self._count, key))
        if self._count > before:
            heapq.heapify(self._heap)
            self._wake_at(until_ns)

    def _wake_at(self, until_ns: int) -> None:
        at_ns = self._rounded(until_ns)
        if self._timer is None or at_ns < self._timer.at_ns:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._timers.at(at_ns, self._due)

    @property
    def next_ns(self) -> int | None:
        """When the next one is forgotten."""
        return self._heap[0][0] if self._heap else None

    def _due(self, turn: Turn) -> None:
        heap = self._heap
        left = _FORGOTTEN_MAX
        while left and heap and heap[0][0] <= turn.now_ns:
            left -= 1
            _, _, key = heapq.heappop(heap)
            self._forget(key, turn)
        self._timer = None
        if self._wanted is not None:
            while heap and not self._wanted(heap[0][2]):
                heapq.heappop(heap)
        if heap:
            # What is left over is forgotten in another turn, not later in this one.
            at_ns = max(self._rounded(heap[0][0]), turn.now_ns + 1)
            self._timer = self._timers.at(at_ns, self._due)

    def _rounded(self, until_ns: int) -> int:
        return -(-until_ns // self._tick_ns) * self._tick_ns


class Obstacle(NamedTuple):
    """Why something cannot be taken now, and when it should be possible.

    Attributes
    ----------
    line
        Those who wait for the same thing stand in one line.
    reason
        What clients are told.
    free_ns, gap_ns
        When there is room at the earliest, and how long it takes until there is for one more.
    """

    line: str
    reason: str
    free_ns: int
    gap_ns: int


class Pacing:
    """One line.

    Whoever is told the same time as all others finds the same crowd there. So they come one
    after the other, each when there should be room for it: a virtual line, of which nobody
    keeps the names.

    Parameters
    ----------
    shortest_ns, longest_ns
        How long anybody waits, at least and at most.
    """

    __slots__ = ("_last_ns", "longest_ns", "shortest_ns")

    def __init__(self, shortest_ns: int, longest_ns: int) -> None:
        self.shortest_ns = shortest_ns
        self.longest_ns = longest_ns
        self._last_ns = 0

    def bounded_ns(self, wait_ns: int) -> int:
        """Return a time to wait as anybody is told it."""
        return min(max(wait_ns, self.shortest_ns), self.longest_ns)

    def wait_ns(self, now_ns: int, *, free_ns: int, gap_ns: int, joins: bool = True) -> int:
        """Return how long the next one has to wait.

        Parameters
        ----------
        free_ns
            When there is room at the earliest.
        gap_ns
            How long it takes until there is room for one more.
        joins
            Whether it stands in line from now on.
        """
        due_ns = max(self._last_ns + gap_ns, free_ns)
        wait_ns = self.bounded_ns(due_ns - now_ns)
        if joins:
            self._last_ns = max(self._last_ns, now_ns + wait_ns)
        return wait_ns


class RoundTrip:
    """How long something takes, as Jacobson (1988) has it: its mean, and how far it is off."""

    __slots__ = ("_mean_ns", "_off_ns")

    def __init__(self) -> None:
        self._mean_ns = 0
        self._off_ns = 0

    def measure(self, taken_ns: int) -> None:
        """Note how long it took."""
        if self._mean_ns == 0:
            self._mean_ns, self._off_ns = taken_ns, taken_ns // 2
            return
        self._off_ns += (abs(taken_ns - self._mean_ns) - self._off_ns) // 4
        self._mean_ns += (taken_ns - self._mean_ns) // 8

    @property
    def timeout_ns(self) -> int:
        """After how long it should have been done."""
        return self._mean_ns + 4 * self._off_ns


PORTION = 32
"""How many things are done in one turn. To plan and send an item takes about a millisecond."""

_T = TypeVar("_T")


class Backlog:
    """Things to be done by one part of a broker, in order, a portion of them in each turn.

    While a broker is in a turn it does nothing else: it answers no ping, and what its clients
    send waits. A restart, or a broker that comes or is lost, may concern everything that is
    kept, so that such work is done some of it at a time, with turns for everybody else in
    between. A backlog is volatile: after a crash a broker finds in what it kept what is to be
    done.

    Whoever gives it something finds the first portion done at once, unless something else is
    waiting. What is done later must find out then whether it still makes sense.
    """

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._waiting: deque[tuple[Callable[[Any, Turn], None], deque[Any]]] = deque()
        self._armed = False

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __len__(self) -> int:
        return sum(len(things) for _, things in self._waiting)

    def each(
        self,
        call: Callable[[_T, Turn], None],
        things: Iterable[_T],
        turn: Turn,
        *,
        first: bool = False,
    ) -> None:
        """Have `call(thing, turn)` called for all things.

        Parameters
        ----------
        first
            Whether before all that waits: they belong to what is being done now, and whatever
            follows must find them done.
        """
        # As they are: to prepare each of some ten thousand would take longer than a turn may.
        waiting = deque(things)
        if waiting:
            put = self._waiting.appendleft if first else self._waiting.append
            put((call, waiting))
        if not self._armed:
            self._go_on(turn)

    def _go_on(self, turn: Turn) -> None:
        # Armed while it runs: what is given to it meanwhile waits for its turn.
        self._armed = True
        for _ in range(PORTION):
            if not self._waiting:
                break
            call, things = self._waiting[0]
            thing = things.popleft()
            if not things:
                self._waiting.popleft()
            call(thing, turn)
        self._armed = bool(self._waiting)
        if self._armed:
            # Later than now, so that it is in another turn.
            self._timers.at(turn.now_ns + 1, self._go_on)
