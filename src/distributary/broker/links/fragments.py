"""Fragments: a message that is too large to be sent at once, in numbered parts.

Each part is a message of its own to a link: it has a number, is kept, sent again, and
acknowledged. The sender keeps all of them until the last is acknowledged, as the part of the
broker that sent the message gets it back in one piece if the peer is lost. The receiver keeps
those that it has acknowledged until the message is complete.
"""

from __future__ import annotations

from dataclasses import dataclass

from distributary.broker.addresses import Speaker
from distributary.broker.encoding import DECODED_BYTES_MAX, MESSAGE_BYTES_MAX, wire
from distributary.errors import PeerMisbehaved

__all__ = ["FRAGMENTS_SINCE", "FRAGMENT_BYTES", "Fragment", "Parcel", "Reassembly"]

FRAGMENTS_SINCE = 2
"""The version with which they came; before, messages were as large as they had to be."""

FRAGMENT_BYTES = MESSAGE_BYTES_MAX - 4096
"""So much of a message is in a part; the rest of the part says which it is."""

# No message has more parts: it could not be decoded.
_COUNT_MAX = 1 + DECODED_BYTES_MAX // FRAGMENT_BYTES

# So many parts of messages that are not complete are kept for one peer, or are to come.
_UNFINISHED_MAX = 4 * _COUNT_MAX


@wire(322, Speaker.BROKER, since=FRAGMENTS_SINCE)
@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of a message; also kept, by who has not got all of them.

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
    message
        The whole of it.
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
