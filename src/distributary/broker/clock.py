"""The clock: the time that a broker goes by, which never goes back.

A host gives the time of its wall clock. That may be set back, and a broker may be restored by a
host whose clock is behind the one before; but what a broker has numbered, promised or forgotten by
its time must not come to lie in the future. So where the wall clock is behind, the broker's time
goes on at half its pace until they meet: it is slewed. A clock that stands still until then
would do for order, but nothing would ever be due meanwhile: no ping, no retry.

A wall clock that is set forward is followed at once. Nobody can tell that from a machine that was
asleep.
"""

from __future__ import annotations

from dataclasses import dataclass

from distributary.broker.effects import Persist, Turn
from distributary.broker.encoding import wire

__all__ = ["Clock", "ClockRecord"]

_SLOWNESS = 2
# One that is slow may begin below 0.
_AT_ONCE = -(2**63)


@wire(640)
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
