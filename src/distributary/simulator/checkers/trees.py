"""Trees: once all is quiet, every broker in a stream tree hangs from its root."""

from __future__ import annotations

from collections.abc import Callable, Collection

from distributary.broker.telemetry import TreeLinked
from distributary.simulator.checkers.violation import Checker

__all__ = ["TreesCheck"]


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
