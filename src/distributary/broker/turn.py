"""One turn of a broker: the time, and the effects that come of it."""

from __future__ import annotations

from distributary.broker.addresses import Address
from distributary.broker.effects import Effect, Erase, Persist, Report, Send, Spend

__all__ = ["Turn"]


class Turn:
    """What happens between a message and the effects that answer it.

    Attributes
    ----------
    now_ns
        The broker's own clock, which may be off from those of others.
    effects
        What the host is asked to do, in order.
    """

    __slots__ = ("effects", "now_ns")

    def __init__(self, now_ns: int) -> None:
        self.now_ns = now_ns
        self.effects: list[Effect] = []

    def send(self, to: Address, message: object) -> None:
        """Send a message that may get lost; `Links.send` is for those that may not."""
        self.effects.append(Send(to, message))

    def persist(self, key: str, record: object) -> None:
        """Keep a record under a key before anything that follows leaves the broker."""
        self.effects.append(Persist(key, record))

    def erase(self, key: str) -> None:
        """Forget what is kept under a key."""
        self.effects.append(Erase(key))

    def spend(self, work: str) -> None:
        """Take processor time."""
        self.effects.append(Spend(work))

    def report(self, record: object) -> None:
        """Tell whoever watches."""
        self.effects.append(Report(record))
