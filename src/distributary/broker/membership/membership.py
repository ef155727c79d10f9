"""Membership: who is there, and who is next on the way to whom.

Every broker knows every other. It learns who has come or gone by gossip, and from pings;
see `gossip`, `detector` and `roster`, after SWIM (Das, Gupta and Motivala, 2002). Brokers
that agree on who is there agree on the root of every key, and whatever is passed on by
`next_hop` gets there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from distributary.broker.addresses import Address
from distributary.broker.core import Handler, Part
from distributary.broker.encoding import VERSION
from distributary.broker.host import Detached, Leave, Reattached, Surroundings, Turn
from distributary.broker.membership.failure_detector import Detector
from distributary.broker.membership.gossip import GossipExchange
from distributary.broker.membership.messages import (
    Gossip,
    Join,
    Members,
    News,
    Ping,
    PingFor,
    Pong,
    Reached,
    Status,
)
from distributary.broker.membership.roster import GONE, LIFE, Known, MembersChanged
from distributary.broker.membership.routing import Distances, Routes
from distributary.broker.settings import Digests, ns
from distributary.broker.telemetry import SettingsDiffer
from distributary.broker.timers import ClockRecord
from distributary.topology import shared_prefix_length

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Membership"]

# How many others a broker that was away asks at a time who is there.
_CONTACTS = 3


class Membership(Part):
    """What one broker knows about the others.

    Attributes
    ----------
    node_cost
        What a unit of conversion costs at this broker, as a factor.
    detached
        Whether the host has no connection, so that nobody's silence says anything.
    """

    name = "membership"

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self.node_cost = 1.0
        self.detached = False
        self.distances = Distances()
        self.detector = Detector(self)
        self.gossip = self._gossip_of((), 0, core.version)
        self._routes = Routes(core.identity, (core.identity,), self.distances.delays)
        self._ask_again_ns = 2 * ns(core.settings.membership.answer_s)
        self._period_ns = ns(core.settings.membership.period_s)
        self._founders: tuple[str, ...] = ()
        self._founders_version = core.version
        self._joins = 0
        self._contact: str | None = None
        self._kept: Known | None = None
        self._started = False
        self._joining = False
        self._settings_of: dict[str, Digests] = {}

    def handlers(self) -> Mapping[type, Handler]:
        """Return who handles which kind of message."""
        return {
            Surroundings: self._surroundings,
            Leave: self._leave,
            Detached: self._detached,
            Reattached: self._reattached,
            Ping: self._pinged,
            Pong: self._ponged,
            PingFor: self._ping_for,
            Reached: self._reached,
            Join: self._join,
            Members: self._told_all,
            Gossip: self._told,
        }

    def load(self, key: str, record: Any) -> None:
        """Take back who was there, and the own incarnation; and how late it was."""
        if isinstance(record, ClockRecord):
            self.core.clock.restore(record)
            return
        assert isinstance(record, Known)
        self._kept = record

    def start(self, turn: Turn) -> None:
        """Begin with those who are said to be there, or were when this broker stopped."""
        kept = self._kept
        if kept is None:
            founders, incarnation = tuple(sorted(self._founders)), 0
            version = self._founders_version
        else:
            founders, incarnation = kept.members, (kept.incarnation // LIFE + 1) * LIFE
            version = kept.version
        if founders == self._founders:
            # Brokers of one process share this tuple, which is long in a large overlay.
            founders = self._founders
        self.gossip = self._gossip_of(founders, incarnation, version)
        self.core.tickets.life = self.life
        self._started = True
        self._find_routes(came=founders)
        self._keep(turn)
        self.detector.start(turn)
        if kept is not None or self._contact is not None:
            self._join_others(turn)

    def alive(self) -> tuple[str, ...]:
        """Return who is there, this broker included unless it leaves, in ascending order."""
        return self._routes.members

    @property
    def leaving(self) -> bool:
        """Whether this broker has said goodbye; it may stop once `Links.idle`."""
        return self.gossip.leaving

    @property
    def life(self) -> int:
        """How often this broker has been restarted."""
        return self.gossip.incarnation // LIFE

    @property
    def version(self) -> int:
        """The version in which this broker speaks to others: the lowest that any of them knows.

        One for all of them. What is routed, or inside of another message, is read by brokers
        that its sender does not choose. A newcomer does not know what others know, and tries
        its own and the one before in turn.
        """
        roster = self.gossip.roster
        lowest = roster.lowest
        if lowest is None:
            lowest = roster.lowest_version
        if lowest is None:
            lowest = VERSION - self._joins % 2
        own = self.core.version
        return lowest if lowest < own else own

    @property
    def routes(self) -> object:
        """Stands for all routes and costs: another one when any of them may have changed."""
        return self._routes

    def is_alive(self, peer: str) -> bool:
        """Whether a broker is taken to be there."""
        return peer in self._routes.there

    def is_gone(self, peer: str) -> bool:
        """Whether a broker has left, or is lost for ever."""
        return self.gossip.roster.status(peer) in GONE

    def status(self, peer: str) -> Status:
        """Return what this broker thinks of another one."""
        return self.gossip.roster.status(peer)

    def next_hop(self, key: str) -> str | None:
        """Return whom to pass a message for a key or a broker to; None: it is for us."""
        return self._routes.next_hop(key)

    def hop_to(self, peer: str) -> str | None:
        """Return whom to pass to what is for a broker; None when that is not there, or is us."""
        routes = self._routes
        return routes.next_hop(peer) if peer in routes.there else None

    def hops_beside(self, peers: Iterable[str]) -> dict[str, str]:
        """Return whom what is for brokers like some others is passed on to.

        By prefix: they are like another one if they share as many digits with this broker.
        """
        levels = {shared_prefix_length(self.core.identity, peer) for peer in peers}
        rows = [self._routes.row(level) for level in sorted(levels)]
        return {prefix: hop for row in rows for prefix, hop in row.items()}

    def root_of(self, key: str) -> str:
        """Return the root of a key, as far as this broker knows."""
        return self._routes.root_of(key)

    def line_of(self, key: str, count: int) -> tuple[str, ...]:
        """Return the root of a key, who would be without it, who without both, and so on."""
        return self._routes.line_of(key, count)

    def delay_ns_to(self, peer: str) -> int:
        """Return the delay to another broker."""
        return self.distances.delay_ns_to(peer)

    def link_cost_to(self, peer: str) -> float:
        """Return what a unit of size costs on the link to another broker, as a factor."""
        return self.distances.link_cost_to(peer)

    def doubt(self, peer: str, turn: Turn) -> None:
        """Look after a broker that leaves messages without acknowledgement."""
        if self.status(peer) is Status.ALIVE:
            self.detector.probe(peer, turn)

    def refresh(self, turn: Turn) -> None:
        """Let routes follow the delays, if it is time."""
        if self.distances.refresh(turn.now_ns):
            self._find_routes()

    def snapshot(self) -> dict[str, Any]:
        """Return everybody that is known, with what is thought of them."""
        others = [one for one in self.gossip.roster.known() if one != self.core.identity]
        return {
            "life": self.life,
            "leaving": self.leaving,
            "node_cost": self.node_cost,
            "members": [
                {
                    "broker": peer,
                    "status": self.status(peer).name.lower(),
                    "delay_ms": self.delay_ns_to(peer) / 1e6,
                    "link_cost": self.link_cost_to(peer),
                }
                for peer in sorted(others)
            ],
        }

    def _surroundings(self, message: Surroundings, sender: Address, turn: Turn) -> None:
        self._founders = message.members
        self._founders_version = message.version
        self._contact = message.contact
        self.node_cost = message.node_cost
        self.distances.give(message.neighbours)
        self._find_routes()
        if self._started and message.contact is not None and len(self.alive()) == 1:
            self._join_others(turn)

    def _leave(self, message: Leave, sender: Address, turn: Turn) -> None:
        """Say goodbye to everybody at once: by old routes, messages would come back to us."""
        own = self.core.identity
        others = [one for one in self.alive() if one != own]
        if self.leaving or not others:
            return
        self.gossip.leaving = True
        for peer in others:
            turn.send(peer, Gossip((self.gossip.own_news(),)))
        self._find_routes()
        self.core.members_changed(MembersChanged(gone=(own,)), turn)

    def _detached(self, message: Detached, sender: Address, turn: Turn) -> None:
        """Draw no conclusions from silence.

        Where the transport is out for everybody, each would take all others for down, be the
        root of everything, and give up in the end what it has for them.
        """
        self.detached = True
        self.detector.suspend()

    def _reattached(self, message: Reattached, sender: Address, turn: Turn) -> None:
        """Give everybody the full time again, and ask what has happened meanwhile."""
        if self.detached:
            self.detached = False
            self.gossip.resume(turn)
            self._join_others(turn)

    def _pinged(self, message: Ping, sender: Address, turn: Turn) -> None:
        gossip = self.gossip
        gossip.hear_from(message, sender, turn, message.news)
        news = gossip.news_for(sender)
        digests, version = self.core.settings.digests, self.core.version
        turn.send(
            sender,
            Pong(message.number, gossip.incarnation, gossip.digest, news, digests, version),
        )
        self._compare(message.digest, sender, turn)
        self._compare_settings(message.settings, sender, turn)

    def _ponged(self, message: Pong, sender: Address, turn: Turn) -> None:
        own = News(sender, message.incarnation, Status.ALIVE, message.version)
        self.gossip.check((*message.news, own))
        self.detector.answered(message, sender, turn)
        self.gossip.hear_from(message, sender, turn, message.news)
        self._compare(message.digest, sender, turn)
        self._compare_settings(message.settings, sender, turn)

    def _compare(self, digest: int, peer: str, turn: Turn) -> None:
        if not self._joining:
            self.gossip.compare(digest, peer, turn)

    def _compare_settings(self, theirs: Digests, peer: str, turn: Turn) -> None:
        """Report that a broker has other settings, once for all of these.

        Nothing else comes of it: during an upgrade some brokers are ahead of others, and plans
        say all that is needed to carry them out.
        """
        own = self.core.settings.digests
        if theirs == self._settings_of.get(peer, own):
            return
        self._settings_of[peer] = theirs
        for what, mine, other in zip(own._fields, own, theirs, strict=True):
            if mine != other:
                turn.report(SettingsDiffer(peer, what, other))

    def _ping_for(self, message: PingFor, sender: Address, turn: Turn) -> None:
        self.gossip.check_identity(sender)
        self.detector.ping_for(message, sender, turn)

    def _reached(self, message: Reached, sender: Address, turn: Turn) -> None:
        self.detector.reached(message)

    def _join(self, message: Join, sender: Address, turn: Turn) -> None:
        """Tell a broker that is new, or was away, who is there.

        This includes what was thought of it before: it begins above what others may still
        think.
        """
        news = self.gossip.all_news()
        self.gossip.hear_from(message, sender, turn)
        self.gossip.tell_all(sender, news, turn)

    def _told_all(self, message: Members, sender: Address, turn: Turn) -> None:
        self.gossip.hear(message.members, turn)
        self._joining = False
        if message.answer:
            theirs = {*message.members}
            news = [
                one
                for one in self.gossip.all_news()
                if one.identity != sender and one not in theirs and message.covers(one.identity)
            ]
            self.gossip.tell_all(sender, news, turn)

    def _told(self, message: Gossip, sender: Address, turn: Turn) -> None:
        self.gossip.hear(message.news, turn)

    def _changed(self, change: MembersChanged, turn: Turn) -> None:
        self._find_routes(came=change.came)
        self._keep(turn)
        if change.came or change.down or change.gone:
            self.core.members_changed(change, turn)

    def _join_others(self, turn: Turn) -> None:
        self._joining = True
        self._ask_who_is_there(turn)

    def _ask_who_is_there(self, turn: Turn) -> None:
        """Ask a few of those who were there, or the contact, until one answers.

        The contact is asked until it is known, whoever else answers: that may be another
        newcomer, who knows as little.
        """
        peers: list[str] = []
        if self._joining:
            peers = self.gossip.some_others(_CONTACTS, without=self.core.identity)
            peers = peers or self._some_neighbour()
        contact = self._contact
        if contact is not None and self.status(contact) is Status.UNKNOWN:
            peers.append(contact)
        for peer in peers:
            turn.send(peer, Join(self.gossip.incarnation, self.core.version))
        self._joins += 1
        self._joining = self._joining and bool(peers)
        if self._joining or contact is not None:
            wait_ns = self._ask_again_ns if self._joining else self._period_ns
            self.core.timers.at(turn.now_ns + wait_ns, self._ask_who_is_there)

    def _some_neighbour(self) -> list[str]:
        """Return somebody who may be there in case that the contact is not."""
        neighbours = self.distances.delays.keys() - {self._contact, self.core.identity}
        return self.core.rng.sample(sorted(neighbours), min(1, len(neighbours)))

    def _keep(self, turn: Turn) -> None:
        roster = self.gossip.roster
        down = roster.away(Status.DOWN)
        members = tuple(sorted((*roster.there, *down))) if down else roster.there
        turn.persist("membership/known", Known(self.gossip.incarnation, members, self.version))

    def _find_routes(self, came: tuple[str, ...] = ()) -> None:
        own = self.core.identity
        for peer in came:
            if peer != own:
                self.detector.came(peer)
        members = self.gossip.roster.there
        if self.leaving:
            members = tuple(one for one in members if one != own)
        if members:
            self._routes = Routes(own, members, self.distances.delays)

    def _gossip_of(
        self, founders: tuple[str, ...], incarnation: int, version: int
    ) -> GossipExchange:
        return GossipExchange(
            self.core, founders, incarnation, version, changed=self._changed, ask=self.detector.ping
        )
