"""Selection: a client gets what its filter asks for, in the format that its profile selects."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence

from distributary.broker.addresses import tenant_of
from distributary.broker.settings import Settings, ns
from distributary.content import AdaptationGraph, DeviceProfile, Publication
from distributary.content.format_choice import choices, format_index
from distributary.simulator.checkers.ledger import Form, Ledger, PublishedEvent, Receipt
from distributary.simulator.checkers.violation import Checker

__all__ = ["SelectionCheck"]

# What a conversion changes.
_OF_CONTENT = frozenset(("datacontenttype", "dataschema", "dataref", "datasize"))


class SelectionCheck(Checker):
    """Checks that nobody gets what it did not ask for, or in another format than it should.

    Parameters
    ----------
    refused
        The formats into which the content of a publication could not be converted, or in which it
        could not be fetched: what needs them, for itself or on the way, may be passed over for
        the next entry of a profile.
    deciders
        The settings of the roots that have planned a publication: by the graph of one of them
        its format was chosen. Unless given, all have the same.
    """

    name = "selection"

    def __init__(
        self,
        ledger: Ledger,
        settings: Settings,
        refused: Callable[[PublishedEvent], Collection[str]],
        deciders: Callable[[PublishedEvent], Sequence[Settings]] = lambda _: (),
    ) -> None:
        super().__init__()
        self._ledger = ledger
        self._settings = settings
        self._refused = refused
        self._deciders = deciders
        # Both the home of the publisher and that of the subscriber look at their clocks.
        self._margin_ns = 2 * ns(settings.subscriptions.clock_skew_s)
        self._asked: dict[tuple[str, str, int, str], tuple[str, ...]] = {}
        self._named: dict[int, tuple[str, DeviceProfile | None]] = {}
        ledger.readers.append(self._read)

    def finish(self, now_ns: int) -> None:
        """Look at what came to clients that have nothing to do with it."""
        for at_ns, what in (*self._ledger.strangers, *self._ledger.refusals):
            self.complain(at_ns, what)

    def _read(self, receipt: Receipt) -> None:
        wish, publication = receipt.wish, receipt.published.publication
        if tenant_of(wish.client) != receipt.published.tenant:
            self._wrong(receipt, "which is another tenant's")
            return
        if receipt.event is not None and _differs(receipt.event, publication):
            self._wrong(receipt, "with attributes that its publisher did not give it")
            return
        forms = [
            form
            for form in wish.forms(receipt.published, self._margin_ns)
            if form.filter.matches(publication)
        ]
        if not forms:
            self._wrong(receipt, "which its filter does not ask for")
            return
        faults = [self._fault(receipt, form) for form in forms]
        if None not in faults:
            self._wrong(receipt, str(faults[-1]))

    def _fault(self, receipt: Receipt, form: Form) -> str | None:
        """Return what is wrong with the format, if a subscription was as a client once asked."""
        held = receipt.published.publication.media_type
        if held is None:
            undeliverable = receipt.media_type is None
            return "as undeliverable, though it has no content" if undeliverable else None
        if receipt.media_type is None and (
            receipt.published.lost or held in self._refused(receipt.published)
        ):
            # Its bytes are lost, or could not be brought to everybody.
            return None
        deciders = self._deciders(receipt.published) or (self._settings,)
        right = [self._right(receipt, form, held, settings) for settings in deciders]
        if receipt.media_type in right:
            return None
        expected = right[0]
        wanted = "as undeliverable" if expected is None else f"in {expected}"
        found = "as undeliverable" if receipt.media_type is None else f"in {receipt.media_type}"
        return f"{found}, and should have got it {wanted}"

    def _right(self, receipt: Receipt, form: Form, held: str, settings: Settings) -> str | None:
        """Return the format that a subscriber should have got, if a root has these settings."""
        size_bytes = receipt.published.size_bytes
        graph = settings.graph_for(size_bytes)
        asked = self._formats(form, settings, size_bytes, held)
        # Entries before the one that was served must have been impossible.
        possible = _possible(graph, held, self._refused(receipt.published))
        return next((name for name in asked if name == receipt.media_type or possible(name)), None)

    def _formats(
        self, form: Form, settings: Settings, size_bytes: int, held: str
    ) -> tuple[str, ...]:
        """Return the formats in which a subscriber takes content, the best first."""
        profile = form.subscription.profile
        named = self._named.get(id(profile))
        if named is None:
            name = "" if profile is None else json.dumps(profile.document())
            # With the profile, so that no other one takes its place in memory.
            named = self._named[id(profile)] = (name, profile)
        key = (named[0], settings.graph, size_bytes, held)
        if key not in self._asked:
            found = choices(profile, settings.graph_for(size_bytes), held)
            self._asked[key] = tuple(choice.name for choice in found)
        return self._asked[key]

    def _wrong(self, receipt: Receipt, what: str) -> None:
        self.complain(receipt.at_ns, f"{receipt.wish.name} got {receipt.published.identity} {what}")


def _differs(event: Publication, published: Publication) -> bool:
    """Whether an event is another one that goes by the same source and id."""
    return any(
        event.attributes.get(name) != value
        for name, value in published.attributes.items()
        if name not in _OF_CONTENT
    )


def _possible(graph: AdaptationGraph, held: str, refused: Collection[str]) -> Callable[[str], bool]:
    """Return what can be made without any of the formats that were refused."""
    if not refused:
        return lambda _: True
    own = format_index(graph, held)
    left = [k for k, name in enumerate(graph.names) if name not in refused or k == own]
    smaller = graph.restricted_to(left)
    origin = format_index(smaller, held)
    if origin is None:
        return lambda name: name == held
    reached = {name for k, name in enumerate(smaller.names) if smaller.makeable[origin, k]}
    return lambda name: name in reached or name == held
