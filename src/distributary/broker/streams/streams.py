"""Streams: the part of a broker that carries values which change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from distributary.broker.addresses import Address
from distributary.broker.client import Announce, Changed, Refused, named_in
from distributary.broker.core import Handler, Part
from distributary.broker.host import PlantTree, ServiceTimes, Turn
from distributary.broker.settings import ns
from distributary.broker.streams.flow import Demands, Flow
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
from distributary.broker.streams.objects import Announcements, Objects, name_of
from distributary.broker.streams.stream import (
    ChildRecord,
    LinkCount,
    ObjectName,
    ObjectRecord,
    TreeRecord,
)
from distributary.broker.streams.tree import Forest, Tree
from distributary.broker.streams.tree_links import Downlinks, Uplinks
from distributary.broker.telemetry import StreamRate
from distributary.errors import BadInput

if TYPE_CHECKING:
    from distributary.broker.core import Core
    from distributary.broker.membership.roster import MembersChanged
    from distributary.broker.rendezvous.messages import Registration

__all__ = ["Streams"]


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
        self._objects = Objects(core, self._forest, self._flow, self._demands, self._uplinks)
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
