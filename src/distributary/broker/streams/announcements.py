"""Objects: how those whose subscriptions follow an object hear that there is one.

The home of an object's publisher tells the root of the cell in which the object lies, which
knows the subscriptions there, and tells their homes. What the root of the cell knows of
objects is not kept: homes of publishers say it again now and then, and whenever brokers
come or go.

What a broker keeps about streams: its links, and the versions of its own clients' objects.

The last update sent on each branch is kept as the message itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from distributary.broker.client import Announced
from distributary.broker.effects import Turn
from distributary.broker.encoding import wire
from distributary.broker.streams.messages import (
    Following,
    FollowObject,
    ObjectAnnounced,
    ObjectKnown,
    Values,
    Wanted,
    read_object,
)
from distributary.broker.streams.stream import ObjectKey, ObjectName, Stream
from distributary.content.attributes import attribute_text
from distributary.content.publication import Publication

if TYPE_CHECKING:
    from distributary.broker.addresses import Address
    from distributary.broker.core import Core
    from distributary.broker.rendezvous.messages import Registration

__all__ = [
    "Announcements",
    "ChildRecord",
    "LinkCount",
    "ObjectRecord",
    "TreeRecord",
    "name_of",
]


def name_of(publication: Publication) -> ObjectName:
    """Return the name of an object."""
    return publication.source, attribute_text(publication.attributes["subject"])


@dataclass
class _Known:
    """An object in a cell of which this broker is the root."""

    event: str
    publication: Publication
    home: str
    since_ns: int
    tenant: str
    waiting: set[str] = field(default_factory=set)

    def follow(self) -> FollowObject:
        """Return what to tell homes whose subscriptions follow it."""
        return FollowObject(self.event, self.home, self.since_ns, self.tenant)


class Announcements:
    """The objects of this broker's clients, and those in the cells that it is the root of."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._cells: dict[int, dict[ObjectKey, _Known]] = {}
        self._clients: dict[ObjectKey, set[Address]] = {}

    def expect(self, key: ObjectKey, client: Address) -> None:
        """Tell a client as soon as its object is known."""
        self._clients.setdefault(key, set()).add(client)

    def announce(self, stream: Stream, turn: Turn) -> None:
        """Tell the root of an object's cell that there is the object."""
        assert stream.event is not None
        assert stream.publication is not None
        core = self._core
        space = core.settings.space
        key = space.key(space.cell_of(stream.publication)).hex()[: len(core.identity)]
        message = ObjectAnnounced(stream.event, core.identity, stream.since_ns, stream.tree.tenant)
        core.links.route(key, message, turn)

    def take_announced(self, message: ObjectAnnounced, turn: Turn) -> None:
        """Handle that there is an object in a cell of which this broker is the root."""
        publication = read_object(message.event)
        tenant = message.tenant
        name = (tenant, name_of(publication))
        cell = self._core.settings.space.cell_of(publication)
        known = _Known(message.event, publication, message.home, message.since_ns, tenant)
        before = self._cells.setdefault(cell, {}).get(name)
        if before is not None and before.home != message.home:
            # The publisher has moved. Whoever is behind is told, and gives the object up.
            late, known = sorted((before, known), key=lambda one: (one.since_ns, one.home))
            self._core.links.send(late.home, known.follow(), turn)
        self._cells[cell][name] = known
        homes = {r.home for r in self._core.rendezvous.followers(cell, publication, tenant)}
        known.waiting = {home for home in homes if self._core.membership.is_alive(home)}
        for home in sorted(homes):
            self._core.links.send(home, known.follow(), turn)
        self._tell(name, known, turn)

    def registered(self, cell: int, registration: Registration, turn: Turn) -> None:
        """Tell the home of a new registration about the objects that it follows."""
        for known in self._cells.get(cell, {}).values():
            followers = self._core.rendezvous.followers(cell, known.publication, known.tenant)
            if any(follower.home == registration.home for follower in followers):
                self._core.links.send(registration.home, known.follow(), turn)

    def take_following(self, message: Following, sender: Address, turn: Turn) -> None:
        """Handle that a home knows of an object."""
        name = (message.tenant, (message.source, message.subject))
        for objects in self._cells.values():
            known = objects.get(name)
            if known is not None and sender in known.waiting:
                known.waiting.discard(sender)
                self._tell(name, known, turn)

    def take_known(self, message: ObjectKnown, turn: Turn) -> None:
        """Handle that everybody knows of an object of one of our clients."""
        key = (message.tenant, (message.source, message.subject))
        for client in sorted(self._clients.pop(key, ())):
            turn.send(client, Announced(message.source, message.subject))

    def peers_lost(self, peers: set[str], *, gone: bool, turn: Turn) -> None:
        """Wait no longer for homes that do not answer, and forget objects of lost ones."""
        for objects in self._cells.values():
            for name, known in list(objects.items()):
                if gone and known.home in peers:
                    del objects[name]
                elif known.waiting & peers:
                    known.waiting -= peers
                    self._tell(name, known, turn)

    def _tell(self, key: ObjectKey, known: _Known, turn: Turn) -> None:
        if not known.waiting:
            tenant, name = key
            self._core.links.send(known.home, ObjectKnown(*name, tenant), turn)


@wire(610)
@dataclass(frozen=True, slots=True)
class TreeRecord:
    """A place in a tree.

    Attributes
    ----------
    events
        What the versions of each object have in common that is followed here.
    """

    tree: str
    root: str
    parent: str | None
    planted: bool
    events: tuple[str, ...]


@wire(611)
@dataclass(frozen=True, slots=True)
class ChildRecord:
    """A link to a child, with what it demanded."""

    tree: str
    child: str
    link: int
    demand: int
    wanted: tuple[Wanted, ...]


@wire(612)
@dataclass(frozen=True, slots=True)
class ObjectRecord:
    """An object of a client of this broker, with its last version.

    Attributes
    ----------
    client
        Who announced it; empty when a plan did.
    since_ns
        When it was announced here.
    sequence
        -1 as long as there is no version.
    """

    event: str
    client: str
    tree: str
    since_ns: int
    sequence: int
    time_ns: int
    values: Values


@wire(613)
@dataclass(frozen=True, slots=True)
class LinkCount:
    """How many links to parents this broker has asked for."""

    count: int
