"""Streams: the part of a broker that carries values which change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from distributary.broker.addresses import Address, tenant_of
from distributary.broker.client import Announce, Announced, Changed, Refused, named_in
from distributary.broker.core import Core, Handler, Part
from distributary.broker.encoding import journal_key
from distributary.broker.host import PlantTree, ServiceTimes, Turn
from distributary.broker.settings import ns
from distributary.broker.streams.messages import (
    CHECKS,
    Ask,
    Attach,
    Attached,
    AttachRefused,
    Demand,
    Detach,
    Dropped,
    Following,
    FollowObject,
    ObjectAnnounced,
    ObjectKnown,
    Promised,
    Pulse,
    PulseAnswer,
    Update,
    read_object,
)
from distributary.broker.streams.stream import (
    ChildRecord,
    Copy,
    Demands,
    Flow,
    Follower,
    LinkCount,
    ObjectKey,
    ObjectName,
    ObjectRecord,
    Stream,
    TreeRecord,
    amounts_of,
)
from distributary.broker.streams.tree import Forest, Tree, tree_name
from distributary.broker.streams.tree_links import Downlinks, Uplinks
from distributary.broker.telemetry import CopyChanged, StreamRate
from distributary.content.attributes import attribute_text
from distributary.content.publication import Publication
from distributary.errors import BadInput, quoted

if TYPE_CHECKING:
    from distributary.broker.membership.roster import MembersChanged
    from distributary.broker.rendezvous.messages import Registration

__all__ = ["Streams"]


# Objects that are announced or followed at one broker, and how their followers hear of them.
#
# The home of an object's publisher tells the root of the cell in which the object lies, which
# knows the subscriptions there, and tells their homes. What the root of the cell knows of
# objects is not kept: homes of publishers say it again now and then, and whenever brokers
# come or go.


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


class StreamObjects:
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


class Streams(Part):
    """Carries stream objects for one broker: its clients', its followers', its children's.

    Attributes
    ----------
    filter_time_s, send_time_s
        How long the processor takes to see whether a child needs a version, and to send it,
        as the host has measured.
    """

    name = "streams"
    uses = ("membership", "links", "subscriptions", "rendezvous", "publishing", "adaptation")
    checks = CHECKS

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self.filter_time_s = 0.0
        self.send_time_s = 0.0
        self._forest = Forest(core.identity)
        self._flow = Flow(core)
        self._demands = Demands(self._forest, self._flow, self._leave)
        self._downlinks = Downlinks(core, self._forest, self._flow, self._demands)
        self._uplinks = Uplinks(core, self._forest, self._flow, self._demands, self._downlinks)
        self._announcements = Announcements(core)
        self._objects = StreamObjects(core, self._forest, self._flow, self._demands, self._uplinks)
        self._rated_ns = 0

    def handlers(self) -> Mapping[type, Handler]:
        """Return who handles which kind of message."""
        return {
            Announce: self._announce,
            Changed: self._changed,
            PlantTree: self._objects.plant,
            ServiceTimes: self._service_times,
            Update: self._uplinks.take_update,
            Pulse: self._uplinks.take_pulse,
            Attached: self._uplinks.take_attached,
            AttachRefused: self._uplinks.take_refusal,
            Promised: self._uplinks.take_promise,
            Dropped: self._uplinks.take_drop,
            Attach: self._downlinks.take_attach,
            Detach: self._downlinks.take_detach,
            Demand: self._demands.take_demand,
            Ask: self._downlinks.take_question,
            PulseAnswer: self._downlinks.take_pulse_answer,
            ObjectAnnounced: self._announcements.take_announced,
            ObjectKnown: self._announcements.take_known,
            FollowObject: self._follow_object,
            Following: self._announcements.take_following,
        }

    def client_back(self, client: Address, turn: Turn) -> None:
        """Bring a client that was gone up to date."""
        own = self.core.subscriptions.of_client(client)
        if any(local.subscription.tolerance is not None for local in own):
            for _, stream in sorted(self._forest.streams.items()):
                self._flow.tell_again(stream, client, turn)

    def announces(self, client: Address) -> bool:
        """Whether a client has announced objects here, whose trees have their roots here."""
        return self._objects.announced_by(client)

    # What adaptation looks at, and does.

    def trees(self) -> tuple[str, ...]:
        """Return the trees that this broker is in, as the root or below a parent."""
        return tuple(sorted(t.name for t in self._forest.trees.values() if t.owned or t.parent))

    def root(self, tree: str) -> str:
        """Return the broker at the root of a tree."""
        return self._forest.trees[tree].root

    def parent(self, tree: str) -> str | None:
        """Return the parent in a tree; None at the root, and as long as there is none."""
        found = self._forest.trees.get(tree)
        return None if found is None or found.parent is None else found.parent.peer

    def asking(self, tree: str) -> str | None:
        """Return the broker that was asked to be the parent in a tree and has not answered."""
        found = self._forest.trees.get(tree)
        return None if found is None or found.attempt is None else found.attempt.peer

    def children(self, tree: str) -> tuple[str, ...]:
        """Return the children in a tree, in ascending order."""
        found = self._forest.trees.get(tree)
        if found is None:
            return ()
        return tuple(sorted(link.peer for link in found.children.values() if link.accepted))

    def path(self, tree: str) -> tuple[str, ...]:
        """Return the brokers from the root to the parent, both included."""
        found = self._forest.trees.get(tree)
        return () if found is None else found.path

    def attach_to(self, tree: str, parent: str, turn: Turn) -> None:
        """Attach to another parent, and leave the present one when that has succeeded."""
        found = self._forest.trees.get(tree)
        if found is not None and not found.owned:
            self._uplinks.attach(found, parent, turn)

    def rates(self, tree: str, child: str) -> dict[ObjectName, float]:
        """Return the updates per second sent to a child, by object, in the last window."""
        found = self._forest.trees.get(tree)
        link = None if found is None else found.children.get(child)
        if link is None:
            return {}
        return {branch.stream.name: branch.rate for branch in link.branches.values()}

    def all_rates(self) -> tuple[StreamRate, ...]:
        """Return the updates per second that each child was sent of each object."""
        return tuple(
            StreamRate(tree.tenant, *branch.stream.name, link.peer, branch.rate)
            for _, tree in sorted(self._forest.trees.items())
            for _, link in sorted(tree.children.items())
            for _, branch in sorted(link.branches.items())
        )

    def service_times(self) -> tuple[tuple[str, float], ...]:
        """Return how long the processor takes over a version, once its host has measured it."""
        times = (("filter", self.filter_time_s), ("send", self.send_time_s))
        return tuple((work, seconds) for work, seconds in times if seconds)

    def own_rates(self, tree: str) -> dict[ObjectName, float]:
        """Return the updates per second that own followers needed, in the last window."""
        found = self._forest.trees.get(tree)
        if found is None:
            return {}
        return {s.name: s.rate for s in found.streams.values() if s.followers}

    def delay_ns(self, peer: str) -> int:
        """Return the delay to a broker: measured by pulses, or as membership knows it."""
        measured = self._downlinks.delays_ns.get(peer)
        return self.core.membership.delay_ns_to(peer) if measured is None else measured

    def snapshot(self) -> dict[str, Any]:
        """Return the trees that this broker is in, with rates and loss of the last window."""
        return {
            "filter_s": self.filter_time_s,
            "send_s": self.send_time_s,
            "trees": [
                {
                    "tree": name,
                    "tenant": self._forest.trees[name].tenant,
                    "root": self.root(name),
                    "parent": self.parent(name),
                    "children": [
                        {"broker": child, "rate": sum(self.rates(name, child).values())}
                        for child in self.children(name)
                    ],
                    "objects": [
                        {
                            "source": stream.name[0],
                            "subject": stream.name[1],
                            "sequence": stream.held,
                            "followers": len(stream.followers),
                            "rate": stream.rate,
                            "loss": stream.loss,
                            "tolerances": [
                                {"value": pointer, "divergence": kind, "amount": amount}
                                for pointer, amounts in stream.effective()
                                for kind, amount in amounts
                            ],
                        }
                        for _, stream in sorted(self._forest.trees[name].streams.items())
                    ],
                }
                for name in self.trees()
            ],
        }

    # What subscriptions and rendezvous tell.

    def registered(self, cell: int, registration: Registration, turn: Turn) -> None:
        """Learn that a cell of which this broker is the root has a new tolerance."""
        self._announcements.registered(cell, registration, turn)

    def subscriptions_changed(self, turn: Turn) -> None:
        """Learn that subscriptions of this broker's clients have come, changed or ended."""
        self._objects.refresh_all(turn)

    def load(self, key: str, record: Any) -> None:
        """Take back one record; those of children come before what they were sent."""
        if isinstance(record, ChildRecord):
            self._forest.restore_child(record)
        elif isinstance(record, Update):
            self._forest.restore_sent(key.split("/")[1], record)
        elif isinstance(record, TreeRecord):
            self._objects.restore_tree(record)
        elif isinstance(record, ObjectRecord):
            self._objects.restore(record)
        else:
            assert isinstance(record, LinkCount)
            self._forest.link_count = record.count

    def start(self, turn: Turn) -> None:
        """Begin, or find one's place in the trees again."""
        self._rated_ns = turn.now_ns
        self._objects.resume(turn)
        pulse_ns = ns(self.core.settings.streams.pulse_s)
        # Not all brokers at the same time.
        first_ns = turn.now_ns + round(self.core.rng.random() * pulse_ns)
        self.core.timers.at(first_ns, self._look_after)
        window_ns = ns(self.core.settings.adaptation.window_s)
        self.core.timers.at(turn.now_ns + window_ns, self._rate)
        again_ns = ns(self.core.settings.subscriptions.registration_s)
        self.core.timers.at(turn.now_ns + again_ns, self._announce_again)

    def members_changed(self, change: MembersChanged, turn: Turn) -> None:
        """Learn that brokers have come, gone quiet, come back or are lost for ever."""
        for peer in (*change.down, *change.gone):
            for tree in list(self._forest.trees.values()):
                self._uplinks.peer_lost(tree, peer, turn)
        for peer in change.down:
            self._downlinks.peer_down(peer)
        for peer in change.gone:
            self._downlinks.peer_gone(peer, turn)
            self._objects.root_gone(peer, turn)
        for peer in change.came:
            self._downlinks.wake(peer, turn)
            for tree in self._forest.trees.values():
                if tree.root == peer and not tree.owned and (tree.doubted or not tree.parent):
                    self._uplinks.seek(tree, peer, turn)
        self._announcements.peers_lost(set(change.down), gone=False, turn=turn)
        self._announcements.peers_lost(set(change.gone), gone=True, turn=turn)
        self._announce_all(turn)

    def _leave(self, tree: Tree, turn: Turn) -> None:
        self._uplinks.leave(tree, turn)

    def _look_after(self, turn: Turn) -> None:
        pulse_ns = ns(self.core.settings.streams.pulse_s)
        self.core.timers.at(turn.now_ns + pulse_ns, self._look_after)
        self._downlinks.look_after(turn)
        for tree in list(self._forest.trees.values()):
            self._uplinks.look_after(tree, turn)
        for stream in self._forest.streams.values():
            if stream.followers:
                self._flow.repeat(stream, turn)

    def _rate(self, turn: Turn) -> None:
        """Turn what was counted into rates, at the end of a window."""
        window_ns = ns(self.core.settings.adaptation.window_s)
        self.core.timers.at(turn.now_ns + window_ns, self._rate)
        self._objects.rate(turn.now_ns, since_ns=self._rated_ns)
        self._rated_ns = turn.now_ns

    def _announce_again(self, turn: Turn) -> None:
        again_ns = ns(self.core.settings.subscriptions.registration_s)
        self.core.timers.at(turn.now_ns + again_ns, self._announce_again)
        self._announce_all(turn)

    def _announce_all(self, turn: Turn) -> None:
        for stream in self._objects.announced():
            self._announcements.announce(stream, turn)

    def _announce(self, message: Announce, sender: Address, turn: Turn) -> None:
        try:
            publication = read_object(message.event)
            self.core.publishing.check_source(publication.source, sender)
            stream = self._objects.open(message.event, publication, sender, turn)
        except BadInput as error:
            named = named_in(message.event, "subject")
            turn.send(sender, Refused("announcement", str(error), *named))
            return
        self._announcements.expect(stream.key, sender)
        self._announcements.announce(stream, turn)

    def _changed(self, message: Changed, sender: Address, turn: Turn) -> None:
        try:
            self._objects.change(message, sender, turn)
        except BadInput as error:
            turn.send(sender, Refused("change", str(error), message.source, message.subject))

    def _service_times(self, message: ServiceTimes, sender: Address, turn: Turn) -> None:
        self.filter_time_s = message.filter_s
        self.send_time_s = message.send_s

    def _follow_object(self, message: FollowObject, sender: Address, turn: Turn) -> None:
        publication = read_object(message.event)
        self._objects.follow(message, publication, turn)
        self.core.links.send(sender, Following(*name_of(publication), message.tenant), turn)
