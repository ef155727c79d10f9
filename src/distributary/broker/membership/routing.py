"""Routes: where a broker passes messages on to, found when they are asked for.

The answers are those of a routing table (`topology.RoutingTables`). A table would have to be filled
in every broker whenever one comes or goes; here an entry is found the first time that a
message needs it, by bisection in the ascending identifiers, and then remembered.

What a broker knows about the way to others: delays and costs, given and measured.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from distributary.broker.host import Neighbour
from distributary.broker.membership.roster import set_of
from distributary.topology.prefix_routing import narrowed, root_among

__all__ = ["Distances", "Routes"]


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
