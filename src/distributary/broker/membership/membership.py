"""Membership: who is there, and who is next on the way to whom.

Every broker knows every other. It learns who has come or gone by gossip, and from pings;
see `gossip` and `roster`, after SWIM (Das, Gupta and Motivala, 2002). Brokers
that agree on who is there agree on the root of every key, and whatever is passed on by
`next_hop` gets there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any

from distributary.broker.addresses import Address
from distributary.broker.core import Core, Handler, Part
from distributary.broker.encoding import VERSION
from distributary.broker.host import Detached, Leave, Neighbour, Reattached, Surroundings, Turn
from distributary.broker.membership.gossip import Detector, GossipExchange
from distributary.broker.membership.roster import (
    GONE,
    LIFE,
    Gossip,
    Join,
    Known,
    Members,
    MembersChanged,
    MemberStatus,
    News,
    Ping,
    PingFor,
    Pong,
    Reached,
    set_of,
)
from distributary.broker.settings import Digests, ns
from distributary.broker.telemetry import SettingsDiffer
from distributary.broker.timers import ClockRecord
from distributary.topology import shared_prefix_length
from distributary.topology.prefix_routing import narrowed, root_among

__all__ = ["Membership", "Routes"]


# Routes: where a broker passes messages on to, found when they are asked for.
#
# The answers are those of a routing table (`topology.RoutingTables`). A table would have to be
# filled in every broker whenever one comes or goes; here an entry is found the first time that a
# message needs it, by bisection in the ascending identifiers, and then remembered.


# So many ways are remembered. There are as many as brokers and cells, unless a peer makes up keys.
_KEYS_MAX = 65_536


class Routes:
    """What one broker needs to pass messages on, as long as nobody comes or goes.

    Parameters
    ----------
    owner
        The broker that passes them on.
    members
        Those that there are, in ascending order; without the owner when it is leaving.
    delays
        From the owner to every other member.

    Attributes
    ----------
    there
        The members, to be asked whether one is there.
    """

    __slots__ = (
        "_closest",
        "_delays",
        "_hops",
        "_lines",
        "_owner",
        "_roots",
        "members",
        "there",
    )

    def __init__(self, owner: str, members: tuple[str, ...], delays: Mapping[str, int]) -> None:
        self.members = members
        self.there = set_of(members)
        self._owner = owner
        self._delays = delays
        self._hops: dict[str, str | None] = {}
        self._roots: dict[str, str] = {}
        self._closest: dict[tuple[int, int], str] = {}
        self._lines: dict[tuple[str, int], tuple[str, ...]] = {}

    def root_of(self, key: str) -> str:
        """Return the root of a key."""
        root = self._roots.get(key)
        if root is None:
            if len(self._roots) >= _KEYS_MAX:
                self._roots.clear()
            root = self._roots[key] = root_among(self.members, key)
        return root

    def line_of(self, key: str, count: int) -> tuple[str, ...]:
        """Return the root of a key, who would be without it, and so on, up to a count."""
        line = self._lines.get((key, count))
        if line is None:
            if len(self._lines) >= _KEYS_MAX:
                self._lines.clear()
            others = list(self.members)
            first: list[str] = []
            while others and len(first) < count:
                first.append(root_among(others, key))
                others.remove(first[-1])
            line = self._lines[key, count] = tuple(first)
        return line

    def next_hop(self, key: str) -> str | None:
        """Return whom to pass a message for a key or a broker to; None when it has arrived."""
        try:
            return self._hops[key]
        except KeyError:
            if len(self._hops) >= _KEYS_MAX:
                self._hops.clear()
            hop = self._hops[key] = self._find(key)
            return hop

    def row(self, level: int) -> dict[str, str]:
        """Return whom to pass on to what is for others that share so many digits with the owner.

        By the prefix that they have, which is a digit longer.
        """
        members, shared = self.members, self._owner[:level]
        row: dict[str, str] = {}
        first = bisect_left(members, shared)
        while first < len(members) and members[first].startswith(shared):
            prefix = members[first][: level + 1]
            end = bisect_left(members, shared + chr(ord(prefix[-1]) + 1), first)
            if not self._owner.startswith(prefix):
                row[prefix] = self._closest_of(first, end)
            first = end
        return row

    def _find(self, key: str) -> str | None:
        members = self.members
        first, end = 0, len(members)
        level = 0
        while end - first > 1:
            first, end = narrowed(members, key[level], level=level, first=first, end=end)
            if members[first][level] != self._owner[level]:
                return self._closest_of(first, end)
            level += 1
        return None if members[first] == self._owner else members[first]

    def _closest_of(self, first: int, end: int) -> str:
        closest = self._closest.get((first, end))
        if closest is None:
            # The first of equals is the one with the smallest identifier.
            closest = min(self.members[first:end], key=self._delays.__getitem__)
            self._closest[first, end] = closest
        return closest


# Of a broker to which nobody has measured the delay: far away, until a ping comes back.
_UNKNOWN_NS = 1_000_000_000

_REFRESH_NS = 10_000_000_000


# What a broker knows about the way to others: delays and costs, given and measured.


class Distances:
    """Delays and link costs from one broker to others.

    Routes rest on `delays`, which follow what is measured only by and by: a route that
    changes with every wobble of the network would be no better, and dearer to keep.
    """

    def __init__(self) -> None:
        self.delays: dict[str, int] = {}
        self._measured: dict[str, int] = {}
        self._link_costs: dict[str, float] = {}
        self._stale = False
        self._refreshed_ns: int | None = None

    def give(self, neighbours: tuple[Neighbour, ...]) -> None:
        """Take what the host says."""
        self._measured.clear()
        for neighbour in neighbours:
            self.delays[neighbour.identity] = neighbour.delay_ns
            if neighbour.link_cost != 1.0:
                self._link_costs[neighbour.identity] = neighbour.link_cost
            else:
                self._link_costs.pop(neighbour.identity, None)

    def expect(self, peer: str) -> bool:
        """Be ready for a peer; return whether the delay to it is known."""
        if peer not in self.delays:
            self.delays[peer] = _UNKNOWN_NS
        return self.delays[peer] != _UNKNOWN_NS or peer in self._measured

    def measure(self, peer: str, round_trip_ns: int) -> None:
        """Take what a ping has measured; half of a way there and back."""
        if round_trip_ns < 0:
            return
        self.expect(peer)
        delay_ns = round_trip_ns // 2
        before_ns = self._measured.get(peer)
        if before_ns is not None:
            delay_ns = before_ns + (delay_ns - before_ns) // 4
        self._measured[peer] = delay_ns
        self._stale = self._stale or self._is_off(peer)

    def refresh(self, now_ns: int) -> bool:
        """Let routes follow what was measured, if it is time; return whether they change."""
        if not self._stale or (
            self._refreshed_ns is not None and now_ns - self._refreshed_ns < _REFRESH_NS
        ):
            return False
        self._stale = False
        self._refreshed_ns = now_ns
        off = [peer for peer in self._measured if self._is_off(peer)]
        for peer in off:
            self.delays[peer] = self._measured[peer]
        return bool(off)

    def delay_ns_to(self, peer: str) -> int:
        """Return the delay to a peer, as measured last or else as given."""
        delay_ns = self._measured.get(peer)
        return self.delays.get(peer, _UNKNOWN_NS) if delay_ns is None else delay_ns

    def link_cost_to(self, peer: str) -> float:
        """Return the cost of the link to a peer."""
        return self._link_costs.get(peer, 1.0)

    def _is_off(self, peer: str) -> bool:
        given_ns = self.delays[peer]
        return abs(self._measured[peer] - given_ns) * 5 > given_ns


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

    def status(self, peer: str) -> MemberStatus:
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
        if self.status(peer) is MemberStatus.ALIVE:
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
        own = News(sender, message.incarnation, MemberStatus.ALIVE, message.version)
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
        if contact is not None and self.status(contact) is MemberStatus.UNKNOWN:
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
        down = roster.away(MemberStatus.DOWN)
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
