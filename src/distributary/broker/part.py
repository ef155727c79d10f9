"""Parts: a broker's concerns, each with its own messages, durable records and timers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from distributary.broker.addresses import Address
from distributary.broker.turn import Turn

if TYPE_CHECKING:
    from distributary.broker.core import Core
    from distributary.broker.membership import MembersChanged

__all__ = ["Handler", "Part"]

Handler = Callable[[Any, Address, Turn], None]


class Part:
    """One concern of a broker.

    Parts of one broker call each other's methods through `core`. Whatever is told to another
    broker is a message.

    Attributes
    ----------
    name
        What its keys in the journal begin with.
    """

    name: ClassVar[str]

    def __init__(self, core: Core) -> None:
        self.core = core

    def handlers(self) -> Mapping[type, Handler]:
        """Return who handles which kind of message: `handler(message, sender, turn)`."""
        return {}

    def load(self, key: str, record: Any) -> None:
        """Take back one record that was kept under `name/key`."""
        raise AssertionError(f"{self.name} keeps nothing, and was given {key}")

    def start(self, turn: Turn) -> None:
        """Begin, for the first time or after everything kept has been loaded."""

    def members_changed(self, change: MembersChanged, turn: Turn) -> None:
        """Learn that brokers have come, gone quiet, come back or are lost for ever."""

    def undeliverable(self, message: Any, peer: Address, turn: Turn) -> None:
        """Take back a message that `Links` could not bring to a peer that is lost for ever."""
