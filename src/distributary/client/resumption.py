"""Resumption: which deliveries are new after a break, and which are done for good.

Two numbers tell all of it, and keeping them apart is the point. What was *received* is in this
process and need not be handed out again. What is *done* has been through the body of the loop, and
only that is acknowledged: if this process died now, what it has received and not done must come
again. As long as it lives, what comes again is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from distributary.errors import PeerMisbehaved, quoted

__all__ = ["Resumption", "delivery_number"]

_DIGITS_MAX = 18


@dataclass
class Resumption:
    """How far a subscription is.

    Parameters
    ----------
    changed
        Called when more is done than the gateway knows.

    Attributes
    ----------
    received, done, told
        The last delivery that has come, the last that is done, and the last of which the
        gateway is known to have heard that it is done; 0 before the first.
    """

    received: int = 0
    done: int = 0
    told: int = 0
    changed: Callable[[], None] = field(default=lambda: None, repr=False)

    @property
    def untold(self) -> int | None:
        """Up to which delivery to acknowledge; None if the gateway knows already."""
        return self.done if self.done > self.told else None

    def is_new(self, number: int | None) -> bool:
        """Take note of what has come; say whether it is to be handed out.

        Versions of streams have no number: the newest is always welcome.
        """
        if number is None:
            return True
        if number <= self.received:
            return False
        if not self.received:
            # Numbers have no gaps: whoever begins here has acknowledged all before it.
            self.done = self.told = number - 1
        self.received = number
        return True

    def finish(self, number: int | None) -> None:
        """Take note that the body of the loop is done with a delivery, and all before it."""
        if number is not None and number > self.done:
            self.done = number
            self.changed()

    def was_told(self, number: int) -> None:
        """Take note that the gateway has heard up to which delivery is done."""
        self.told = max(self.told, number)


def delivery_number(identifier: str | None) -> int | None:
    """Return the number in the `id:` of a server-sent event; None if it has none."""
    if not identifier:
        return None
    if not (identifier.isascii() and identifier.isdigit() and len(identifier) <= _DIGITS_MAX):
        raise PeerMisbehaved(f"{quoted(identifier)} is not the number of a delivery")
    return int(identifier)
