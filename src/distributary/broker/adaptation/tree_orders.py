"""Orders to bring a tree into a shape that was planned elsewhere.

The root tells one broker after the other to go below its wanted parent, nearest to the root
first: what a broker is to go below has its own place by then. Each step is the `Order` that
adaptation gives too, so that whoever moves asks first and no cycle can come of it, whatever
else moves meanwhile. A step that is refused may become possible by a later one, so that those
are tried once more at the end. An order is volatile: after a crash of the root it is given
again by whoever wants the tree, as `TreeOrdered` was never reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributary.broker.adaptation.messages import Moved, Order
from distributary.broker.addresses import Address
from distributary.broker.effects import Turn
from distributary.broker.host import OrderTree
from distributary.broker.settings import ns
from distributary.broker.telemetry import TreeOrdered
from distributary.broker.timers import Timer

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["TreeOrders"]

_TRIES = 2


class _Shaping:
    """A tree that is being brought into a shape.

    Attributes
    ----------
    round
        Tells the answers to this order from those of adaptation's rounds.
    waiting, refused
        (broker, parent): steps to be made, the next one last, and those made in vain.
    """

    __slots__ = ("moved", "refused", "round", "timer", "tries", "waiting")

    def __init__(self, round_: int, steps: list[tuple[str, str]]) -> None:
        self.round = round_
        self.waiting = steps[::-1]
        self.refused: list[tuple[str, str]] = []
        self.moved = 0
        self.tries = 1
        self.timer: Timer | None = None


class TreeOrders:
    """The orders that one broker carries out for trees whose root it is."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._shaping: dict[str, _Shaping] = {}
        self._wait_ns = ns(core.settings.adaptation.hold_s)
        self._round = 0

    def take_order(self, message: OrderTree, sender: Address, turn: Turn) -> None:
        """Begin to bring a tree into a shape; a newer order takes the place of an older one."""
        tree = message.tree
        reason = self._objection(tree)
        steps = [] if reason else _from_the_root(self._core.identity, dict(message.parents))
        if not reason and len(steps) < len(dict(message.parents)):
            reason = "the shape goes round in a circle"
        if reason:
            turn.report(TreeOrdered(tree, 0, message.parents, reason))
            return
        self._end(tree)
        # Later than any round of adaptation before a crash, which nobody remembers.
        self._round = max(self._round + 1, turn.now_ns)
        self._shaping[tree] = _Shaping(self._round, steps)
        self._next(tree, turn)

    def moved(self, message: Moved, sender: Address, turn: Turn) -> bool:
        """Take the answer to a step, if it is one."""
        shaping = self._shaping.get(message.tree)
        if shaping is None or shaping.round != message.round:
            return False
        if shaping.waiting and shaping.waiting[-1][0] == sender:
            self._answered(message.tree, shaping, turn, done=message.done)
        return True

    def _objection(self, tree: str) -> str:
        streams = self._core.streams
        if tree not in streams.trees() or streams.root(tree) != self._core.identity:
            return "this broker is not the root of such a tree"
        return ""

    def _next(self, tree: str, turn: Turn) -> None:
        shaping = self._shaping[tree]
        if not shaping.waiting and shaping.refused and shaping.tries < _TRIES:
            shaping.tries += 1
            shaping.waiting, shaping.refused = shaping.refused[::-1], []
        if not shaping.waiting:
            self._end(tree)
            turn.report(TreeOrdered(tree, shaping.moved, tuple(shaping.refused)))
            return
        broker, parent = shaping.waiting[-1]
        turn.send(broker, Order(tree, shaping.round, parent))
        shaping.timer = self._core.timers.at(turn.now_ns + self._wait_ns, self._silent, tree)

    def _silent(self, turn: Turn, tree: str) -> None:
        self._answered(tree, self._shaping[tree], turn, done=False)

    def _answered(self, tree: str, shaping: _Shaping, turn: Turn, *, done: bool) -> None:
        if shaping.timer is not None:
            shaping.timer.cancel()
        step = shaping.waiting.pop()
        if done:
            shaping.moved += 1
        else:
            shaping.refused.append(step)
        self._next(tree, turn)

    def _end(self, tree: str) -> None:
        shaping = self._shaping.pop(tree, None)
        if shaping is not None and shaping.timer is not None:
            shaping.timer.cancel()


def _from_the_root(root: str, parents: dict[str, str]) -> list[tuple[str, str]]:
    """Return (broker, parent) level by level; those that are not below the root are left out."""
    children: dict[str, list[str]] = {}
    for broker in sorted(parents):
        children.setdefault(parents[broker], []).append(broker)
    steps: list[tuple[str, str]] = []
    level = sorted(set(children) - set(parents) | {root})
    while level:
        following = [(child, parent) for parent in level for child in children.pop(parent, ())]
        steps += following
        level = [child for child, _ in following]
    return steps
