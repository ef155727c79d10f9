"""Routes: where a broker passes messages on to, found when they are asked for.

The answers are those of a routing table (`topology.RoutingTables`). A table would have to be filled
in every broker whenever one comes or goes; here an entry is found the first time that a
message needs it, by bisection in the ascending identifiers, and then remembered.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from distributary.topology.prefix_routing import narrowed, root_among

__all__ = ["Routes"]


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
    """

    __slots__ = ("_closest", "_delays", "_hops", "_others", "_owner", "_roots", "members")

    def __init__(self, owner: str, members: tuple[str, ...], delays: Mapping[str, int]) -> None:
        self.members = members
        self._owner = owner
        self._delays = delays
        self._hops: dict[str, str | None] = {}
        self._roots: dict[str, str] = {}
        self._closest: dict[tuple[int, int], str] = {}
        self._others: Routes | None = None

    def __contains__(self, identity: str) -> bool:
        place = bisect_left(self.members, identity)
        return place < len(self.members) and self.members[place] == identity

    @property
    def others(self) -> Routes:
        """The same overlay without the owner."""
        if self._others is None:
            members = tuple(member for member in self.members if member != self._owner)
            self._others = Routes(self._owner, members, self._delays)
        return self._others

    def root_of(self, key: str) -> str:
        """Return the root of a key."""
        root = self._roots.get(key)
        if root is None:
            root = self._roots[key] = root_among(self.members, key)
        return root

    def next_hop(self, key: str) -> str | None:
        """Return whom to pass a message for a key or a broker to; None when it has arrived."""
        try:
            return self._hops[key]
        except KeyError:
            hop = self._hops[key] = self._find(key)
            return hop

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
