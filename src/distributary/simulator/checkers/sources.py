"""Sources: nobody publishes under what is another tenant's."""

from __future__ import annotations

from distributary.simulator.checkers.ledger import Ledger
from distributary.simulator.checkers.violation import Checker

__all__ = ["SourcesCheck"]


class SourcesCheck(Checker):
    """Checks that whoever publishes under another tenant's source is refused."""

    name = "sources"

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self._ledger = ledger

    def finish(self, now_ns: int) -> None:
        """Look through what was accepted though it must not be."""
        for at_ns, what in self._ledger.stolen:
            self.complain(at_ns, what)
