"""Outages: a host without connection keeps its broker from drawing conclusions."""

from __future__ import annotations

from distributary.simulator.checkers.violation import Checker

__all__ = ["OutagesCheck"]


class OutagesCheck(Checker):
    """Nobody is declared down by a broker whose host has no connection."""

    name = "outages"

    def __init__(self) -> None:
        super().__init__()
        self._there: dict[str, frozenset[str]] = {}

    def detached(self, broker: str, alive: tuple[str, ...]) -> None:
        """Note whom a broker takes to be there when it is told."""
        self._there[broker] = frozenset(alive)

    def reattached(self, broker: str, alive: tuple[str, ...], now_ns: int) -> None:
        """See that it takes all of them to be there when it is told that this is over."""
        missing = sorted(self._there.pop(broker, frozenset()) - set(alive))
        if missing:
            what = f"{broker} has declared {', '.join(missing)} down without a connection"
            self.complain(now_ns, what)
