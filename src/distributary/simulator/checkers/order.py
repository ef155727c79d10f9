"""Order: what one publisher publishes in one cell comes in that order."""

from __future__ import annotations

from distributary.simulator.checkers.ledger import Copy, Ledger
from distributary.simulator.checkers.violation import Violation

__all__ = ["Order"]


class Order:
    """Checks that no subscription gets an older event of a source and cell after a newer one.

    Parameters
    ----------
    ledger
        What clients know.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._latest: dict[tuple[str, str, int], int] = {}
        self.violations: list[Violation] = []
        ledger.readers.append(self._read)

    def finish(self, now_ns: int) -> None:
        """Do nothing: what came out of order was seen when it came."""

    def _read(self, copy: Copy) -> None:
        published = copy.published
        key = (copy.wish.subscription.id, published.publication.source, published.cell)
        latest = self._latest.get(key, 0)
        if published.order < latest:
            self.violations.append(
                Violation(
                    "order",
                    copy.at_ns,
                    f"{key[0]} got {published.identity}, number {published.order} of its source, "
                    f"after number {latest} of the same cell",
                )
            )
        self._latest[key] = max(latest, published.order)
