"""Order: what a session publishes in one cell comes in that order."""

from __future__ import annotations

from distributary.simulator.checkers.ledger import Ledger, Receipt
from distributary.simulator.checkers.violation import Checker

__all__ = ["OrderCheck"]


class OrderCheck(Checker):
    """Checks that no subscription gets an older event after a newer one.

    Of those that one session publishes in one cell, that is.

    What two clients publish as the same event comes when the first of the two gets through.
    """

    name = "order"

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self._latest: dict[tuple[str, str, int], int] = {}
        ledger.readers.append(self._read)

    def _read(self, receipt: Receipt) -> None:
        published = receipt.published
        if published.twin:
            return
        key = (receipt.wish.name, published.session, published.cell)
        latest = self._latest.get(key, 0)
        if published.order < latest:
            self.complain(
                receipt.at_ns,
                f"{key[0]} got {published.identity}, number {published.order} of its session, "
                f"after number {latest} of the same cell",
            )
        self._latest[key] = max(latest, published.order)
