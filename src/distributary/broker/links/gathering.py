"""Gathering: what can wait for a moment, so that more goes with it in one message.

Acknowledgements, and what brokers tell each other about many items a second, are small. Each by
itself would cost as much as the content that it is about. So they wait for up to `gather_s`, and
leave together. Nobody waits for them so urgently: a message is sent again after half a second at
the earliest. What is lost of them is asked for again, like everything that is not sent over a
link.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from distributary.broker.effects import Turn
from distributary.broker.links.messages import Acknowledgement, Gathered, HopAck
from distributary.broker.settings import ns
from distributary.broker.timers import Retention

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["GATHERED_SINCE", "Gathering"]

GATHERED_SINCE = 2
"""The version with which it came; before, each left alone."""

# More does not wait: a peer's window must not be used up by what it could have heard of.
_ACKNOWLEDGEMENTS_MAX = 64
_BYTES_MAX = 64 * 2**10
# Who gets them handles all in one turn, and what it does for each takes longer than to read it.
_MESSAGES_MAX = 128


class Gathering:
    """What waits at one broker, by peer."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._wait_ns = ns(core.settings.links.gather_s)
        self._acknowledgements: dict[str, list[tuple[int, int, int]]] = {}
        self._messages: dict[str, list[tuple[object, bytes]]] = {}
        self._bytes: Counter[str] = Counter()
        self._leaving = Retention(core.timers, self._leave, tick_ns=1)

    def __len__(self) -> int:
        return len(self._acknowledgements) + len(self._messages)

    def acknowledge(self, peer: str, number: int, sent_ns: int, came_ns: int, turn: Turn) -> None:
        """Tell a peer soon that a message has arrived."""
        if not self._waits():
            turn.send(peer, HopAck(number, sent_ns))
            return
        waiting = self._acknowledgements.setdefault(peer, [])
        waiting.append((number, sent_ns, came_ns))
        if len(waiting) >= _ACKNOWLEDGEMENTS_MAX:
            self.flush(peer, turn)
        elif len(waiting) == 1 and peer not in self._messages:
            self._leaving.keep(peer, turn.now_ns + self._wait_ns)

    def add(self, peer: str, message: object, turn: Turn) -> None:
        """Tell a peer something soon, which is asked for again if it gets lost.

        What is too large for that, as it names thousands of registrations, goes over the link.
        """
        encoded = self._core.encoded(message)
        if len(encoded) > _BYTES_MAX:
            self._core.links.send(peer, message, turn)
            return
        if not self._waits():
            turn.send(peer, message)
            return
        waiting = self._messages.setdefault(peer, [])
        waiting.append((message, encoded))
        self._bytes[peer] += len(encoded)
        if self._bytes[peer] >= _BYTES_MAX or len(waiting) >= _MESSAGES_MAX:
            self.flush(peer, turn)
        elif len(waiting) == 1 and peer not in self._acknowledgements:
            self._leaving.keep(peer, turn.now_ns + self._wait_ns)

    def flush(self, peer: str, turn: Turn) -> None:
        """Wait no longer with what is for a peer."""
        arrived = self._acknowledgements.pop(peer, [])
        messages = self._messages.pop(peer, [])
        self._bytes.pop(peer, None)
        # Somebody who knows less may have come meanwhile.
        if self._waits() and (arrived or len(messages) > 1):
            acknowledgements = tuple(
                Acknowledgement(number, sent_ns, turn.now_ns - came_ns)
                for number, sent_ns, came_ns in arrived
            )
            turn.send(peer, Gathered(acknowledgements, tuple(data for _, data in messages)))
            return
        for number, sent_ns, _ in arrived:
            turn.send(peer, HopAck(number, sent_ns))
        for message, _ in messages:
            turn.send(peer, message)

    def _waits(self) -> bool:
        return self._wait_ns > 0 and self._core.membership.version >= GATHERED_SINCE

    def _leave(self, peer: str, turn: Turn) -> None:
        # One that came after the last were sent leaves a little early.
        self.flush(peer, turn)
