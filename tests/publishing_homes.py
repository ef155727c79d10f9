"""A home broker by itself, which is the root of everything, and clients that publish at it."""

from __future__ import annotations

import json
import random
from typing import Any

from distributary.broker.addresses import HOST, is_client
from distributary.broker.blob import Blob
from distributary.broker.broker import Broker
from distributary.broker.client import Publish
from distributary.broker.effects import Effect, Erase, Persist, Send
from distributary.broker.encoding import decode, encode
from distributary.broker.host import SourceOwners, Surroundings
from distributary.broker.publishing.publications import KeptRecord
from distributary.broker.publishing.publishing import Publishing
from distributary.broker.settings import Settings, ns

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


class Home:
    """A broker with a disk."""

    def __init__(
        self, settings: Settings | None = None, owners: tuple[tuple[str, str], ...] = ()
    ) -> None:
        self.settings = settings or Settings()
        self.owners = owners
        self.journal: dict[str, bytes] = {}
        self.now_ns = ns(1000.0)
        self.told: list[tuple[str, Any]] = []
        self.start()

    def start(self) -> None:
        """Begin, or begin anew from the disk."""
        rng = random.Random(1)
        self.broker = Broker.restore(IDENTITY, self.settings, self.journal, rng=rng)
        self.tell(Surroundings((), members=(IDENTITY,)), sender=HOST)
        self.tell(SourceOwners(self.owners), sender=HOST)
        self._do(self.broker.start(now_ns=self.now_ns))

    def tell(self, message: object, sender: str = "@c") -> list[Any]:
        """Hand it a message; return what it tells clients."""
        before = len(self.told)
        self._do(self.broker.receive(message, sender=sender, now_ns=self.now_ns))
        return [message for _, message in self.told[before:]]

    def run_s(self, seconds: float) -> None:
        """Let time pass."""
        end_ns = self.now_ns + ns(seconds)
        while (at_ns := self.broker.wake_at_ns()) is not None and at_ns <= end_ns:
            self.now_ns = max(self.now_ns, at_ns)
            self._do(self.broker.wake(now_ns=self.now_ns))
        self.now_ns = end_ns

    def _do(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Persist):
                self.journal[effect.key] = encode(effect.record)
            elif isinstance(effect, Erase):
                self.journal.pop(effect.key, None)
            elif isinstance(effect, Send) and is_client(effect.to):
                self.told.append((effect.to, effect.message))

    @property
    def part(self) -> Publishing:
        """What takes publications."""
        return self.broker.core.publishing

    def records(self, kind: type) -> list[Any]:
        """What is on the disk of a kind."""
        found = [decode(data) for data in self.journal.values()]
        return [record for record in found if isinstance(record, kind)]

    def taken(self, session: str = "a", client: str = "@c") -> list[int]:
        """The numbers of a session in the order in which they were taken, of what is kept."""
        kept = [
            record
            for record in self.records(KeptRecord)
            if (record.client, record.session) == (client, session)
        ]
        return [record.number for record in sorted(kept, key=lambda record: record.item.number)]
