"""The ledger: what clients asked for, what they published and what they got.

It is written by the clients, who stand outside of the overlay, and read by the checkers. No
broker knows of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from distributary.broker.addresses import tenant_of
from distributary.broker.dissemination.messages import ItemId
from distributary.content import Publication, Subscription
from distributary.filters import Filter, Index

__all__ = ["Ledger", "PublishedEvent", "Receipt", "Wish"]


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


@dataclass
class PublishedEvent:
    """A publication as its publisher knows it.

    Attributes
    ----------
    session, order
        Counts what was published in its session.
    sent_ns, accepted_ns
        When the publisher first sent it, and when it learnt that it was taken.
    home
        The broker that it was last sent to.
    digest
        Of its content, if that was sent beside the event.
    owed
        The subscriptions that must get it.
    tenant
        Its publisher's.
    twin
        Whether it is published in another session as well; then it has no place in an order.
    """

    publication: Publication
    cell: int
    size_bytes: int
    session: str
    order: int
    sent_ns: int
    home: str
    digest: str = ""
    accepted_ns: int | None = None
    owed: set[str] = field(default_factory=set)
    twin: bool = False
    tenant: str = ""

    @property
    def identity(self) -> ItemId:
        """What tells it from others."""
        return ItemId(self.tenant, *self.publication.identity)


@dataclass(frozen=True)
class Receipt:
    """A publication as a client got it for a subscription.

    Attributes
    ----------
    media_type
        The format of its content; None when it was undeliverable.
    reason
        Why it was undeliverable.
    event
        The event as it came, unless it was undeliverable.
    """

    wish: Wish
    published: PublishedEvent
    at_ns: int
    media_type: str | None
    reason: str = ""
    event: Publication | None = None


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
    foreign, stolen
        How often a client was refused a source of another tenant, and what it was not refused,
        with the time.
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
        self.published: dict[ItemId, PublishedEvent] = {}
        self.got: dict[tuple[str, ItemId], Receipt] = {}
        self.progress_ns = 0
        self.readers: list[Callable[[Receipt], None]] = []
        self.strangers: list[tuple[int, str]] = []
        self.refusals: list[tuple[int, str]] = []
        self.foreign = 0
        self.stolen: list[tuple[int, str]] = []
        self.excused = 0
        self._twins: set[ItemId] = set()

    def has_twin(self, identity: ItemId) -> None:
        """Note that the same is published twice, under one source and id, in two sessions."""
        self._twins.add(identity)
        if identity in self.published:
            self.published[identity].twin = True

    def asked(self, subscription: Subscription, client: str, now_ns: int) -> None:
        """A client asks for a subscription, for the first time."""
        wish = Wish(subscription, client, Filter.parse(list(subscription.filters)), now_ns)
        self.wishes[subscription.id] = wish
        if subscription.tolerance is None:
            self._index.add_filter(subscription.id, wish.filter)

    def registered(self, subscription_id: str, now_ns: int) -> None:
        """A client learns that its subscription is registered."""
        wish = self.wishes[subscription_id]
        if wish.registered_ns is None:
            wish.registered_ns = now_ns

    def ending(self, subscription_id: str, now_ns: int) -> None:
        """A client begins to end a subscription, or to be silent about it.

        What is on its way to it may still come or not.
        """
        wish = self.wishes[subscription_id]
        if wish.ending_ns is None:
            wish.ending_ns = now_ns
            for identity, entry in self.published.items():
                if (subscription_id, identity) not in self.got:
                    entry.owed.discard(subscription_id)

    def ended(self, subscription_id: str, at_ns: int) -> None:
        """From a time on, nothing that is published may come for a subscription."""
        wish = self.wishes[subscription_id]
        if wish.ended_ns is None:
            wish.ended_ns = at_ns

    def prolonged(self, subscription_id: str, at_ns: int) -> None:
        """A subscription that has not ended by now lives until a time."""
        wish = self.wishes[subscription_id]
        if wish.ended_ns is not None:
            wish.ended_ns = max(wish.ended_ns, at_ns)

    def sent(
        self,
        publication: Publication,
        size_bytes: int,
        home: str,
        now_ns: int,
        digest: str = "",
        *,
        session: str | None = None,
        tenant: str = "",
    ) -> None:
        """A publisher sends a publication to its home; again, when it is not accepted.

        Unless `session` is given there is one for each source.
        """
        identity = ItemId(tenant, *publication.identity)
        known = self.published.get(identity)
        if known is not None:
            known.home = home
            return
        session = publication.source if session is None else session
        order = self._orders.get(session, 0) + 1
        self._orders[session] = order
        cell = self._cell_of(publication)
        entry = PublishedEvent(publication, cell, size_bytes, session, order, now_ns, home, digest)
        entry.tenant = tenant
        entry.twin = identity in self._twins
        entry.owed.update(
            subscription_id
            for subscription_id in self._index.match(publication)
            if self._is_registered(self.wishes[subscription_id])
            and tenant_of(self.wishes[subscription_id].client) == tenant
        )
        self.published[identity] = entry

    def accepted(self, identity: ItemId, now_ns: int) -> None:
        """A publisher learns that its publication was taken."""
        entry = self.published[identity]
        if entry.accepted_ns is None:
            entry.accepted_ns = now_ns

    def delivered(
        self,
        subscription_id: str,
        identity: ItemId,
        *,
        media_type: str | None,
        reason: str = "",
        event: Publication | None = None,
        now_ns: int,
    ) -> None:
        """A client gets a publication, or learns that it cannot have it."""
        wish, entry = self.wishes.get(subscription_id), self.published.get(identity)
        if wish is None or entry is None:
            what = "subscription" if wish is None else "publication"
            self.strangers.append(
                (now_ns, f"{identity} came for {subscription_id}: nobody made the {what}")
            )
            return
        receipt = Receipt(wish, entry, now_ns, media_type, reason, event)
        for read in self.readers:
            read(receipt)
        if (subscription_id, identity) not in self.got:
            self.got[subscription_id, identity] = receipt
            if subscription_id in entry.owed:
                self.progress_ns = now_ns

    def broker_lost(
        self,
        broker: str,
        clients: set[str],
        *,
        is_kept_elsewhere: Callable[[ItemId], bool],
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
                subscription_id
                for subscription_id in entry.owed
                if (subscription_id, identity) not in self.got
                and (alone or self.wishes[subscription_id].client in clients)
            }
            self.excused += len(gone)
            entry.owed -= gone

    @staticmethod
    def _is_registered(wish: Wish) -> bool:
        return wish.registered_ns is not None and wish.ending_ns is None
