"""What brokers say to each other so that nothing gets lost on the way, in parts if it is large."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from distributary.broker.addresses import Speaker
from distributary.broker.core import Check, Rules
from distributary.broker.encoding import DECODED_BYTES_MAX, MESSAGE_BYTES_MAX, encodable, since
from distributary.errors import PeerMisbehaved

__all__ = [
    "CHECKS",
    "FRAGMENTS_SINCE",
    "FRAGMENT_BYTES",
    "Acknowledgement",
    "Fragment",
    "Gathered",
    "Hop",
    "HopAck",
    "Parcel",
    "Reassembly",
    "Routed",
    "Step",
]


@encodable(30, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Hop:
    """A message that is sent until it is acknowledged.

    Attributes
    ----------
    number
        Tells it from others of the same sender to the same receiver; later ones are larger.
    lowest
        Nothing with a smaller number is on its way any more.
    message
        The message itself, encoded.
    sent_ns
        When it was sent this time, by the sender's clock.
    kept
        Whether its sender has it on disk under this number. Otherwise it is made anew after a
        crash, with another number, and whoever handles it tells by what is in it that he had it.
    """

    number: int
    lowest: int
    message: bytes
    sent_ns: int = 0
    kept: bool = since(2, True)


@encodable(31, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class HopAck:
    """A message has arrived, and all that came of it is durable, here or further on.

    Attributes
    ----------
    sent_ns
        As the `Hop` said: it tells which of several sendings is acknowledged.
    """

    number: int
    sent_ns: int = 0


class Acknowledgement(NamedTuple):
    """That a message has arrived, as `HopAck` says.

    Attributes
    ----------
    held_ns
        How long the receiver has waited with it, until others had the message or for more to
        go with it. Hops are as fast as they are without it.
    """

    number: int
    sent_ns: int
    held_ns: int


@encodable(410, Speaker.BROKER, since=2)
@dataclass(frozen=True, slots=True)
class Gathered:
    """What a broker has to say that could wait for a moment.

    Attributes
    ----------
    acknowledgements
        Messages that have arrived.
    messages
        Others, encoded.
    """

    acknowledgements: tuple[Acknowledgement, ...]
    messages: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One broker on the way of a message.

    Attributes
    ----------
    link_cost
        The cost of the link over which the message came to it; 0 where it began.
    node_cost
        The cost of converting there.
    """

    broker: str
    link_cost: float
    node_cost: float


@encodable(32, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Routed:
    """A message on its way to the root of a key.

    Attributes
    ----------
    message
        The message itself, encoded.
    path
        The brokers that it has passed, the origin first.
    """

    key: str
    origin: str
    message: bytes
    path: tuple[Step, ...]


def check_path(path: tuple[Step, ...], origin: str, rules: Rules) -> None:
    """Refuse a way that leads over nobody, or does not begin where its message does.

    Whoever turns it round must get there: plans are made on such ways.
    """
    if not path:
        raise PeerMisbehaved("a way that begins nowhere")
    if path[0].broker != origin:
        raise PeerMisbehaved(f"a way from {path[0].broker} of what comes from {origin}")
    rules.brokers(step.broker for step in path)
    for step in path:
        rules.amounts((step.link_cost, step.node_cost))


def _check_routed(message: Routed, rules: Rules) -> None:
    """Refuse a message that comes from nowhere."""
    rules.brokers((message.key, message.origin))
    check_path(message.path, message.origin, rules)


CHECKS: Mapping[type, Check] = {
    Routed: _check_routed,
}
"""What must hold of messages beyond the types of their fields."""


FRAGMENTS_SINCE = 2
"""The version with which they came; before, messages were as large as they had to be."""

FRAGMENT_BYTES = MESSAGE_BYTES_MAX - 4096
"""So much of a message is in a part; the rest of the part says which it is."""

# No message has more parts: it could not be decoded.
_COUNT_MAX = 1 + DECODED_BYTES_MAX // FRAGMENT_BYTES

# So many parts of messages that are not complete are kept for one peer, or are to come.
_UNFINISHED_MAX = 4 * _COUNT_MAX


@encodable(322, Speaker.BROKER, since=FRAGMENTS_SINCE)
@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of a message; also kept, by who has not got all of them.

    Each part is a message of its own to a link: it has a number, is kept, sent again, and
    acknowledged. The sender keeps all of them until the last is acknowledged, as the part of
    the broker that sent the message gets it back in one piece if the peer is lost. The receiver
    keeps those that it has acknowledged until the message is complete.

    Attributes
    ----------
    first
        The number of the `Hop` that has the first part; the others follow it.
    index, count
        Which part it is, from 0, of how many.
    """

    first: int
    index: int
    count: int
    data: bytes


class Parcel:
    """A message on its way in parts.

    Attributes
    ----------
    numbers
        Those of its parts on the link.
    left
        Those of them that have not been acknowledged.
    """

    __slots__ = ("left", "message", "numbers")

    def __init__(self, message: bytes, first: int, count: int) -> None:
        self.message = message
        self.numbers = range(first, first + count)
        self.left = set(self.numbers)

    @classmethod
    def split(cls, message: bytes, first: int) -> tuple[Parcel, list[Fragment]]:
        """Return a message in parts, of which the first has a number."""
        data = [message[k : k + FRAGMENT_BYTES] for k in range(0, len(message), FRAGMENT_BYTES)]
        parts = [Fragment(first, index, len(data), some) for index, some in enumerate(data)]
        return cls(message, first, len(parts)), parts


class Reassembly:
    """The messages of one peer that are not complete."""

    def __init__(self) -> None:
        self._parts: dict[int, dict[int, Fragment]] = {}

    def take_back(self, part: Fragment) -> None:
        """Enter a part that was kept."""
        self._parts.setdefault(part.first, {})[part.index] = part

    def numbers(self) -> list[int]:
        """Return the numbers of all parts that are kept."""
        return [first + index for first, parts in self._parts.items() for index in parts]

    def check(self, part: Fragment, number: int) -> None:
        """Refuse a part that is not one of what came before."""
        known = next(iter(self._parts.get(part.first, {}).values()), part)
        if not (
            0 <= part.index < part.count <= _COUNT_MAX
            and part.count == known.count
            and part.first + part.index == number
            and len(part.data) <= FRAGMENT_BYTES
        ):
            raise PeerMisbehaved(f"a part {part.index} of {part.count} of a message, as {number}")

    def drop_before(self, lowest: int) -> list[int]:
        """Forget messages that will not be completed; return the numbers of their parts.

        Their sender has given them up, and says which is the lowest number on its way.
        """
        dropped = []
        for first, parts in list(self._parts.items()):
            if first + next(iter(parts.values())).count <= lowest:
                dropped += [first + index for index in parts]
                del self._parts[first]
        return dropped

    def has_room(self, part: Fragment) -> bool:
        """Whether a part may be kept: what has begun is always finished, before more begins."""
        begun = sum(next(iter(parts.values())).count for parts in self._parts.values())
        return part.first in self._parts or begun + part.count <= _UNFINISHED_MAX

    def add(self, part: Fragment) -> bytes | None:
        """Enter a part; return the message if that completes it."""
        parts = self._parts.setdefault(part.first, {})
        parts[part.index] = part
        if len(parts) < part.count:
            return None
        del self._parts[part.first]
        return b"".join(parts[index].data for index in range(part.count))
