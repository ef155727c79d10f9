"""Delays: whoever has nothing to do with a fault does not wait for those who have."""

from __future__ import annotations

from collections.abc import Callable

from distributary.broker.settings import ns
from distributary.simulator.checkers.ledger import Ledger, Receipt
from distributary.simulator.checkers.violation import Checker

__all__ = ["DelaysCheck"]

_NAMED_MAX = 10


class DelaysCheck(Checker):
    """Compares how long deliveries take with what a scenario says that they may.

    Parameters
    ----------
    longest_s
        The longest that one may take, from when it was first sent; 0 when that does not matter.
    concerned
        Whether something goes wrong in the run with a client, or with a broker.
    """

    name = "delays"

    def __init__(self, ledger: Ledger, longest_s: float, concerned: Callable[[str], bool]) -> None:
        super().__init__()
        self._longest_ns = ns(longest_s)
        self._concerned = concerned
        self.compared = 0
        if longest_s:
            ledger.readers.append(self._read)

    def _read(self, receipt: Receipt) -> None:
        published = receipt.published
        if self._concerned(receipt.wish.client) or self._concerned(published.home):
            return
        self.compared += 1
        took_ns = receipt.at_ns - published.sent_ns
        if took_ns > self._longest_ns and len(self.violations) < _NAMED_MAX:
            self.complain(
                receipt.at_ns,
                f"{receipt.wish.name} waited {took_ns / 1e9:.1f} s for {published.identity}, "
                f"although nothing was wrong with it; {self._longest_ns / 1e9:g} s are enough",
            )

    def finish(self, now_ns: int) -> None:
        """See that somebody was compared at all."""
        if self._longest_ns and not self.compared:
            self.complain(now_ns, "everybody was concerned by a fault")
