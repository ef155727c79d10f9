"""Clients that subscribe and advertise, and what brokers have made of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.broker_overlays import SECOND, Overlay

from distributary.broker.client import (
    Advertise,
    Advertised,
    Refused,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Unsubscribed,
)
from distributary.broker.core import Core
from distributary.broker.rendezvous.table import EntryRecord
from distributary.broker.settings import MembershipSettings, Settings, SubscriptionSettings
from distributary.broker.subscriptions.subscription import LocalSubscription, own_id
from distributary.broker.subscriptions.subscriptions import Subscriptions
from distributary.content import Publication
from distributary.simulator.world import Node
from distributary.topology import root_among

_REPEAT_NS = 2 * SECOND

SWIFT = MembershipSettings(period_s=0.5, answer_s=0.2, suspicion_s=1.0, lost_s=20.0, gossip_s=0.05)


def settings_with(**fields: Any) -> Settings:
    """Settings of brokers that notice soon, with some about subscriptions changed."""
    return Settings(membership=SWIFT, subscriptions=SubscriptionSettings(**fields))


class Subscriber:
    """A client that asks again until it is answered."""

    def __init__(self, overlay: Overlay, address: str, home: str) -> None:
        self.world = overlay.world
        self.address = address
        self.home = home
        self.received: list[object] = []
        self.confirmed: dict[str, int] = {}
        self.on_confirmed: Callable[[str], None] = lambda _: None
        self._asked: dict[tuple[str, str], object] = {}
        self._revisions: dict[str, int] = {}
        self.world.clients[address] = self

    def subscribe(
        self, subscription_id: str, *filters: object, revision: int = 0, **fields: object
    ) -> None:
        document = {"id": subscription_id, "filters": list(filters), **fields}
        self._revisions[subscription_id] = revision
        self._ask(("subscribe", subscription_id), Subscribe(json.dumps(document), revision))

    def unsubscribe(self, subscription_id: str) -> None:
        self.confirmed.pop(subscription_id, None)
        self._asked.pop(("subscribe", subscription_id), None)
        self._ask(("unsubscribe", subscription_id), Unsubscribe(subscription_id))

    def advertise(self, source: str, *cells: int) -> None:
        rates = tuple((cell, 1.0) for cell in cells)
        self._ask(("advertise", source), Advertise(source, rates))

    def tell(self, message: object) -> None:
        self.world.send(self.address, self.home, message)

    def answers(self, kind: type) -> list[Any]:
        return [message for message in self.received if isinstance(message, kind)]

    @property
    def waits(self) -> bool:
        return bool(self._asked)

    def receive(self, message: object, *, sender: str, now_ns: int) -> None:
        self.received.append(message)
        match message:
            case Subscribed(id=name, revision=revision):
                latest = revision == self._revisions.get(name)
                if latest and self._asked.pop(("subscribe", name), None) is not None:
                    self.confirmed[name] = now_ns
                    self.on_confirmed(name)
            case Unsubscribed(id=name):
                self._asked.pop(("unsubscribe", name), None)
            case Advertised(source=name):
                self._asked.pop(("advertise", name), None)
            case Refused(id=name):
                self._asked.pop(("subscribe", name), None)

    def _ask(self, place: tuple[str, str], message: object) -> None:
        self._asked[place] = message
        self._repeat(place, message)

    def _repeat(self, place: tuple[str, str], message: object) -> None:
        if self._asked.get(place) is message:
            self.tell(message)
            self.world.at(self.world.now_ns + _REPEAT_NS, self._repeat, place, message)


def core_of(overlay: Overlay, identity: str) -> Core:
    broker = overlay.world.nodes[identity].broker
    assert broker is not None
    return broker.core


def event(kind: str, **fields: object) -> Publication:
    """An event of a type, with some data."""
    return Publication.parse(
        {"specversion": "1.0", "id": "1", "source": "test", "type": kind, "data": fields}
    )


def cell_of(overlay: Overlay, publication: Publication) -> int:
    return overlay.world.settings.space.cell_of(publication)


def key_of(overlay: Overlay, cell: int) -> str:
    digits = len(overlay.members[0])
    return overlay.world.settings.space.key(cell).hex()[:digits]


def held_cells(node: Node, home: str, subscription_id: str) -> set[int]:
    """The cells of a registration on a broker's disk; nothing when it was withdrawn."""
    return {
        cell
        for record in node.records().values()
        if isinstance(record, EntryRecord)
        and record.copy.registration is not None
        and record.copy.held.home == home
        and own_id(record.copy.held.id) == subscription_id
        for cell in record.copy.held.cells
    }


def holders(overlay: Overlay, home: str, subscription_id: str, cell: int) -> list[str]:
    """The brokers that have a registration in a cell on their disks, up or down."""
    nodes = overlay.world.nodes
    return [one for one in sorted(nodes) if cell in held_cells(nodes[one], home, subscription_id)]


def assert_in_cells(overlay: Overlay, home: str, subscription_id: str, cells: set[int]) -> None:
    """Roots and surrogates, as everybody sees them, have a registration in these cells."""
    up = overlay.up()
    for cell in sorted(cells):
        key = key_of(overlay, cell)
        root = root_among(sorted(up), key)
        surrogate = root_among(sorted(set(up) - {root}), key)
        having = holders(overlay, home, subscription_id, cell)
        assert {root, surrogate} <= set(having), (cell, root, surrogate, having)


def matching(subscriptions: Subscriptions, publication: Publication) -> list[LocalSubscription]:
    """The confirmed subscriptions to content of a home that a publication passes, in order."""
    return [
        local
        for local in subscriptions._ledger
        if local.live
        and local.confirmed
        and local.subscription.tolerance is None
        and local.filter.matches(publication)
    ]
