"""The overlay: who is there, who is the root of what, and who hangs from whom."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from distributary.broker.adaptation.messages import Hold, HoldAnswer, HoldRelease
from distributary.broker.membership.membership import Membership
from distributary.broker.telemetry import TreeLinked
from distributary.simulator.checkers.violation import Checker
from distributary.simulator.world import World
from distributary.topology import shared_prefix_length

__all__ = ["HoldsCheck", "OutagesCheck", "RootsCheck", "TreesCheck"]

_WRONG_MAX = 5


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
        for identity in wrong[:_WRONG_MAX]:
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
                if hops > hops_max and complaints < _WRONG_MAX:
                    complaints += 1
                    self.complain(now_ns, f"{key} takes more than {hops_max} hops from {start}")
            if len(roots) > 1 and complaints < _WRONG_MAX:
                complaints += 1
                self.complain(now_ns, f"{key} has {len(roots)} roots: {', '.join(sorted(roots))}")

    def _membership(self, identity: str) -> Membership:
        broker = self._world.nodes[identity].broker
        assert broker is not None
        return broker.core.membership


class TreesCheck(Checker):
    """Follows the links of stream trees, and checks at the end that none is cut off or a ring.

    Parameters
    ----------
    roots
        Returns the homes of the publishers, one of which is the root of each tree.
    lost
        Brokers that are never coming back: their own links do not count.

    Attributes
    ----------
    parents
        The parent of each broker that is in a tree, by the tree's name.
    """

    name = "trees"

    def __init__(self, roots: Callable[[], Collection[str]], lost: Collection[str] = ()) -> None:
        super().__init__()
        self._roots = roots
        self._lost = lost
        self.parents: dict[str, dict[str, str]] = {}
        self.links = 0

    def watch(self, broker: str, record: object, now_ns: int) -> None:
        """Take note of a link."""
        if isinstance(record, TreeLinked):
            self.links += 1
            tree = self.parents.setdefault(record.tree, {})
            if record.parent is None:
                tree.pop(broker, None)
            else:
                tree[broker] = record.parent

    def finish(self, now_ns: int) -> None:
        """Follow every link up."""
        roots, lost = self._roots(), self._lost
        for name, parents in sorted(self.parents.items()):
            for broker in sorted(parents):
                if broker in lost:
                    continue
                at, passed = broker, {broker}
                while at in parents:
                    at = parents[at]
                    if at in passed:
                        self.complain(now_ns, f"{name} has a ring through {broker} and {at}")
                        break
                    passed.add(at)
                else:
                    if at not in roots or at in lost:
                        self.complain(now_ns, f"{broker} hangs from {at}, no root, in {name}")


_Key = tuple[str, str, str, int]


@dataclass
class _Asked:
    """A request to hold still: when, and when it was granted."""

    at_ns: int
    granted_ns: int | None = None


class HoldsCheck(Checker):
    """Listens to the messages of adaptation.

    Every child that grants a hold is released, whether it was moved or not. In a run without
    faults an answer that takes as long as half of a hold means that brokers wait for each
    other in a ring, which only the end of patience resolves.

    Parameters
    ----------
    hold_ns
        How long a hold lasts that nobody releases.
    """

    name = "holds"
    names_all = False

    def __init__(self, hold_ns: int, *, faultless: bool) -> None:
        super().__init__()
        self._hold_ns = hold_ns
        self._faultless = faultless
        self._asked: dict[_Key, _Asked] = {}
        self.count = 0

    def listen(self, sender: str, to: str, message: object, now_ns: int) -> None:
        """Take note of a message."""
        if isinstance(message, Hold):
            self.count += 1
            self._asked.setdefault((sender, to, message.tree, message.round), _Asked(now_ns))
        elif isinstance(message, HoldAnswer):
            key = (to, sender, message.tree, message.round)
            asked = self._asked.get(key)
            if asked is not None:
                self._answered(key, asked, message, now_ns)
        elif isinstance(message, HoldRelease):
            self._asked.pop((sender, to, message.tree, message.round), None)

    def finish(self, now_ns: int) -> None:
        """Look for whom nobody has released."""
        if not self._faultless:
            return
        late = now_ns - self._hold_ns
        for (holder, child, tree, number), asked in sorted(self._asked.items()):
            if asked.granted_ns is not None and asked.granted_ns < late:
                what = f"{child} held still for {holder} in round {number} of {tree}"
                self.complain(asked.granted_ns, f"{what}, and was never released")

    def _answered(self, key: _Key, asked: _Asked, message: HoldAnswer, now_ns: int) -> None:
        if message.figures is None:
            del self._asked[key]
        elif asked.granted_ns is None:
            asked.granted_ns = now_ns
        if self._faultless and now_ns - asked.at_ns > self._hold_ns // 2:
            holder, child, tree, number = key
            self.complain(
                now_ns,
                f"{child} took {(now_ns - asked.at_ns) / 1e9:.1f} s to answer {holder} in round "
                f"{number} of {tree}",
            )


class OutagesCheck(Checker):
    """Nobody is declared down by a broker whose host has no connection."""

    name = "outages"

    def __init__(self) -> None:
        super().__init__()
        self._there: dict[str, frozenset[str]] = {}

    def detached(self, broker: str, alive: tuple[str, ...]) -> None:
        """Note whom a broker takes to be there when it is told."""
        self._there[broker] = frozenset(alive)

    def reattached(self, broker: str, there: tuple[str, ...], now_ns: int) -> None:
        """See that all of them are there or have left when it is told that this is over."""
        missing = sorted(self._there.pop(broker, frozenset()) - set(there))
        if missing:
            what = f"{broker} has declared {', '.join(missing)} down without a connection"
            self.complain(now_ns, what)
