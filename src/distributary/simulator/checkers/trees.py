"""Trees: once all is quiet, every broker in a stream tree hangs from its root."""

from __future__ import annotations

from collections.abc import Collection

from distributary.broker.telemetry import TreeLinked
from distributary.simulator.checkers.violation import Violation

__all__ = ["Trees"]


class Trees:
    """Follows the links of stream trees, and checks at the end that none is cut off or a ring.

    Attributes
    ----------
    parents
        The parent of each broker that is in a tree, by the tree's name.
    """

    def __init__(self) -> None:
        self.parents: dict[str, dict[str, str]] = {}
        self.violations: list[Violation] = []
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

    def finish(self, now_ns: int, roots: Collection[str], lost: Collection[str]) -> None:
        """Follow every link up.

        Parameters
        ----------
        roots
            The homes of the publishers, one of which is the root of each tree.
        lost
            Brokers that are never coming back: their own links do not count.
        """
        for name, parents in sorted(self.parents.items()):
            for broker in sorted(parents):
                if broker in lost:
                    continue
                at, passed = broker, {broker}
                while at in parents:
                    at = parents[at]
                    if at in passed:
                        self._complain(now_ns, f"{name} has a ring through {broker} and {at}")
                        break
                    passed.add(at)
                else:
                    if at not in roots or at in lost:
                        self._complain(now_ns, f"{broker} hangs from {at}, no root, in {name}")

    def _complain(self, at_ns: int, what: str) -> None:
        self.violations.append(Violation("trees", at_ns, what))
