"""Inbox: which messages of others were handled, which only pass, and how all are acknowledged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from distributary.broker.encoding import wire
from distributary.broker.host import Turn
from distributary.broker.links.messages import Acknowledgement, Gathered, HopAck
from distributary.broker.settings import ns
from distributary.broker.timers import Retention

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = [
    "GATHERED_SINCE",
    "Deduplication",
    "DeduplicationRecord",
    "Gathering",
    "Passage",
    "Passages",
]


@wire(531)
@dataclass(frozen=True, slots=True)
class DeduplicationRecord:
    """What a broker keeps of `Deduplication`."""

    floor: int
    above: tuple[int, ...]


_NOTHING: frozenset[int] = frozenset()


class Deduplication:
    """Which messages of one peer have been handled: all up to a number, and some above it.

    The peer says from which number on it may still send, and sends nothing that is far above
    that, so there are never many above.
    """

    __slots__ = ("_above", "_floor")

    def __init__(self, floor: int = 0, above: tuple[int, ...] = ()) -> None:
        self._floor = floor
        self._above = frozenset(above) if above else _NOTHING

    def __contains__(self, number: int) -> bool:
        return number <= self._floor or number in self._above

    def add(self, number: int, *, lowest: int) -> None:
        """Note that a message has been handled, and that nothing below `lowest` will come."""
        floor = lowest - 1 if lowest > self._floor else self._floor
        if not self._above and number <= floor + 1:
            self._floor = number if number > floor else floor
            return
        above = {*self._above, number}
        while floor + 1 in above:
            floor += 1
        self._floor = floor
        self._above = frozenset(one for one in above if one > floor) or _NOTHING

    def record(self) -> DeduplicationRecord:
        """Return what is to be kept."""
        return DeduplicationRecord(self._floor, tuple(sorted(self._above)))


# Messages that a broker only hands on, and does not store.
#
# Content passes brokers that have nothing to do with it. Were each of them to write it to its disk
# before it acknowledges, a publication would be written once for every hop. So such a broker
# acknowledges a message when all those have whom it has handed it on to: an acknowledgement says
# that somebody from here on has stored it. What follows from that:
#
# - A broker that crashes has lost what was passing. Nobody had heard that it arrived, so that it
#   is sent again, and handed on again, under other numbers. Those further on may get it twice, and
#   tell by what is in it that they had it: only such messages pass.
# - While a message is passing it comes again if the way is long. It is not handed on again, as the
#   links from here on do that themselves, and not acknowledged either. Who sends it waits longer
#   where there are more hops to go.
# - When the next broker goes down, a message to the root of a key takes another way, still for the
#   one that came. Content does not: the root of its item hears of it too, and plans around it. Then
#   nothing is left to wait for, and the message is acknowledged. To keep it until that broker is
#   back would fill the window of the link on which it came, for a whole outage, for nothing.
# - No message waits for room in a window while another waits for it. Three brokers could else wait
#   for each other in a circle, each with a full window towards the next. What cannot leave at once
#   is stored, and acknowledged, like any other. So is what passes a broker for the second time, as
#   brokers do not agree on the way.
@dataclass(eq=False, slots=True)
class Passage:
    """A message that passes.

    Attributes
    ----------
    sender, number, sent_ns, lowest
        As in its `Hop`.
    came_ns
        When it came first.
    left
        To how many it was handed on who have not acknowledged it.
    """

    sender: str
    number: int
    sent_ns: int
    lowest: int
    came_ns: int
    left: int = 0


class Passages:
    """The messages that pass one broker."""

    def __init__(self) -> None:
        self._passing: dict[tuple[str, int], Passage] = {}

    def __len__(self) -> int:
        return len(self._passing)

    def add(self, passage: Passage) -> None:
        """Note that a message is passing."""
        self._passing[passage.sender, passage.number] = passage

    def __contains__(self, sending: tuple[str, int]) -> bool:
        """Whether the message of a sender with a number is passing.

        That it comes again changes nothing. It was the first sending that arrived, and its
        sender learns by that how long the way is.
        """
        return sending in self._passing

    def is_over(self, passage: Passage) -> bool:
        """Note that one more has a message; return whether that was the last."""
        passage.left -= 1
        if passage.left:
            return False
        return self._passing.pop((passage.sender, passage.number), None) is not None


GATHERED_SINCE = 2
"""The version with which it came; before, each left alone."""

# More does not wait: a peer's window must not be used up by what it could have heard of.
_ACKNOWLEDGEMENTS_MAX = 64
_BYTES_MAX = 64 * 2**10
# Who gets them handles all in one turn, and what it does for each takes longer than to read it.
_MESSAGES_MAX = 128


class _Waiting:
    """What waits for one peer."""

    __slots__ = ("acknowledgements", "messages", "size_bytes")

    def __init__(self) -> None:
        self.acknowledgements: list[tuple[int, int, int]] = []
        self.messages: list[tuple[object, bytes]] = []
        self.size_bytes = 0


class Gathering:
    """What waits at one broker, by peer.

    Acknowledgements, and what brokers tell each other about many items a second, are small.
    Each by itself would cost as much as the content that it is about. So they wait for up to
    `gather_s`, and leave together. Nobody waits for them so urgently: a message is sent again
    after half a second at the earliest. What is lost of them is asked for again, like
    everything that is not sent over a link.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._wait_ns = ns(core.settings.links.gather_s)
        self._waiting: dict[str, _Waiting] = {}
        self._leaving = Retention(core.timers, self._leave, tick_ns=1)

    def __len__(self) -> int:
        return len(self._waiting)

    def acknowledge(self, peer: str, number: int, sent_ns: int, came_ns: int, turn: Turn) -> None:
        """Tell a peer soon that a message has arrived."""
        if not self._waits():
            turn.send(peer, HopAck(number, sent_ns))
            return
        waiting = self._waiting_for(peer, turn)
        waiting.acknowledgements.append((number, sent_ns, came_ns))
        if len(waiting.acknowledgements) >= _ACKNOWLEDGEMENTS_MAX:
            self.flush(peer, turn)

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
        waiting = self._waiting_for(peer, turn)
        waiting.messages.append((message, encoded))
        waiting.size_bytes += len(encoded)
        if waiting.size_bytes >= _BYTES_MAX or len(waiting.messages) >= _MESSAGES_MAX:
            self.flush(peer, turn)

    def _waiting_for(self, peer: str, turn: Turn) -> _Waiting:
        waiting = self._waiting.get(peer)
        if waiting is None:
            waiting = self._waiting[peer] = _Waiting()
            self._leaving.keep(peer, turn.now_ns + self._wait_ns)
        return waiting

    def flush(self, peer: str, turn: Turn) -> None:
        """Wait no longer with what is for a peer."""
        waiting = self._waiting.pop(peer, None)
        if waiting is None:
            return
        arrived, messages = waiting.acknowledgements, waiting.messages
        # Somebody who knows less may have come meanwhile.
        if self._waits() and (arrived or len(messages) > 1):
            now_ns = turn.now_ns
            acknowledgements = [
                Acknowledgement(number, sent_ns, now_ns - came_ns)
                for number, sent_ns, came_ns in arrived
            ]
            encoded = tuple([data for _, data in messages])
            turn.send(peer, Gathered(tuple(acknowledgements), encoded))
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
