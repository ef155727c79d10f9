"""Objects that are announced or followed at one broker, and how their followers hear of them.

The home of an object's publisher tells the root of the cell in which the object lies, which
knows the subscriptions there, and tells their homes. What the root of the cell knows of
objects is not kept: homes of publishers say it again now and then, and whenever brokers
come or go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from distributary.broker.addresses import Address, tenant_of
from distributary.broker.client import Announced, Changed
from distributary.broker.encoding import journal_key
from distributary.broker.host import PlantTree, Turn
from distributary.broker.streams.messages import (
    Following,
    FollowObject,
    ObjectAnnounced,
    ObjectKnown,
    read_object,
)
from distributary.broker.streams.stream import (
    Copy,
    Follower,
    ObjectKey,
    ObjectName,
    ObjectRecord,
    Stream,
    TreeRecord,
    amounts_of,
)
from distributary.broker.streams.tree import tree_name
from distributary.broker.telemetry import CopyChanged
from distributary.content.attributes import attribute_text
from distributary.content.publication import Publication
from distributary.errors import BadInput, quoted

if TYPE_CHECKING:
    from distributary.broker.core import Core
    from distributary.broker.rendezvous.messages import Registration
    from distributary.broker.streams.flow import Demands, Flow
    from distributary.broker.streams.tree import Forest, Tree
    from distributary.broker.streams.tree_links import Uplinks

__all__ = ["Announcements", "Objects", "name_of"]


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

    def take_announced(self, message: ObjectAnnounced, sender: Address, turn: Turn) -> None:
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

    def take_known(self, message: ObjectKnown, sender: Address, turn: Turn) -> None:
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


# Numbers have to fit into eight bytes on the wire.
_NUMBER_MAX: Final = 2**63 - 1
_NS_PER_SECOND: Final = 1_000_000_000


class Objects:
    """The objects of this broker's clients, and those that its clients follow."""

    def __init__(
        self, core: Core, forest: Forest, flow: Flow, demands: Demands, uplinks: Uplinks
    ) -> None:
        self._core = core
        self._forest = forest
        self._flow = flow
        self._demands = demands
        self._uplinks = uplinks
        self._clients: dict[ObjectKey, Address] = {}

    def announced(self) -> list[Stream]:
        """Return the objects that clients of this broker have announced."""
        return [self._forest.streams[key] for key in sorted(self._clients)]

    def open(self, event: str, publication: Publication, client: Address, turn: Turn) -> Stream:
        """Become the root of an object's tree."""
        key = (tenant_of(client), name_of(publication))
        most = self._core.settings.subscriptions.client_max
        own = sum(owner == client for owner in self._clients.values())
        if key not in self._clients and own >= most:
            raise BadInput("subject", f"is one of more than {most:,} that a client announces")
        stream = self._forest.streams.get(key)
        if stream is None or not stream.tree.owned:
            if stream is not None:
                self._uproot(stream, self._core.identity, turn)
            stream = self._plant(key, self._core.identity)
        if stream.event is None:
            # Somebody may have attached here before it was announced.
            self._note(stream, event, publication)
            self._forest.keep_tree(stream.tree, turn)
        if key not in self._clients:
            stream.since_ns = turn.now_ns
        self._clients[key] = client
        self._keep(stream, turn)
        self._refresh(stream, turn)
        return stream

    def announced_by(self, client: Address) -> bool:
        """Whether a client has opened some of the objects here."""
        return client in self._clients.values()

    def change(self, message: Changed, client: Address, turn: Turn) -> None:
        """Take a new version from an object's publisher.

        Raises
        ------
        BadInput
            When the object was not announced here, or a number is out of range.
        """
        key = (tenant_of(client), (message.source, message.subject))
        stream = self._forest.streams.get(key)
        if stream is None or not stream.tree.owned or stream.event is None:
            raise BadInput("subject", f"{quoted(message.subject)} was not announced")
        if not 0 <= message.sequence <= _NUMBER_MAX:
            raise BadInput("sequence", f"must be between 0 and {_NUMBER_MAX:,}")
        if abs(message.time_ns) > _NUMBER_MAX:
            raise BadInput("time", "is out of range")
        if message.sequence > stream.held:
            copy = Copy(message.sequence, message.time_ns, message.values)
            self._keep(stream, turn, copy)
            self._flow.take(stream, copy, turn)

    def follow(self, message: FollowObject, publication: Publication, turn: Turn) -> None:
        """Learn of an object that own subscriptions may follow."""
        key = (message.tenant, name_of(publication))
        stream = self._forest.streams.get(key)
        followers = self._followers(publication, stream, message.tenant)
        if stream is None or stream.tree.root != message.root:
            if stream is not None:
                if message.since_ns < stream.since_ns:
                    return
                self._uproot(stream, message.root, turn)
            if not followers:
                return
            stream = self._plant(key, message.root)
        stream.since_ns = message.since_ns
        if followers:
            self._note(stream, message.event, publication)
        self._set_followers(stream, followers, turn)
        tree = stream.tree
        if tree.name not in self._forest.trees:
            return
        self._forest.keep_tree(tree, turn)
        if not tree.owned and tree.parent is None and tree.attempt is None:
            self._uplinks.seek(tree, tree.root, turn)

    def plant(self, message: PlantTree, sender: Address, turn: Turn) -> None:
        """Take one's place in a tree that was planned beforehand."""
        if message.tree in self._forest.trees:
            return
        tree = self._forest.tree(message.tree, message.root)
        tree.planted = True
        tree.expected = frozenset(message.children)
        for event in message.objects:
            publication = read_object(event)
            stream = self._forest.stream(tree, name_of(publication))
            self._note(stream, event, publication)
            if tree.owned:
                self._keep(stream, turn)
            self._refresh(stream, turn)
        self._forest.keep_tree(tree, turn)
        if message.parent is not None:
            self._uplinks.seek(tree, message.parent, turn)

    def refresh_all(self, turn: Turn) -> None:
        """Find out anew which own subscriptions follow which object."""
        for stream in list(self._forest.streams.values()):
            if stream.event is not None:
                self._refresh(stream, turn)

    def restore(self, record: ObjectRecord) -> None:
        """Take back an object of a client of this broker."""
        publication = read_object(record.event)
        tree = self._forest.tree(record.tree, self._core.identity)
        stream = self._forest.stream(tree, name_of(publication))
        self._note(stream, record.event, publication)
        stream.since_ns = record.since_ns
        if record.client:
            self._clients[stream.key] = record.client
        if record.sequence >= 0:
            stream.copy = Copy(record.sequence, record.time_ns, record.values)

    def restore_tree(self, record: TreeRecord) -> None:
        """Take back a place in a tree."""
        tree = self._forest.restore_tree(record)
        for event in record.events:
            publication = read_object(event)
            self._note(self._forest.stream(tree, name_of(publication)), event, publication)

    def resume(self, turn: Turn) -> None:
        """Find one's place again, after everything kept has been taken back."""
        for tree in list(self._forest.trees.values()):
            for stream in list(tree.streams.values()):
                if stream.publication is not None:
                    stream.followers = self._followers(stream.publication, stream, tree.tenant)
            self._demands.reconsider(tree, list(tree.streams.values()), turn)
            if tree.name not in self._forest.trees:
                continue
            if not tree.owned and tree.parent is None and tree.attempt is None:
                self._uplinks.seek(tree, tree.recorded_parent or tree.root, turn, insist=True)

    def root_gone(self, root: str, turn: Turn) -> None:
        """Give up the trees of a root that is lost for ever."""
        for tree in [tree for tree in self._forest.trees.values() if tree.root == root]:
            self._give_up(tree, turn)

    def rate(self, now_ns: int, *, since_ns: int) -> None:
        """Turn what was counted since a time into rates."""
        for stream in self._forest.streams.values():
            stream.rate = _per_second(stream.count, now_ns - since_ns)
            stream.count = 0
            stream.loss = min(1.0, stream.late_ns / max(1, now_ns - since_ns))
            stream.late_ns = 0
            for branch in stream.branches:
                branch.rate = _per_second(branch.count, now_ns - branch.since_ns)
                branch.count = 0
                branch.since_ns = now_ns

    def _plant(self, key: ObjectKey, root: str) -> Stream:
        """Put an object into the tree of a root."""
        return self._forest.stream(self._forest.tree(self._tree_name(key, root), root), key[1])

    def _uproot(self, stream: Stream, root: str, turn: Turn) -> None:
        """Take an object out of its tree, because it has another root now."""
        self._close(stream, turn)
        stream.followers = []
        stream.event = stream.publication = None
        if stream.tree.name == self._tree_name(stream.key, root):
            # Those below hear of the new root as we have.
            self._give_up(stream.tree, turn)
        else:
            self._demands.reconsider(stream.tree, [stream], turn)

    def _tree_name(self, key: ObjectKey, root: str) -> str:
        approach = self._core.settings.streams.approach
        return tree_name(key, root=root, approach=approach)

    def _give_up(self, tree: Tree, turn: Turn) -> None:
        for link in list(tree.children.values()):
            self._forest.remove_child(link, turn)
        for stream in list(tree.streams.values()):
            self._close(stream, turn)
            self._forest.remove(stream)
        self._uplinks.leave(tree, turn)

    def _close(self, stream: Stream, turn: Turn) -> None:
        """Have an object be announced here no more, as when this broker leaves."""
        if self._clients.pop(stream.key, None) is not None or stream.tree.owned:
            turn.erase(_key(stream))

    def _note(self, stream: Stream, event: str, publication: Publication) -> None:
        stream.event = event
        stream.publication = publication

    def _keep(self, stream: Stream, turn: Turn, copy: Copy | None = None) -> None:
        copy = stream.copy if copy is None else copy
        assert stream.event is not None
        client = self._clients.get(stream.key, "")
        version = (-1, 0, ()) if copy is None else (copy.sequence, copy.time_ns, copy.values)
        record = ObjectRecord(stream.event, client, stream.tree.name, stream.since_ns, *version)
        turn.persist(_key(stream), record)

    def _refresh(self, stream: Stream, turn: Turn) -> None:
        assert stream.publication is not None
        followers = self._followers(stream.publication, stream, stream.tree.tenant)
        self._set_followers(stream, followers, turn)

    def _set_followers(self, stream: Stream, followers: list[Follower], turn: Turn) -> None:
        if followers != stream.followers:
            if stream.copy is not None and not stream.followers:
                turn.report(CopyChanged(*stream.name, stream.copy.sequence))
            stream.followers = followers
            self._demands.reconsider(stream.tree, [stream], turn)

    def _followers(
        self, publication: Publication, stream: Stream | None, tenant: str
    ) -> list[Follower]:
        """Return the own subscriptions that follow an object, as they were if they were."""
        known = {} if stream is None else {f.id: f for f in stream.followers}
        found: list[Follower] = []
        for local in self._core.subscriptions.streaming(publication):
            if tenant_of(local.client) != tenant:
                continue
            tolerance = local.subscription.tolerance
            assert tolerance is not None
            amounts = amounts_of(tolerance)
            follower = known.get(local.id)
            if follower is None or (follower.client, follower.amounts) != (local.client, amounts):
                follower = Follower(local.id, local.client, amounts)
            found.append(follower)
        return found


def _key(stream: Stream) -> str:
    return f"streams/object/{journal_key(stream.tree.tenant, *stream.name)}"


def _per_second(count: int, elapsed_ns: int) -> float:
    return count * _NS_PER_SECOND / elapsed_ns if elapsed_ns > 0 else 0.0
