"""Selection: a client gets what its filter asks for, in the format that its profile selects."""

from __future__ import annotations

from collections.abc import Callable

from distributary.broker.settings import Settings
from distributary.content import Subscription
from distributary.content.format_choice import choices
from distributary.simulator.checkers.ledger import Ledger, Receipt
from distributary.simulator.checkers.violation import Checker

__all__ = ["SelectionCheck"]


class SelectionCheck(Checker):
    """Checks that nobody gets what it did not ask for, or in another format than it should.

    Parameters
    ----------
    may_fail
        Whether a conversion into a format can have failed, so that the next entry of a
        profile is right as well.
    """

    name = "selection"

    def __init__(self, ledger: Ledger, settings: Settings, may_fail: Callable[[str], bool]) -> None:
        super().__init__()
        self._ledger = ledger
        self._settings = settings
        self._may_fail = may_fail
        self._asked: dict[tuple[str, int, str], tuple[str, ...]] = {}
        ledger.readers.append(self._read)

    def finish(self, now_ns: int) -> None:
        """Look at what came to clients that have nothing to do with it."""
        for at_ns, what in (*self._ledger.strangers, *self._ledger.refusals):
            self.complain(at_ns, what)

    def _read(self, receipt: Receipt) -> None:
        wish, publication = receipt.wish, receipt.published.publication
        if not wish.filter.matches(publication):
            self._wrong(receipt, "which its filter does not ask for")
            return
        held = publication.media_type
        if held is None:
            if receipt.media_type is None:
                self._wrong(receipt, "as undeliverable, though it has no content")
            return
        asked = self._formats(wish.subscription, receipt.published.size_bytes, held)
        # Entries before the one that was served must have failed.
        expected = next(
            (name for name in asked if name == receipt.media_type or not self._may_fail(name)), None
        )
        if receipt.media_type != expected:
            wanted = "as undeliverable" if expected is None else f"in {expected}"
            found = "as undeliverable" if receipt.media_type is None else f"in {receipt.media_type}"
            self._wrong(receipt, f"{found}, and should have got it {wanted}")

    def _formats(self, subscription: Subscription, size_bytes: int, held: str) -> tuple[str, ...]:
        """Return the formats in which a subscriber takes content, the best first."""
        key = (subscription.id, size_bytes, held)
        if key not in self._asked:
            found = choices(subscription.profile, self._settings.graph_for(size_bytes), held)
            self._asked[key] = tuple(choice.name for choice in found)
        return self._asked[key]

    def _wrong(self, receipt: Receipt, what: str) -> None:
        subscription = receipt.wish.subscription
        self.complain(receipt.at_ns, f"{subscription.id} got {receipt.published.identity} {what}")
