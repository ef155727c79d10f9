"""Selection: a client gets what its filter asks for, in the format that its profile selects."""

from __future__ import annotations

from collections.abc import Callable

from distributary.broker.settings import Settings
from distributary.content import Subscription
from distributary.content.format_choice import choices
from distributary.simulator.checkers.ledger import Copy, Ledger
from distributary.simulator.checkers.violation import Violation

__all__ = ["Selection"]


class Selection:
    """Checks that nobody gets what it did not ask for, or in another format than it should.

    Parameters
    ----------
    ledger
        What clients know.
    settings
        Where the adaptation graph is.
    may_fail
        Whether a conversion into a format can have failed, so that the next entry of a
        profile is right as well.
    """

    def __init__(self, ledger: Ledger, settings: Settings, may_fail: Callable[[str], bool]) -> None:
        self._ledger = ledger
        self._settings = settings
        self._may_fail = may_fail
        self.violations: list[Violation] = []
        self._asked: dict[tuple[str, int, str], tuple[str, ...]] = {}
        ledger.readers.append(self._read)

    def finish(self, now_ns: int) -> None:
        """Look at what came to clients that have nothing to do with it."""
        for at_ns, what in self._ledger.strangers:
            self.violations.append(Violation("selection", at_ns, what))
        for at_ns, what in self._ledger.refusals:
            self.violations.append(Violation("selection", at_ns, what))

    def _read(self, copy: Copy) -> None:
        wish, publication = copy.wish, copy.published.publication
        if not wish.filter.matches(publication):
            self._complain(copy, "which its filter does not ask for")
            return
        held = publication.media_type
        if held is None:
            if copy.media_type is None:
                self._complain(copy, "as undeliverable, though it has no content")
            return
        asked = self._formats(wish.subscription, copy.published.size_bytes, held)
        # Entries before the one that was served must have failed.
        first = 0
        while (
            first < len(asked) and asked[first] != copy.media_type and self._may_fail(asked[first])
        ):
            first += 1
        expected = asked[first] if first < len(asked) else None
        if copy.media_type != expected:
            wanted = "as undeliverable" if expected is None else f"in {expected}"
            found = "as undeliverable" if copy.media_type is None else f"in {copy.media_type}"
            self._complain(copy, f"{found}, and should have got it {wanted}")

    def _formats(self, subscription: Subscription, size_bytes: int, held: str) -> tuple[str, ...]:
        """Return the formats in which a subscriber takes content, the best first."""
        key = (subscription.id, size_bytes, held)
        if key not in self._asked:
            found = choices(subscription.profile, self._settings.graph_for(size_bytes), held)
            self._asked[key] = tuple(choice.name for choice in found)
        return self._asked[key]

    def _complain(self, copy: Copy, what: str) -> None:
        self.violations.append(
            Violation(
                "selection",
                copy.at_ns,
                f"{copy.wish.subscription.id} got {copy.published.identity} {what}",
            )
        )
