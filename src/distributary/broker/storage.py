"""Storage: what a broker does about a disk that is full, and about messages that break it.

A broker that has failed over a message is restored from its disk, and the message would come
again: over a link until it is acknowledged, from a client until it is answered. So it is told to
set the message aside. What came over a link then counts as handled, and a client is refused.
What others send unreliably cannot be told from what they send next, and is only reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from distributary.broker.addresses import Address, Speaker, is_client
from distributary.broker.client import Publish, Refused, Subscribe
from distributary.broker.core import Core, Handler, Part
from distributary.broker.encoding import decode, encodable, encode, kind_name
from distributary.broker.host import SetAside, StorageLow, StorageRecovered, Turn
from distributary.broker.links.messages import Hop, Routed
from distributary.broker.telemetry import SetAsideMessage
from distributary.errors import PeerMisbehaved

__all__ = ["Nothing", "Storage"]


@encodable(303, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Nothing:
    """Stands in a broker for a message that it has set aside."""


_NOTHING: Final = encode(Nothing())
_REQUESTS: Final = {Publish: "publication", Subscribe: "subscription"}


class Storage(Part):
    """What a broker knows of its disk.

    Attributes
    ----------
    low
        Whether the disk is nearly full. What others have accepted already is taken all the
        same, and what is acknowledged is erased, which makes room.
    """

    name = "storage"

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self.low = False

    def handlers(self) -> Mapping[type, Handler]:
        """Return who handles which kind of message."""
        return {
            StorageLow: self._is_low,
            StorageRecovered: self._has_recovered,
            SetAside: self._set_aside,
            Nothing: self._nothing,
        }

    def _is_low(self, message: StorageLow, sender: Address, turn: Turn) -> None:
        self.low = True

    def _has_recovered(self, message: StorageRecovered, sender: Address, turn: Turn) -> None:
        self.low = False

    def _set_aside(self, message: SetAside, sender: Address, turn: Turn) -> None:
        guilty = decode(message.message)
        turn.report(SetAsideMessage(message.sender, _about(guilty), message.problem))
        if isinstance(guilty, Hop):
            # Over the link as if it had said nothing: seen, durable, acknowledged.
            self.core.handle(replace(guilty, message=_NOTHING), message.sender, turn)
        elif is_client(message.sender):
            what = _REQUESTS.get(type(guilty), "request")
            turn.send(message.sender, Refused(what, "this broker cannot handle it"))

    def _nothing(self, message: Nothing, sender: Address, turn: Turn) -> None:
        pass


def _about(message: object) -> str:
    """Return the kind of a message, or of the message that it carries."""
    try:
        while isinstance(message, Hop | Routed):
            message = decode(message.message)
    except PeerMisbehaved:
        return "broken"
    return kind_name(message)
