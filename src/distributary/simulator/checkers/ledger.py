"""The ledger: what clients asked for, what they published and what they got.

It is written by the clients, who stand outside of the overlay, and read by the checkers. No
broker knows of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property

from distributary.broker.addresses import tenant_of
from distributary.broker.client import Ended
from distributary.broker.dissemination.messages import ItemId
from distributary.broker.subscriptions.lifecycle import MISSED
from distributary.content import Publication, Subscription
from distributary.filters import Filter, Index

__all__ = ["Form", "Ledger", "PublishedEvent", "Receipt", "Wish", "wish_name"]


@dataclass(frozen=True)
class Form:
    """What a client has asked for at some time.

    Attributes
    ----------
    asked_ns
        When.
    """

    subscription: Subscription
    filter: Filter
    asked_ns: int


@dataclass
class Wish:
    """A subscription as its client knows it.

    Attributes
    ----------
    subscription, filter
        What is asked for; while a change has not been answered, what was before.
    change
        What has been asked for instead, and not been answered.
    overtaken
        What had been asked for instead before that, and was not answered either.
    earlier
        What was asked for before, each with the time at which the next was confirmed.
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
    change: Form | None = None
    overtaken: list[Form] = field(default_factory=list)
    earlier: list[tuple[Form, int]] = field(default_factory=list)

    @property
    def form(self) -> Form:
        """What is asked for."""
        return Form(self.subscription, self.filter, self.asked_ns)

    def forms(self, published: PublishedEvent, margin_ns: int) -> list[Form]:
        """Return by what a publication may have been delivered, as far as clocks can tell.

        What was published before a change was asked for counts by what was before, what was
        published after the answer by what is now, and what was published between by either.
        """
        found = [f for f, until_ns in self.earlier if published.sent_ns <= until_ns + margin_ns]
        found.append(self.form)
        found += self.overtaken
        if self.change is not None:
            found.append(self.change)
        taken_ns = published.accepted_ns
        return [
            form
            for form in found
            if form is found[0] or taken_ns is None or taken_ns >= form.asked_ns - margin_ns
        ]

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
    late
        Whether it has no place in an order as those who have it were out of reach.
    lost
        Whether it was lost with the only broker that had it, or had its content.
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
    late: bool = False
    tenant: str = ""
    lost: bool = False

    @cached_property
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
    home
        The broker that it came from.
    digest
        Of its content, if that came beside the event.
    """

    wish: Wish
    published: PublishedEvent
    at_ns: int
    media_type: str | None
    reason: str = ""
    event: Publication | None = None
    home: str = ""
    digest: str = ""


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
    missed
        How many deliveries brokers say that subscriptions have missed while their homes were away.
    may_miss
        Whether the home of a client may have been away for others.
    """

    def __init__(self, cell_of: Callable[[Publication], int]) -> None:
        self._cell_of = cell_of
        self._index = Index()
        self._orders: dict[str, int] = {}
        self.wishes: dict[str, Wish] = {}
        self.published: dict[ItemId, PublishedEvent] = {}
        self._open: dict[ItemId, PublishedEvent] = {}
        self.got: dict[tuple[str, ItemId], Receipt] = {}
        self.progress_ns = 0
        self.readers: list[Callable[[Receipt], None]] = []
        self.strangers: list[tuple[int, str]] = []
        self.refusals: list[tuple[int, str]] = []
        self.foreign = 0
        self.stolen: list[tuple[int, str]] = []
        self.excused = 0
        self.missed = 0
        self.may_miss: Callable[[str], bool] = lambda client: False
        self._twins: set[ItemId] = set()

    def has_twin(self, identity: ItemId) -> None:
        """Note that the same is published twice, under one source and id, in two sessions."""
        self._twins.add(identity)
        if identity in self.published:
            self.published[identity].twin = True

    def asked(self, subscription: Subscription, client: str, now_ns: int) -> None:
        """A client asks for a subscription, for the first time."""
        wish = Wish(subscription, client, Filter.parse(list(subscription.filters)), now_ns)
        self.wishes[wish.name] = wish
        if subscription.tolerance is None:
            self._index.add_filter(wish.name, wish.filter)

    def changing(self, name: str, subscription: Subscription, now_ns: int) -> None:
        """A client asks for something else under the same id.

        What is under way counts by either from now on.
        """
        wish = self.wishes[name]
        filter_ = Filter.parse(list(subscription.filters))
        if wish.change is not None:
            # It may have come into force all the same.
            wish.overtaken.append(wish.change)
        wish.change = Form(subscription, filter_, now_ns)
        for identity, entry in self.published.items():
            under_way = entry.accepted_ns is None and (name, identity) not in self.got
            if under_way and not filter_.matches(entry.publication):
                entry.owed.discard(name)

    def noticed(self, name: str, notice: Ended, received: int, now_ns: int) -> None:
        """A client learns that a subscription is over, by no doing of its own."""
        wish = self.wishes[name]
        if notice.reason == MISSED and notice.missed and self.may_miss(wish.client):
            # Its home was away for too long: whatever has not come is not owed.
            self.missed += notice.missed
            self.ending(name, now_ns)
        if wish.ending_ns is None:
            self.strangers.append((now_ns, f"{name} ended and should not have: {notice.reason}"))
        if notice.count and not (
            notice.first <= received + 1 and notice.count == notice.last - notice.first + 1
        ):
            self.strangers.append((now_ns, f"{name} had {received} and was told {notice}"))
        if wish.ended_ns is None or now_ns < wish.ended_ns:
            wish.ended_ns = now_ns

    def registered(self, name: str, now_ns: int) -> None:
        """A client learns that its subscription is registered, as it asked for it last."""
        wish = self.wishes[name]
        if wish.change is not None:
            wish.earlier += [(form, now_ns) for form in (wish.form, *wish.overtaken)]
            wish.overtaken.clear()
            wish.subscription, wish.filter = wish.change.subscription, wish.change.filter
            wish.asked_ns, wish.change = wish.change.asked_ns, None
            self._index.remove(name)
            self._index.add_filter(name, wish.filter)
        if wish.registered_ns is None:
            wish.registered_ns = now_ns

    def ending(self, name: str, now_ns: int) -> None:
        """A client begins to end a subscription, or it may end by itself.

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
        entry = PublishedEvent(
            publication,
            cell,
            size_bytes,
            session,
            order,
            now_ns,
            home,
            digest,
            twin=identity in self._twins,
            tenant=tenant,
        )
        entry.owed.update(
            name
            for name in self._index.match(publication)
            if self._is_registered(self.wishes[name], publication)
            and tenant_of(self.wishes[name].client) == tenant
        )
        self.published[identity] = self._open[identity] = entry

    def is_complete(self) -> bool:
        """Whether everything was taken, and all that is owed has arrived; asked again and again."""
        while self._open:
            identity, entry = next(iter(self._open.items()))
            arrived = all((name, identity) in self.got for name in entry.owed)
            if entry.accepted_ns is None or not arrived:
                return False
            # What has arrived stays so, and less may be owed later, but never more.
            del self._open[identity]
        return True

    def accepted(self, identity: ItemId, now_ns: int) -> None:
        """A publisher learns that its publication was taken."""
        entry = self.published[identity]
        if entry.accepted_ns is None:
            entry.accepted_ns = now_ns

    def delivered(
        self,
        name: str,
        identity: ItemId,
        *,
        media_type: str | None,
        reason: str = "",
        event: Publication | None = None,
        home: str = "",
        digest: str = "",
        now_ns: int,
    ) -> None:
        """A client gets a publication, or learns that it cannot have it."""
        wish, entry = self.wishes.get(name), self.published.get(identity)
        if wish is None or entry is None:
            what = "subscription" if wish is None else "publication"
            self.strangers.append((now_ns, f"{identity} came for {name}: nobody made the {what}"))
            return
        receipt = Receipt(wish, entry, now_ns, media_type, reason, event, home, digest)
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
        is_kept_elsewhere: Callable[[ItemId], bool],
        had: Callable[[ItemId], bool] = lambda _: False,
        redirected: Collection[tuple[str, ItemId]] = (),
    ) -> None:
        """A broker is lost for ever, with what it alone had stored.

        Parameters
        ----------
        clients
            Those whose home it was: until they attach elsewhere, they are owed nothing.
        is_kept_elsewhere
            Whether another broker's disk has a publication that was handed to this one.
        had
            Whether its publisher has brought it here, from the home to which it was sent.
        redirected
            What it had for clients that have left, and their next homes may not have: the root
            has been told that they would.
        """
        for wish in self.wishes.values():
            if wish.client in clients:
                wish.registered_ns = None
        for identity, entry in self.published.items():
            here = entry.home == broker or had(identity)
            alone = here and not is_kept_elsewhere(identity)
            entry.lost = entry.lost or alone
            gone = {
                name
                for name in entry.owed
                if (name, identity) not in self.got
                and (
                    alone
                    or self.wishes[name].client in clients
                    or (self.wishes[name].client, identity) in redirected
                )
            }
            self.excused += len(gone)
            entry.owed -= gone

    def out_of_reach(
        self, broker: str, *, is_at_hand: Callable[[ItemId], bool], had: Callable[[ItemId], bool]
    ) -> None:
        """Whoever has the publications of a broker that is lost may be down.

        Then they come when that one is back, behind what their publishers have published
        elsewhere meanwhile, where nobody can know of them.

        Parameters
        ----------
        is_at_hand
            Whether somebody has a publication who is up.
        had
            Whether its publisher has brought it to the broker that is lost.
        """
        for identity, entry in self.published.items():
            if not entry.late and (entry.home == broker or had(identity)):
                entry.late = not is_at_hand(identity)

    @staticmethod
    def _is_registered(wish: Wish, publication: Publication) -> bool:
        """Whether what is published now is owed; while something changes, only if it is by both."""
        if wish.registered_ns is None or wish.ending_ns is not None:
            return False
        changes = wish.overtaken if wish.change is None else (*wish.overtaken, wish.change)
        return all(form.filter.matches(publication) for form in changes)
