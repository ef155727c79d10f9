"""Ends: once a subscription has ended, nothing that is published later comes for it."""

from __future__ import annotations

from distributary.simulator.checkers.ledger import Ledger, Receipt
from distributary.simulator.checkers.violation import Checker

__all__ = ["EndsCheck"]


class EndsCheck(Checker):
    """Checks that nothing new comes for what was unsubscribed, or has ended by itself."""

    name = "ends"

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        ledger.readers.append(self._read)

    def _read(self, receipt: Receipt) -> None:
        ended_ns, published = receipt.wish.ended_ns, receipt.published
        if ended_ns is not None and published.sent_ns > ended_ns:
            self.complain(
                receipt.at_ns,
                f"{receipt.wish.name} ended by {ended_ns / 1e9:.3f} s and got "
                f"{published.identity}, published at {published.sent_ns / 1e9:.3f} s",
            )
