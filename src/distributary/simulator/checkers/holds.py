"""Holds: whoever is asked to hold still answers, and is released."""

from __future__ import annotations

from dataclasses import dataclass

from distributary.broker.adaptation.messages import Hold, HoldAnswer, HoldRelease
from distributary.simulator.checkers.violation import Checker

__all__ = ["HoldsCheck"]

_NAMED_MAX = 10
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

    def complain(self, at_ns: int, what: str) -> None:
        """Take note of a violation, of the first ones only."""
        if len(self.violations) < _NAMED_MAX:
            super().complain(at_ns, what)
