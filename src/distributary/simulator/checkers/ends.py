"""Ends: once a subscription has ended, nothing that is published later comes for it."""

from __future__ import annotations

from distributary.simulator.checkers.ledger import Copy, Ledger
from distributary.simulator.checkers.violation import Violation

__all__ = ["Ends"]


class Ends:
    """Checks that ended subscriptions get nothing new: unsubscribed ones and expired leases.

    Parameters
    ----------
    ledger
        What clients know.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.violations: list[Violation] = []
        ledger.readers.append(self._read)

    def finish(self, now_ns: int) -> None:
        """Do nothing: what came too late was seen when it came."""

    def _read(self, copy: Copy) -> None:
        ended_ns = copy.wish.ended_ns
        if ended_ns is not None and copy.published.sent_ns > ended_ns:
            self.violations.append(
                Violation(
                    "ends",
                    copy.at_ns,
                    f"{copy.wish.subscription.id} ended by {ended_ns / 1e9:.3f} s and got "
                    f"{copy.published.identity}, published at "
                    f"{copy.published.sent_ns / 1e9:.3f} s",
                )
            )
