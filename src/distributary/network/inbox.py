"""The inbox: what has arrived and waits for the broker.

Membership has priority. A broker with a thousand messages to handle is alive, and
says so when it is asked, not a second later; and what it measures of others is the way to them,
not the length of its own queue.
"""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

from distributary.broker.addresses import HOST, Address
from distributary.broker.driver import PRIORITY_KINDS
from distributary.broker.encoding import kind_of

__all__ = ["Inbox", "Waiting"]

Waiting: TypeAlias = tuple[Address, object]
"""Who said something, and what: bytes from elsewhere, a message of the host, or a ticket."""

# Brokers and clients say again what is lost here.
_MESSAGES_MAX = 1 << 17
_BYTES_MAX = 256 * 2**20


class Inbox:
    """What waits for a broker.

    Attributes
    ----------
    lost
        How many messages there was no room for.
    """

    def __init__(self) -> None:
        self.lost = 0
        self._priority: deque[Waiting] = deque()
        self._queue: deque[Waiting] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._priority) + len(self._queue)

    def put(self, sender: Address, data: bytes) -> None:
        """Take what has come from elsewhere, if there is room."""
        if kind_of(data) in PRIORITY_KINDS:
            self._priority.append((sender, data))
        elif len(self._queue) >= _MESSAGES_MAX or self._bytes > _BYTES_MAX:
            self.lost += 1
        else:
            self._bytes += len(data)
            self._queue.append((sender, data))

    def put_own(self, message: object) -> None:
        """Take what the host itself has to say."""
        self._queue.append((HOST, message))

    def take(self) -> Waiting:
        """Return what comes next."""
        if self._priority:
            return self._priority.popleft()
        waiting = self._queue.popleft()
        if isinstance(waiting[1], bytes):
            self._bytes -= len(waiting[1])
        return waiting
