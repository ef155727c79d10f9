"""The ledger: what clients asked for, what they published and what they got.

It is written by the clients, who stand outside of the overlay, and read by the checkers. No
broker knows of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from distributary.content import Publication, Subscription
from distributary.filters import Filter, Index

__all__ = ["Ledger", "PublishedEvent", "Receipt", "Wish", "wish_name"]


@dataclass
class Wish:
    """A subscription as its client knows it.

    Attributes
    ----------
    registered_ns
        When the client last learnt that it is registered; None while it is not.
    ending_ns
        When the client began to end it: what is published later is not owed.
    ended_ns
        From when on nothing that is published may be delivered.
    """

    subscription: Subscription
    client: str
    filter: Filter
    asked_ns: int
    registered_ns: int | None = None
    ending_ns: int | None = None
    ended_ns: int | None = None

    @property
    def name(self) -> str:
        """What the ledger calls it: clients may give theirs the same id."""
        return wish_name(self.client, self.subscription.id)


def wish_name(client: str, subscription_id: str) -> str:
    """Return what the ledger calls a subscription of a client."""
    return f"{subscription_id} of {client}"


@dataclass
class PublishedEvent:
    """A publication as its publisher knows it.

    Attributes
    ----------
    order
        Counts what its source has published.
    sent_ns, accepted_ns
        When the publisher first sent it, and when it learnt that it was taken.
    home
        The broker that it was last sent to.
    digest
        Of its content, if that was sent beside the event.
    owed
        The subscriptions that must get it.
    twin
        Whether another client publishes it as well; then it has no place in an order.
    """

    publication: Publication
    cell: int
    size_bytes: int
    order: int
    sent_ns: int
    home: str
    digest: str = ""
    accepted_ns: int | None = None
    owed: set[str] = field(default_factory=set)
    twin: bool = False

    @property
    def identity(self) -> tuple[str, str]:
        """(`source`, `id`)."""
        return self.publication.identity


@dataclass(frozen=True)
class Receipt:
    """A publication as a client got it for a subscription.

    Attributes
    ----------
    media_type
        The format of its content; None when it was undeliverable.
    reason
        Why it was undeliverable.
    """

    wish: Wish
    published: PublishedEvent
    at_ns: int
    media_type: str | None
    reason: str = ""


class Ledger:
    """What clients know of a run.

    Attributes
    ----------
    readers
        Called with every receipt.
    strangers
        What was delivered to a client though it asked for no such thing, with the time.
    refusals
        What brokers refused, with the time.
    excused
        How many deliveries were owed until a broker was lost for ever.
    progress_ns
        When something owed arrived last.
    """

    def __init__(self, cell_of: Callable[[Publication], int]) -> None:
        self._cell_of = cell_of
        self._index = Index()
        self._orders: dict[str, int] = {}
        self.wishes: dict[str, Wish] = {}
        self.published: dict[tuple[str, str], PublishedEvent] = {}
        self.got: dict[tuple[str, tuple[str, str]], Receipt] = {}
        self.progress_ns = 0
        self.readers: list[Callable[[Receipt], None]] = []
        self.strangers: list[tuple[int, str]] = []
        self.refusals: list[tuple[int, str]] = []
        self.excused = 0
        self._twins: set[tuple[str, str]] = set()

    def has_twin(self, identity: tuple[str, str]) -> None:
        """Note that two clients publish the same, under one source and id."""
        self._twins.add(identity)

    def asked(self, subscription: Subscription, client: str, now_ns: int) -> None:
        """A client asks for a subscription, for the first time."""
        wish = Wish(subscription, client, Filter.parse(list(subscription.filters)), now_ns)
        self.wishes[wish.name] = wish
        if subscription.tolerance is None:
            self._index.add_filter(wish.name, wish.filter)

    def registered(self, name: str, now_ns: int) -> None:
        """A client learns that its subscription is registered."""
        wish = self.wishes[name]
        if wish.registered_ns is None:
            wish.registered_ns = now_ns

    def ending(self, name: str, now_ns: int) -> None:
        """A client begins to end a subscription, or to be silent about it.

        What is on its way to it may still come or not.
        """
        wish = self.wishes[name]
        if wish.ending_ns is None:
            wish.ending_ns = now_ns
            for identity, entry in self.published.items():
                if (name, identity) not in self.got:
                    entry.owed.discard(name)

    def ended(self, name: str, at_ns: int) -> None:
        """From a time on, nothing that is published may come for a subscription."""
        wish = self.wishes[name]
        if wish.ended_ns is None:
            wish.ended_ns = at_ns

    def prolonged(self, name: str, at_ns: int) -> None:
        """A subscription that has not ended by now lives until a time."""
        wish = self.wishes[name]
        if wish.ended_ns is not None:
            wish.ended_ns = max(wish.ended_ns, at_ns)

    def sent(
        self, publication: Publication, size_bytes: int, home: str, now_ns: int, digest: str = ""
    ) -> None:
        """A publisher sends a publication to its home; again, when it is not accepted."""
        known = self.published.get(publication.identity)
        if known is not None:
            known.home = home
            return
        order = self._orders.get(publication.source, 0) + 1
        self._orders[publication.source] = order
        entry = PublishedEvent(
            publication, self._cell_of(publication), size_bytes, order, now_ns, home, digest
        )
        entry.twin = publication.identity in self._twins
        entry.owed.update(
            name
            for name in self._index.match(publication)
            if self._is_registered(self.wishes[name])
        )
        self.published[publication.identity] = entry

    def accepted(self, identity: tuple[str, str], now_ns: int) -> None:
        """A publisher learns that its publication was taken."""
        entry = self.published[identity]
        if entry.accepted_ns is None:
            entry.accepted_ns = now_ns

    def delivered(
        self,
        name: str,
        identity: tuple[str, str],
        *,
        media_type: str | None,
        reason: str = "",
        now_ns: int,
    ) -> None:
        """A client gets a publication, or learns that it cannot have it."""
        wish, entry = self.wishes.get(name), self.published.get(identity)
        if wish is None or entry is None:
            what = "subscription" if wish is None else "publication"
            self.strangers.append((now_ns, f"{identity} came for {name}: nobody made the {what}"))
            return
        receipt = Receipt(wish, entry, now_ns, media_type, reason)
        for read in self.readers:
            read(receipt)
        if (name, identity) not in self.got:
            self.got[name, identity] = receipt
            if name in entry.owed:
                self.progress_ns = now_ns

    def broker_lost(
        self,
        broker: str,
        clients: set[str],
        *,
        is_kept_elsewhere: Callable[[tuple[str, str]], bool],
    ) -> None:
        """A broker is lost for ever, with what it alone had stored.

        Parameters
        ----------
        clients
            Those whose home it was: until they attach elsewhere, they are owed nothing.
        is_kept_elsewhere
            Whether another broker's disk has a publication that was handed to this one.
        """
        for wish in self.wishes.values():
            if wish.client in clients:
                wish.registered_ns = None
        for identity, entry in self.published.items():
            alone = entry.home == broker and not is_kept_elsewhere(identity)
            gone = {
                name
                for name in entry.owed
                if (name, identity) not in self.got
                and (alone or self.wishes[name].client in clients)
            }
            self.excused += len(gone)
            entry.owed -= gone

    @staticmethod
    def _is_registered(wish: Wish) -> bool:
        return wish.registered_ns is not None and wish.ending_ns is None
