"""Deliveries: what is owed arrives, once, in order and in time, and nothing else does."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence

from distributary.broker.addresses import tenant_of
from distributary.broker.settings import Settings, ns
from distributary.content import AdaptationGraph, DeviceProfile, Publication
from distributary.content.format_choice import choices, format_index
from distributary.simulator.checkers.ledger import Form, Ledger, PublishedEvent, Receipt
from distributary.simulator.checkers.violation import NAMED_MAX, Checker

__all__ = [
    "DelaysCheck",
    "EndsCheck",
    "ExactlyOnceCheck",
    "OrderCheck",
    "SelectionCheck",
    "SourcesCheck",
]

_MISSING_MAX = 20


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
        for name, entry in missing[:_MISSING_MAX]:
            self.complain(
                now_ns,
                f"{name} was owed "
                f"{entry.identity}, published at {entry.sent_ns / 1e9:.3f} s, and never got it",
            )
        if len(missing) > _MISSING_MAX:
            more = len(missing) - _MISSING_MAX
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


class OrderCheck(Checker):
    """Checks that no subscription gets an older event after a newer one.

    Of those that one session publishes in one cell, that is.

    What two clients publish as the same event comes when the first of the two gets through. What
    its publisher has brought to a broker that is lost, and only brokers have that are down, comes
    when these are back.
    """

    name = "order"

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self._latest: dict[tuple[str, str, int], int] = {}
        ledger.readers.append(self._read)

    def _read(self, receipt: Receipt) -> None:
        published = receipt.published
        if published.twin or published.late:
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
    found = event.attributes
    for name, value in published.attributes.items():
        if found.get(name) != value and name not in _OF_CONTENT:
            return True
    return False


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


class SourcesCheck(Checker):
    """Checks that whoever publishes under another tenant's source is refused."""

    name = "sources"

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self._ledger = ledger

    def finish(self, now_ns: int) -> None:
        """Look through what was accepted though it must not be."""
        for at_ns, what in self._ledger.stolen:
            self.complain(at_ns, what)


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
        if took_ns > self._longest_ns and len(self.violations) < NAMED_MAX:
            self.complain(
                receipt.at_ns,
                f"{receipt.wish.name} waited {took_ns / 1e9:.1f} s for {published.identity}, "
                f"although nothing was wrong with it; {self._longest_ns / 1e9:g} s are enough",
            )

    def finish(self, now_ns: int) -> None:
        """See that somebody was compared at all."""
        if self._longest_ns and not self.compared:
            self.complain(now_ns, "everybody was concerned by a fault")
