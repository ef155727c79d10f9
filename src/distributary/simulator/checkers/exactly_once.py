"""Exactly once: everything owed arrives, and arrives one time."""

from __future__ import annotations

from distributary.simulator.checkers.ledger import Ledger, PublishedEvent, Receipt
from distributary.simulator.checkers.violation import Checker

__all__ = ["ExactlyOnceCheck"]

_NAMED_MAX = 20


class ExactlyOnceCheck(Checker):
    """Checks that nothing comes twice, and at the end that nothing is missing.

    A subscription that was registered before a publication is owed it. One that is being
    registered or ended while it is published may get it or not.

    Attributes
    ----------
    made
        How many owed deliveries were made.
    extra
        How many were made that were not owed, and allowed.
    duplicates
        How many came a second time under another number.
    undeliverable
        How many could not be made in any format that the device takes.
    """

    name = "exactly once"

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self._ledger = ledger
        self.made = 0
        self.extra = 0
        self.duplicates = 0
        self.undeliverable = 0
        ledger.readers.append(self._read)

    @property
    def owed(self) -> int:
        """How many deliveries are owed."""
        return sum(len(entry.owed) for entry in self._due())

    def finish(self, now_ns: int) -> None:
        """Look for what has not come, when it should have by now."""
        missing = [
            (name, entry)
            for entry in self._due()
            for name in sorted(entry.owed)
            if (name, entry.identity) not in self._ledger.got
        ]
        for name, entry in missing[:_NAMED_MAX]:
            self.complain(
                now_ns,
                f"{name} was owed "
                f"{entry.identity}, published at {entry.sent_ns / 1e9:.3f} s, and never got it",
            )
        if len(missing) > _NAMED_MAX:
            more = len(missing) - _NAMED_MAX
            self.complain(now_ns, f"{more:,} more owed deliveries were never made")
        for entry in self._ledger.published.values():
            if entry.accepted_ns is None:
                self.complain(now_ns, f"{entry.identity} was sent and never accepted")

    def _due(self) -> list[PublishedEvent]:
        return [e for e in self._ledger.published.values() if e.accepted_ns is not None]

    def _read(self, receipt: Receipt) -> None:
        name, identity = receipt.wish.name, receipt.published.identity
        if (name, identity) in self._ledger.got:
            self.duplicates += 1
            self.complain(receipt.at_ns, f"{name} got {identity} twice")
        elif name in receipt.published.owed:
            self.made += 1
        else:
            self.extra += 1
        if receipt.media_type is None:
            self.undeliverable += 1
