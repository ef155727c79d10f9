"""A home broker by itself, which is the root of everything, and clients that publish at it."""

from __future__ import annotations

import json
from typing import Any

from tests.hosted_brokers import Hosted

from distributary.broker.addresses import Blob
from distributary.broker.client import Publish
from distributary.broker.host import SourceOwners, Surroundings
from distributary.broker.publishing.publications import KeptRecord
from distributary.broker.publishing.publishing import Publishing
from distributary.broker.settings import Settings

IDENTITY = "00aa"


def event(identifier: str, **attributes: object) -> str:
    """The text of an event."""
    document = {"specversion": "1.0", "source": "/p", "type": "map", "id": identifier}
    return json.dumps({**document, **attributes})


def numbered(
    number: int, *, first: int = 1, session: str = "a", blob: Blob | None = None, **attributes: Any
) -> Publish:
    """A publication of a session, whose id tells which one it is."""
    text = event(attributes.pop("id", f"{session}{number}"), **attributes)
    return Publish(text, blob, session, number, first)


class Home(Hosted):
    """A broker that hears from a client, unless a test says from whom."""

    def __init__(
        self, settings: Settings | None = None, owners: tuple[tuple[str, str], ...] = ()
    ) -> None:
        alone = Surroundings((), members=(IDENTITY,))
        super().__init__(IDENTITY, settings or Settings(), alone, SourceOwners(owners))

    def tell(self, message: object, sender: str = "@c") -> list[Any]:
        """Hand it a message; return what it tells clients."""
        return super().tell(message, sender)

    @property
    def part(self) -> Publishing:
        """What takes publications."""
        return self.broker.core.publishing

    def taken(self, session: str = "a", client: str = "@c") -> list[int]:
        """The numbers of a session in the order in which they were taken, of what is kept."""
        kept = [
            record
            for record in self.records(KeptRecord)
            if (record.client, record.session) == (client, session)
        ]
        return [record.number for record in sorted(kept, key=lambda record: record.item.number)]
