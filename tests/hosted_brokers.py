"""A broker by itself: a test is its host, and whoever else sends it something."""

from __future__ import annotations

import random
from typing import Any, TypeVar

from distributary.broker.addresses import HOST, Blob, is_client
from distributary.broker.broker import Broker
from distributary.broker.content import Content
from distributary.broker.encoding import decode, encode
from distributary.broker.host import (
    ContentHeld,
    ContentPut,
    Effect,
    Erase,
    Free,
    Persist,
    Send,
    Surroundings,
    Turn,
)
from distributary.broker.settings import Settings, ns

__all__ = ["Hosted"]

Kind = TypeVar("Kind")


class Hosted:
    """A broker, its disk, the content store of its host, and all that it has asked for.

    Parameters
    ----------
    surroundings
        What its host tells it in the beginning, and at every restart.
    *told
        Further messages of the host at these times.
    """

    def __init__(
        self, identity: str, settings: Settings, surroundings: Surroundings, *told: object
    ) -> None:
        self.identity = identity
        self.settings = settings
        self.journal: dict[str, bytes] = {}
        self.store: dict[str, int] = {}
        self.effects: list[Effect] = []
        self.now_ns = ns(1000.0)
        self._told = (surroundings, *told)
        self.start()

    def start(self) -> None:
        """Begin, or begin anew from the disk."""
        rng = random.Random(1)
        self.broker = Broker.restore(self.identity, self.settings, self.journal, rng=rng)
        for message in (*self._told, ContentHeld(tuple(self.store.items()))):
            self.tell(message, HOST)
        self.do(self.broker.start(now_ns=self.now_ns))

    def do(self, effects: list[Effect]) -> None:
        """Do what a host does with the effects of a turn."""
        for effect in effects:
            if isinstance(effect, Persist):
                self.journal[effect.key] = encode(effect.record)
            elif isinstance(effect, Erase):
                self.journal.pop(effect.key, None)
            elif isinstance(effect, Free):
                self.store.pop(effect.digest, None)
        self.effects += effects

    def tell(self, message: object, sender: str = HOST) -> list[Any]:
        """Hand over a message; return what clients are told."""
        before = len(self.effects)
        self.do(self.broker.receive(message, sender=sender, now_ns=self.now_ns))
        sent = [effect for effect in self.effects[before:] if isinstance(effect, Send)]
        return [effect.message for effect in sent if is_client(effect.to)]

    def run_s(self, seconds: float) -> None:
        """Let time pass."""
        end_ns = self.now_ns + ns(seconds)
        while (at_ns := self.broker.wake_at_ns()) is not None and at_ns <= end_ns:
            self.now_ns = max(self.now_ns, at_ns)
            self.do(self.broker.wake(now_ns=self.now_ns))
        self.now_ns = end_ns

    def asked(self, kind: type[Kind]) -> list[Kind]:
        """What was asked for of a kind since somebody looked last."""
        found: list[Kind] = [effect for effect in self.effects if isinstance(effect, kind)]
        self.effects.clear()
        return found

    def put(self, blob: Blob, client: str = "@c") -> None:
        """Take content of a client into the store."""
        self.store[blob.digest] = blob.size_bytes
        self.tell(ContentPut(client, blob))

    def turn(self) -> Turn:
        """A turn of a part that is called by the test itself."""
        return Turn(self.now_ns)

    @property
    def content(self) -> Content:
        """What refers to content."""
        return self.broker.core.content

    def records(self, kind: type) -> list[Any]:
        """What is on the disk of a kind."""
        found = [decode(data) for data in self.journal.values()]
        return [record for record in found if isinstance(record, kind)]
