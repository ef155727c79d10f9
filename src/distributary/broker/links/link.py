"""The two ends of a link: the inbox of what a peer has sent, the outbox of what it is sent.

The inbox knows which messages were handled, which only pass, and how all are acknowledged.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from distributary.broker.core import Core, Transitions
from distributary.broker.encoding import encodable
from distributary.broker.host import Turn
from distributary.broker.links.messages import Acknowledgement, Gathered, HopAck, Parcel
from distributary.broker.membership.roster import MemberStatus
from distributary.broker.settings import ns
from distributary.broker.timers import Retention, Timer, Timers

__all__ = [
    "GATHERED_SINCE",
    "LINK",
    "SPAN",
    "Deduplication",
    "DeduplicationRecord",
    "Envelope",
    "Gathering",
    "Kept",
    "LinkEvent",
    "LinkState",
    "Outbox",
    "Passage",
    "Passages",
    "Retries",
    "link_state",
]


@encodable(531)
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
# - No message waits for room in a window while another waits for it. Otherwise three brokers
#   could wait for each other in a circle, each with a full window towards the next. What cannot
#   leave at once is stored, and acknowledged, like any other. So is what passes a broker for the
#   second time, as brokers do not agree on the way.
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
# Whoever is forgotten is waited for once more.
_PEERS_MAX = 8_192


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

    To wait in vain costs a turn, and with many peers of whom each is seldom told anything nearly
    everything would. So after something has left alone the next does not wait, until two would
    have left together: what has paid, or not, is likely to do so again.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._wait_ns = ns(core.settings.links.gather_s)
        self._waiting: dict[str, _Waiting] = {}
        self._alone_ns: dict[str, int] = {}
        """When peers were last told something alone, of those for whom it does not pay to wait."""
        self._leaving = Retention(core.timers, self._leave, tick_ns=1)

    def __len__(self) -> int:
        return len(self._waiting)

    def acknowledge(self, peer: str, number: int, sent_ns: int, came_ns: int, turn: Turn) -> None:
        """Tell a peer soon that a message has arrived."""
        waiting = self._waiting_for(peer, turn)
        if waiting is None:
            turn.send(peer, HopAck(number, sent_ns))
            return
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
        waiting = self._waiting_for(peer, turn)
        if waiting is None:
            turn.send(peer, message)
            return
        waiting.messages.append((message, encoded))
        waiting.size_bytes += len(encoded)
        if waiting.size_bytes >= _BYTES_MAX or len(waiting.messages) >= _MESSAGES_MAX:
            self.flush(peer, turn)

    def _waiting_for(self, peer: str, turn: Turn) -> _Waiting | None:
        """Return with what something for a peer is to wait; None if it is to leave at once."""
        waiting = self._waiting.get(peer)
        if waiting is not None:
            return waiting
        if not self._waits():
            return None
        alone_ns = self._alone_ns.pop(peer, None)
        if alone_ns is not None and turn.now_ns - alone_ns >= self._wait_ns:
            self._note_alone(peer, turn)
            return None
        waiting = self._waiting[peer] = _Waiting()
        self._leaving.keep(peer, turn.now_ns + self._wait_ns)
        return waiting

    def _note_alone(self, peer: str, turn: Turn) -> None:
        if len(self._alone_ns) >= _PEERS_MAX:
            self._alone_ns.clear()
        self._alone_ns[peer] = turn.now_ns

    def flush(self, peer: str, turn: Turn) -> None:
        """Wait no longer with what is for a peer."""
        waiting = self._waiting.pop(peer, None)
        if waiting is not None:
            self._send(peer, waiting, turn)

    def acknowledge_now(
        self, peer: str, arrived: Iterable[tuple[int, int, int]], turn: Turn
    ) -> None:
        """Tell a peer at once that messages have arrived, and what waits for it.

        Each is a number, when it was sent and when it came.
        """
        waiting = self._waiting.pop(peer, None) or _Waiting()
        waiting.acknowledgements.extend(arrived)
        self._send(peer, waiting, turn)

    def _send(self, peer: str, waiting: _Waiting, turn: Turn) -> None:
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
        waiting = self._waiting.get(peer)
        if waiting is not None and len(waiting.acknowledgements) + len(waiting.messages) == 1:
            self._note_alone(peer, turn)
        self.flush(peer, turn)


# Outbox: the messages to one peer that it has not acknowledged.


# So many messages are on their way to one peer at once, at most. It bounds what the peer
# has to remember, and what a peer that comes back is flooded with.
_WINDOW = 256

# So many messages are sent again in one turn, at most.
_AGAIN_MAX = 1024

SPAN = 16 * _WINDOW
"""Numbers on their way to one peer at once differ by less than this.

Without it one message that is lost again and again would let the peer remember all later ones.
"""


class LinkState(Enum):
    """What becomes of messages to a peer."""

    OPEN = "open"
    PAUSED = "paused"
    CLOSED = "closed"


class LinkEvent(Enum):
    """What membership says about a peer."""

    CAME = "came"
    DOWN = "down"
    GONE = "gone"


# Messages are sent, and sent again, while the peer is there or nothing is known about it.
# While it is down they wait. Once it is gone they go back to whoever sent them, and so does
# whatever is sent later; a peer that comes back after that is a new one, with the same name.
LINK: Transitions[LinkState, LinkEvent] = Transitions(
    "link",
    LinkState.OPEN,
    {
        (LinkState.OPEN, LinkEvent.DOWN): LinkState.PAUSED,
        (LinkState.OPEN, LinkEvent.GONE): LinkState.CLOSED,
        (LinkState.PAUSED, LinkEvent.CAME): LinkState.OPEN,
        (LinkState.PAUSED, LinkEvent.GONE): LinkState.CLOSED,
        (LinkState.CLOSED, LinkEvent.CAME): LinkState.OPEN,
        (LinkState.OPEN, LinkEvent.CAME): LinkState.OPEN,
    },
)

_BY_STATUS = {
    MemberStatus.UNKNOWN: LinkState.OPEN,
    MemberStatus.ALIVE: LinkState.OPEN,
    MemberStatus.SUSPECT: LinkState.OPEN,
    MemberStatus.DOWN: LinkState.PAUSED,
    MemberStatus.LOST: LinkState.CLOSED,
    MemberStatus.LEFT: LinkState.CLOSED,
}


def link_state(status: MemberStatus) -> LinkState:
    """Return the state in which a link to a peer begins."""
    return _BY_STATUS[status]


@encodable(530)
@dataclass(frozen=True, slots=True)
class Kept:
    """A message that a broker keeps until it is acknowledged."""

    message: bytes


class Envelope:
    """One message that is to arrive.

    Attributes
    ----------
    attempts
        How often it has been sent since the peer was last known to be there.
    posted_ns, sent_ns
        When it was given to the outbox, and when it was sent last.
    looked_ns
        When it was sent last, or found to stand in line.
    due_ns
        When it is to be sent again.
    parcel
        What it is a part of, if it is.
    kept
        Whether it is on disk.
    hops
        How many brokers in a row acknowledge it before this one hears of it.
    passage
        What it was handed on for, if it only passes here.
    about
        What it is about, as `Links.carries` is asked.
    """

    __slots__ = (
        "about",
        "attempts",
        "due_ns",
        "hops",
        "kept",
        "looked_ns",
        "message",
        "number",
        "parcel",
        "passage",
        "posted_ns",
        "sent_ns",
    )

    def __init__(
        self,
        number: int,
        message: bytes,
        parcel: Parcel | None = None,
        about: tuple[object, ...] = (),
    ) -> None:
        self.number = number
        self.message = message
        self.parcel = parcel
        self.kept = True
        self.hops = 1
        self.passage: Passage | None = None
        self.about = about
        self.attempts = 0
        self.posted_ns = 0
        self.sent_ns = 0
        self.looked_ns = 0
        self.due_ns = 0


class Outbox:
    """All messages to one peer that it has not acknowledged, in order.

    How long it waits for an acknowledgement follows the time that acknowledgements take, as
    Jacobson (1988) has it: large content on a slow link would else be sent many times over.
    After waiting in vain it waits twice as long, until something is acknowledged. What stands
    in line behind other content is not sent again: that would make the line longer.

    Attributes
    ----------
    flight
        Messages that have been sent, or would have been if the peer were there.
    timeout_ns
        How long it waits for an acknowledgement.
    next_number
        The number of the message that is put next.
    size_bytes
        What all messages take.
    abouts
        What they are about, each with how many of them are.
    """

    __slots__ = (
        "_arrived_sent_ns",
        "_heard_ns",
        "_mean_ns",
        "_off_ns",
        "_waiting",
        "abouts",
        "flight",
        "next_number",
        "size_bytes",
        "state",
        "timeout_ns",
    )

    def __init__(self, state: LinkState, *, first_number: int, timeout_ns: int) -> None:
        self.state = state
        self.flight: dict[int, Envelope] = {}
        self.timeout_ns = timeout_ns
        self.size_bytes = 0
        self.abouts: dict[object, int] = {}
        self._waiting: deque[Envelope] | None = None
        self.next_number = first_number
        self._mean_ns = 0
        self._off_ns = 0
        self._heard_ns = 0
        self._arrived_sent_ns = 0

    def __len__(self) -> int:
        return len(self.flight) + len(self._waiting or ())

    def __iter__(self) -> Iterator[Envelope]:
        yield from self.flight.values()
        yield from self._waiting or ()

    @property
    def lowest(self) -> int:
        """The smallest number that is on its way."""
        # Letters take off in order, and stay where they are until they are taken out.
        return next(iter(self.flight))

    @property
    def queues(self) -> bool:
        """Whether messages wait until others have arrived."""
        return bool(self._waiting)

    @property
    def has_room(self) -> bool:
        """Whether the message that is put next may leave at once."""
        return not self._waiting and self._may_leave(self.next_number)

    def put(self, envelope: Envelope) -> bool:
        """Add a message that is younger than all others; return whether it may leave already."""
        if envelope.number >= self.next_number:
            self.next_number = envelope.number + 1
        self.size_bytes += len(envelope.message)
        for about in envelope.about:
            self.abouts[about] = self.abouts.get(about, 0) + 1
        if self._waiting or not self._may_leave(envelope.number):
            if self._waiting is None:
                self._waiting = deque()
            self._waiting.append(envelope)
            return False
        self.flight[envelope.number] = envelope
        return True

    def pop(self, number: int, *, sent_ns: int, now_ns: int, late_ns: int = 0) -> Envelope | None:
        """Remove a message that has arrived as it was sent at a time; None if there is none.

        `late_ns` says by how much it was acknowledged later than this link has to answer for. Else
        one lost message further on had all links before it wait for longer and longer, and what
        got lost on those was sent again after minutes.
        """
        envelope = self.flight.pop(number, None)
        self._heard_ns = now_ns
        if envelope is not None:
            # The peer may say anything, and before a crash it may have been sent earlier.
            sent_ns = max(envelope.posted_ns, min(sent_ns, envelope.sent_ns))
            if sent_ns > self._arrived_sent_ns:
                self._arrived_sent_ns = sent_ns
            self._measure(now_ns - sent_ns - late_ns)
            self._removed(envelope)
        return envelope

    def disclaim(self, envelope: Envelope) -> None:
        """Count a message no longer as on its way, although it may arrive."""
        self._uncount(envelope.about)
        envelope.about = ()

    def _removed(self, envelope: Envelope) -> None:
        self.size_bytes -= len(envelope.message)
        if envelope.about:
            self._uncount(envelope.about)

    def _uncount(self, abouts: tuple[object, ...]) -> None:
        for about in abouts:
            self.abouts[about] -= 1
            if not self.abouts[about]:
                del self.abouts[about]

    def stands_in_line(self, envelope: Envelope) -> bool:
        """Whether a message may still arrive as it was sent last.

        It does not if something that was sent later has arrived. For the first in line it
        does not either if nothing is heard. Then the others wait for what becomes of the first:
        where content stood in line both ways, and acknowledgements behind it, to send all of
        it again at each silence made a line of minutes out of one of seconds.
        """
        if self._arrived_sent_ns > envelope.sent_ns:
            return False
        return self._heard_ns > envelope.looked_ns or envelope.number != self.lowest

    def following(self) -> Envelope | None:
        """Return the next message that may leave, now that one has arrived."""
        if not self._waiting or not self._may_leave(self._waiting[0].number):
            return None
        envelope = self._waiting.popleft()
        self.flight[envelope.number] = envelope
        return envelope

    def wait_longer(self, envelope: Envelope, *, longest_ns: int) -> None:
        """Have a longer timeout, after waiting for one message in vain."""
        # On a slow link acknowledgements may take longer than that: what is measured stays.
        timeout_ns = min(2 * (envelope.due_ns - envelope.looked_ns), longest_ns)
        self.timeout_ns = max(self.timeout_ns, timeout_ns)

    def take(self, envelopes: list[Envelope]) -> int:
        """Remove some messages; return how many of them were on their way."""
        numbers = {envelope.number for envelope in envelopes}
        for envelope in envelopes:
            self._removed(envelope)
        before = len(self.flight)
        self.flight = {n: envelope for n, envelope in self.flight.items() if n not in numbers}
        if self._waiting is not None:
            self._waiting = deque(one for one in self._waiting if one.number not in numbers)
        return before - len(self.flight)

    def _may_leave(self, number: int) -> bool:
        flight = self.flight
        return not flight or (len(flight) < _WINDOW and number - next(iter(flight)) < SPAN)

    def _measure(self, taken_ns: int) -> None:
        if taken_ns < 0:
            return
        if self._mean_ns == 0:
            self._mean_ns, self._off_ns = taken_ns, taken_ns // 2
        else:
            off_ns = abs(taken_ns - self._mean_ns)
            self._off_ns += (off_ns - self._off_ns) // 4
            self._mean_ns += (taken_ns - self._mean_ns) // 8
        self.timeout_ns = self._mean_ns + 4 * self._off_ns


class Retries:
    """What all messages of a broker wait for, with one timer.

    Nearly everything is acknowledged in time. So nothing is done about it then: what is not
    wanted any more is left out when its time comes.

    Parameters
    ----------
    wanted
        Whether the message with a number to a peer is still to be sent again at a time.
    again
        Sends it again.
    """

    def __init__(
        self,
        timers: Timers,
        *,
        wanted: Callable[[str, int, int], bool],
        again: Callable[[str, int, Turn], None],
    ) -> None:
        self._timers = timers
        self._wanted = wanted
        self._again = again
        self._due: list[tuple[int, str, int]] = []
        self._timer: Timer | None = None

    def push(self, at_ns: int, peer: str, number: int) -> None:
        """Have a message sent again at a time."""
        heapq.heappush(self._due, (at_ns, peer, number))
        if self._timer is None or at_ns < self._timer.at_ns:
            self._arm()

    def clear(self) -> None:
        """Have nothing sent again."""
        # The timer stays: the next message needs one that is not later.
        self._due.clear()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timers.at(self._due[0][0], self._run)

    def _run(self, turn: Turn) -> None:
        self._timer = None
        left = _AGAIN_MAX
        while self._due:
            at_ns, peer, number = self._due[0]
            wanted = self._wanted(peer, number, at_ns)
            if wanted and at_ns > turn.now_ns:
                self._arm()
                return
            if not left:
                # Later than now, so that it is in another turn; what was sent again may have set
                # the timer to what is due already.
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = self._timers.at(turn.now_ns + 1, self._run)
                return
            left -= 1
            heapq.heappop(self._due)
            if wanted:
                self._again(peer, number, turn)
