"""Selection: a client gets what its filter asks for, in the format that its profile selects."""

from __future__ import annotations

from collections.abc import Callable, Collection

from distributary.broker.settings import Settings
from distributary.content.format_choice import choices, format_index
from distributary.simulator.checkers.ledger import Ledger, PublishedEvent, Receipt, Wish
from distributary.simulator.checkers.violation import Checker

__all__ = ["SelectionCheck"]


class SelectionCheck(Checker):
    """Checks that nobody gets what it did not ask for, or in another format than it should.

    Parameters
    ----------
    refused
        The formats into which the content of a publication could not be converted: what needs
        them, for itself or on the way, may be passed over for the next entry of a profile.
    """

    name = "selection"

    def __init__(
        self,
        ledger: Ledger,
        settings: Settings,
        refused: Callable[[PublishedEvent], Collection[str]],
    ) -> None:
        super().__init__()
        self._ledger = ledger
        self._settings = settings
        self._refused = refused
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
        size_bytes = receipt.published.size_bytes
        asked = self._formats(wish, size_bytes, held)
        # Entries before the one that was served must have been impossible.
        possible = self._possible(size_bytes, held, self._refused(receipt.published))
        expected = next(
            (name for name in asked if name == receipt.media_type or possible(name)), None
        )
        if receipt.media_type != expected:
            wanted = "as undeliverable" if expected is None else f"in {expected}"
            found = "as undeliverable" if receipt.media_type is None else f"in {receipt.media_type}"
            self._wrong(receipt, f"{found}, and should have got it {wanted}")

    def _formats(self, wish: Wish, size_bytes: int, held: str) -> tuple[str, ...]:
        """Return the formats in which a subscriber takes content, the best first."""
        key = (wish.name, size_bytes, held)
        if key not in self._asked:
            found = choices(wish.subscription.profile, self._settings.graph_for(size_bytes), held)
            self._asked[key] = tuple(choice.name for choice in found)
        return self._asked[key]

    def _possible(
        self, size_bytes: int, held: str, refused: Collection[str]
    ) -> Callable[[str], bool]:
        """Return what can be made without any of the formats that were refused."""
        if not refused:
            return lambda _: True
        graph = self._settings.graph_for(size_bytes)
        own = format_index(graph, held)
        left = [k for k, name in enumerate(graph.names) if name not in refused or k == own]
        smaller = graph.restricted_to(left)
        origin = format_index(smaller, held)
        if origin is None:
            return lambda name: name == held
        reached = {name for k, name in enumerate(smaller.names) if smaller.makeable[origin, k]}
        return lambda name: name in reached or name == held

    def _wrong(self, receipt: Receipt, what: str) -> None:
        self.complain(receipt.at_ns, f"{receipt.wish.name} got {receipt.published.identity} {what}")
