"""Roots: once all is quiet, every broker knows all others, and every key has one root."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from distributary.broker.membership.membership import Membership
from distributary.simulator.checkers.violation import Checker
from distributary.simulator.world import World
from distributary.topology import shared_prefix_length

__all__ = ["RootsCheck"]

_NAMED_MAX = 5


class RootsCheck(Checker):
    """Checks that lookups end at the same broker from everywhere, in few hops."""

    name = "roots"

    def __init__(self, world: World, keys: Sequence[str]) -> None:
        super().__init__()
        self._world = world
        self._keys = keys

    def finish(self, now_ns: int) -> None:
        """Look every key up from every broker that is up."""
        up = sorted(i for i, node in self._world.nodes.items() if node.broker is not None)
        if not up:
            return
        agreeing = self._agree(up, now_ns)
        if agreeing:
            self._look_up(up, now_ns)

    def _agree(self, up: list[str], now_ns: int) -> bool:
        """See whether everybody knows exactly those who are up."""
        wrong = [i for i in up if list(self._membership(i).alive()) != up]
        for identity in wrong[:_NAMED_MAX]:
            known = set(self._membership(identity).alive())
            self.complain(
                now_ns,
                f"{identity} takes {len(known - set(up))} to be up that are not, and misses "
                f"{len(set(up) - known)} of {len(up)}",
            )
        return not wrong

    def _look_up(self, up: list[str], now_ns: int) -> None:
        ordered = pairwise(up)
        hops_max = max((shared_prefix_length(one, other) for one, other in ordered), default=0) + 1
        complaints = 0
        for key in self._keys:
            roots: set[str] = set()
            for start in up:
                at, hops = start, 0
                following = self._membership(at).next_hop(key)
                while following is not None and hops <= hops_max:
                    at, hops = following, hops + 1
                    following = self._membership(at).next_hop(key)
                roots.add(at)
                if hops > hops_max and complaints < _NAMED_MAX:
                    complaints += 1
                    self.complain(now_ns, f"{key} takes more than {hops_max} hops from {start}")
            if len(roots) > 1 and complaints < _NAMED_MAX:
                complaints += 1
                self.complain(now_ns, f"{key} has {len(roots)} roots: {', '.join(sorted(roots))}")

    def _membership(self, identity: str) -> Membership:
        broker = self._world.nodes[identity].broker
        assert broker is not None
        return broker.core.membership
