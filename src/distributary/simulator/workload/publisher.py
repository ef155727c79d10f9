"""Publishers: clients that publish events, each until it is accepted."""

from __future__ import annotations

import json

from distributary.broker import client as messages
from distributary.broker.blob import Blob
from distributary.broker.dissemination.messages import ItemId
from distributary.content import Publication
from distributary.simulator.checkers.ledger import Ledger
from distributary.simulator.workload.device import Device
from distributary.simulator.world import World

__all__ = ["Publisher"]


class Publisher(Device):
    """A client that publishes under one source, one event after the other.

    The next event is sent when the one before was accepted: two that are under way at once
    could arrive in either order, and then there would be no order to keep.
    """

    def __init__(
        self,
        world: World,
        name: str,
        home: str,
        source: str,
        ledger: Ledger,
        *,
        tenant: str = "",
    ) -> None:
        super().__init__(world, name, home, tenant=tenant)
        self.source = source
        self.ledger = ledger
        self._rates: tuple[tuple[int, float], ...] = ()
        self._waiting: list[tuple[Publication, Blob | None]] = []
        self.handle(messages.Accepted, self._accepted)
        self.handle(messages.Advertised, lambda m: self.answered("advertise", m.source))
        self.handle(messages.Refused, self._refused)

    def publish(self, publication: Publication, blob: Blob | None) -> None:
        """Publish an event after those before it."""
        self._waiting.append((publication, blob))
        if len(self._waiting) == 1:
            self._send_first()

    def advertise(self, rates: tuple[tuple[int, float], ...]) -> None:
        """Say which cells it will publish in, and how often."""
        self._rates = rates
        self.request(messages.Advertise(self.source, rates), "advertise", self.source)

    def reattach(self, home: str) -> None:
        """Go to another home because the first one is lost for ever."""
        if self._waiting:
            self._note_first(home)
        super().reattach(home)
        if self._rates:
            self.advertise(self._rates)

    def _send_first(self) -> None:
        publication, blob = self._waiting[0]
        self._note_first(self.home)
        text = json.dumps(publication.document(), separators=(",", ":"))
        self.request(messages.Publish(text, blob), "publish", publication.id)

    def _note_first(self, home: str) -> None:
        publication, blob = self._waiting[0]
        size_bytes = len(publication.content) if blob is None else blob.size_bytes
        digest = "" if blob is None else blob.digest
        self.ledger.sent(
            publication, size_bytes, home, self.world.now_ns, digest, tenant=self.tenant
        )

    def _accepted(self, message: messages.Accepted) -> None:
        if self.answered("publish", message.id):
            identity = ItemId(self.tenant, message.source, message.id)
            self.ledger.accepted(identity, self.world.now_ns)
            self._waiting.pop(0)
            if self._waiting:
                self._send_first()

    def _refused(self, message: messages.Refused) -> None:
        self.ledger.refusals.append(
            (self.world.now_ns, f"{self.address} was refused {message.what}: {message.reason}")
        )
