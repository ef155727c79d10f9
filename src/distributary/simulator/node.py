"""Nodes: one broker with its disk, its clock, its processor and its converter."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from distributary.broker.addresses import Address
from distributary.broker.broker import Broker
from distributary.broker.effects import Effect
from distributary.broker.encoding import VERSION, decode, encode
from distributary.simulator.conversions import Converter

__all__ = ["Job", "Node"]

Job: TypeAlias = int | tuple[Address, object]
"""What waits for a processor: a ticket, or a message with its sender."""


class Node:
    """One broker and all that it stands on; the broker is None while it is down.

    The processor does one thing at a time and takes jobs in the order in which they come.
    While it takes time over one, whatever else the broker wants done waits behind it:
    effects are carried out in order.

    Attributes
    ----------
    version
        Of the broker, which may be the one before.
    journal
        The disk: records by key.
    skew_ns
        By how much its clock is ahead.
    life
        How often it has gone down.
    service_ns
        The mean time of each kind of work, by its name.
    measured_ns
        (count, sum) of the times that each kind of work has taken in the present window.
    message_ns
        The mean time of taking a message; with 0 messages do not wait for the processor.
    slowness
        A factor on all times.
    node_cost
        A factor on the time of conversions.
    tear
        What to do when the broker goes down in the middle of its next turn; None when it
        is not to.
    converter
        What converts beside the broker.
    """

    def __init__(self, identity: str, version: int = VERSION) -> None:
        self.identity = identity
        self.version = version
        self.broker: Broker | None = None
        self.journal: dict[str, object] = {}
        self.skew_ns = 0
        self.life = 0
        self.wake_ns: int | None = None
        self.service_ns: dict[str, float] = {}
        self.measured_ns: dict[str, tuple[int, int]] = {}
        self._mean_s: dict[str, float] = {}
        self.message_ns = 0.0
        self.slowness = 1.0
        self.node_cost = 1.0
        self.tear: Callable[[], None] | None = None
        self.busy = False
        self.waiting_effects: deque[Effect] = deque()
        self.jobs: deque[Job] = deque()
        self.converter = Converter()

    def clock_ns(self, now_ns: int) -> int:
        """Return what the clock of its host shows."""
        return now_ns + self.skew_ns

    def upgrade(self) -> None:
        """Have the present version read what the one before has written."""
        written = {key: encode(record, self.version) for key, record in self.journal.items()}
        self.journal = {key: decode(data) for key, data in written.items()}
        self.version = VERSION

    def measured_s(self, work: str) -> float:
        """Return the mean time of a kind of work in the window that ends now.

        Where nothing of the kind was done, it is that of the last window in which it was.
        """
        count, sum_ns = self.measured_ns.pop(work, (0, 0))
        if count:
            self._mean_s[work] = sum_ns / count / 1e9
        return self._mean_s.get(work, 0.0)

    def go_down(self, now_ns: int) -> None:
        """Lose everything but the disk."""
        self.broker = None
        self.life += 1
        self.wake_ns = None
        self.tear = None
        self.busy = False
        self.waiting_effects.clear()
        self.jobs.clear()
        self.converter.abandon(now_ns=now_ns)
