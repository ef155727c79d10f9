"""Subscriptions: what the clients of this broker have asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from distributary.broker.addresses import Address
from distributary.broker.client import (
    AskStatus,
    ListSubscriptions,
    Refused,
    Status,
    Subscribe,
    Subscribed,
    SubscriptionStatus,
    Unsubscribe,
    Unsubscribed,
    named_in,
)
from distributary.broker.core import COUNT_MAX, Core, Handler, Part
from distributary.broker.encoding import encodable
from distributary.broker.host import Turn
from distributary.broker.membership.roster import MembersChanged
from distributary.broker.settings import ns
from distributary.broker.subscriptions.lifecycle import (
    Lifecycle,
    NoticeRecord,
    Notices,
    listed,
    status_of,
)
from distributary.broker.subscriptions.registrar import Registered, RegistrationsRenewed, Withdrawn
from distributary.broker.subscriptions.subscription import (
    Ledger,
    LocalSubscription,
    Reading,
    SubscriptionRecord,
    SubscriptionState,
    read,
    scoped_id,
)
from distributary.content import Publication
from distributary.errors import BadInput

__all__ = ["ClientSubscriptions", "Subscriptions"]


@encodable(543)
@dataclass(frozen=True, slots=True)
class ClientSubscriptions:
    """All subscriptions of a client, for its next home."""

    client: str
    subscriptions: tuple[SubscriptionRecord, ...]
    notices: tuple[NoticeRecord, ...] = ()


class Subscriptions(Part):
    """What the clients of this broker have asked for, registered."""

    name = "subscriptions"
    uses = ("membership", "links", "rendezvous", "deliveries", "streams", "migration")

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._ledger = Ledger(core.settings.space)
        self._lifecycle = Lifecycle(core, self._ledger)
        self._notices = Notices(core)

    def handlers(self) -> Mapping[type, Handler]:
        """Return who handles which kind of message."""
        return {
            Subscribe: self._subscribe,
            Unsubscribe: self._unsubscribe,
            ListSubscriptions: self._list,
            AskStatus: self._ask_status,
            Registered: self._lifecycle.registered,
            RegistrationsRenewed: self._lifecycle.registrar.renewed,
            Withdrawn: self._lifecycle.withdrawn,
        }

    def load(self, key: str, record: Any) -> None:
        """Take back what was kept."""
        if isinstance(record, NoticeRecord):
            self._notices.load(record)
        else:
            self._ledger.load(record)

    def start(self, turn: Turn) -> None:
        """Begin, or go on with what was kept."""
        for local in self._ledger:
            if local.live and local.id in self._notices:
                # A crash has come between the notice and the end.
                self._end(local.id, turn)
        self._lifecycle.resume(turn)
        self._notices.start(turn)

    def members_changed(self, change: MembersChanged, turn: Turn) -> None:
        """Register anew at roots that are new or have come back."""
        if self.core.membership.alive():
            self._lifecycle.registrar.members_changed(change, turn)

    # What other parts ask.

    def covered_by(self, registration: str) -> list[LocalSubscription]:
        """Return the subscriptions that are included in the registration of another, by name."""
        names = self._ledger.covering.covered_by(registration)
        found = (self.registered(covered) for covered in names)
        return [local for local in found if local is not None]

    def streaming(self, publication: Publication) -> list[LocalSubscription]:
        """Return the subscriptions with a tolerance that a stream object is for, by id.

        Those that are not confirmed yet are among them: a root tells a home of an object
        once, as soon as it has the registration.
        """
        return self._ledger.streaming(publication)

    def get(self, subscription_id: str) -> LocalSubscription | None:
        """Return a subscription that has not ended, as it is now."""
        local = self._ledger.get(subscription_id)
        return local if local is not None and local.live else None

    def registered(self, registration: str) -> LocalSubscription | None:
        """Return what roots call so, if it has not ended."""
        local = self._ledger.registered(registration)
        return local if local is not None and local.live else None

    def ghosts(self, registration: str) -> list[LocalSubscription]:
        """Return generations of subscriptions that had a registration, and may be owed more."""
        return self._ledger.ghosts(registration)

    def haunted(self, client: Address) -> bool:
        """Whether there are such generations of any subscription of a client."""
        return self._ledger.haunted(client)

    def clients(self) -> list[Address]:
        """Return the clients that have subscriptions here, in order."""
        return self._ledger.clients()

    def of_client(self, client: Address) -> list[LocalSubscription]:
        """Return the subscriptions of a client that have not ended, by id."""
        return self._ledger.of_client(client)

    def knows(self, client: Address) -> bool:
        """Whether a client has subscriptions here, or is to hear that one has ended."""
        return bool(self.of_client(client)) or self._notices.knows(client)

    def snapshot(self) -> dict[str, Any]:
        """Return the subscriptions of all clients."""
        return {
            "subscriptions": [
                {
                    "client": local.client,
                    "id": local.subscription.id,
                    "generation": local.generation,
                    "state": local.state.name.lower(),
                    "confirmed": local.confirmed,
                    "covered_by": local.coverer,
                    "tolerance": local.subscription.tolerance is not None,
                    "cells": len(local.cells),
                }
                for local in self._ledger
                if local.live
            ]
        }

    # What clients ask.

    def _subscribe(self, message: Subscribe, sender: Address, turn: Turn) -> None:
        try:
            reading = read(message.subscription)
        except BadInput as error:
            _, named = named_in(message.subscription)
            turn.send(sender, Refused("subscription", str(error), id=named))
            return
        own = reading.subscription.id
        name = scoped_id(sender, own)
        known = self._ledger.get(name)
        reason = self._refusal(message, reading, sender, known, turn)
        if reason is not None:
            turn.send(sender, Refused("subscription", reason, id=own))
        elif known is None:
            self._notices.take(name, turn)
            self._lifecycle.begin(self._made(message, sender, None, turn), turn)
        elif known.live and message.epoch > known.epoch:
            self._begin_anew(known, message, turn)
        elif known.live and _says(message) >= _says(known):
            # One that is ending will have ended when the client asks again; one that it said
            # before another one has been overtaken.
            self._subscribe_again(known, message, reading, turn)

    def _refusal(
        self,
        message: Subscribe,
        reading: Reading,
        sender: Address,
        known: LocalSubscription | None,
        turn: Turn,
    ) -> str | None:
        """Return why a subscription cannot be entered, or be changed so."""
        for what, number in (("a revision", message.revision), ("an epoch", message.epoch)):
            if not 0 <= number <= COUNT_MAX:
                return f"{what} is a number between 0 and {COUNT_MAX:,}"
        client_max = self.core.settings.subscriptions.client_max
        if known is None:
            config = reading.subscription.config
            expires_s = None if config is None else config.expires_s
            if expires_s is not None and ns(expires_s) <= turn.now_ns:
                return "config.expires is a time that has passed"
            # With those of which it has not heard that they have ended.
            if self._ledger.count(sender) + self._notices.count(sender) >= client_max:
                return f"a client has at most {client_max:,} subscriptions"
            if len(self._ledger.withdrawals) >= client_max:
                return "too many subscriptions have ended that not all brokers know of yet"
        elif known.live and _says(message) == _says(known) and reading != known.reading:
            return f"its revision {known.revision} says something else; number changes higher"
        return None

    def _made(
        self, message: Subscribe, client: Address, known: LocalSubscription | None, turn: Turn
    ) -> LocalSubscription:
        """Return a subscription as a client asks for it, which is to follow one that is known."""
        return LocalSubscription(
            client,
            message.subscription,
            version=self._ledger.next_version(turn),
            now_ns=turn.now_ns,
            revision=message.revision,
            generation=0 if known is None else known.generation + 1,
            # A change is no reason to be served here rather than where the client comes from; to
            # have begun anew is.
            claim=None if known is None or message.epoch > known.epoch else known.claim,
            epoch=message.epoch,
        )

    def _begin_anew(self, known: LocalSubscription, message: Subscribe, turn: Turn) -> None:
        """Forget what waits for a client that has been elsewhere since, and owe it what follows.

        A client is to move from A to B. B is lost; the client subscribes anew at C, and gets item
        9 there. C is lost too, and it comes back to A. There item 5 still waits, as A has kept the
        client when it heard that B is lost, and would come behind 9. What is numbered goes on
        where it was, so that nothing on its way is mistaken for something newer.
        """
        self._lifecycle.begin_anew(self._made(message, known.client, known, turn), turn)
        self.core.deliveries.skip(known.id, turn)

    def begin_anew(
        self, client: Address, epoch: int, wanted: Mapping[str, int] | None, turn: Turn
    ) -> bool | None:
        """Begin anew with all that a client had here in an earlier epoch, which it may repeat.

        A client is to move from A to B. At B it ends one subscription, puts off the end of
        another and changes a third. B is lost before A has heard that the client had arrived, so
        A keeps the client with all it had, and the client comes back. Here alone the first is
        still there, the second may have expired, and what comes for the third is not what the
        client wants.

        Parameters
        ----------
        wanted
            What the client still has, by its own ids, with the revisions; None if it does not say.

        Returns
        -------
        bool or None
            Whether there was something; None while it has yet to say again what it has changed.
        """
        self._notices.forget_before(client, epoch, turn)
        last = {local.id: local for local in self.of_client(client)}
        earlier = [local for local in last.values() if local.epoch < epoch]
        outdated = False
        for known in earlier:
            revision = known.revision
            if wanted is not None:
                revision = wanted.get(known.subscription.id, -1)
            if revision < 0:
                self._end(known.id, turn)
            elif revision > known.revision:
                outdated = True
            else:
                self._begin_anew(known, Subscribe(known.text, known.revision, epoch), turn)
        return None if outdated else bool(earlier)

    def _subscribe_again(
        self, known: LocalSubscription, message: Subscribe, reading: Reading, turn: Turn
    ) -> None:
        """Change a subscription, or say again that it is in force.

        A client moves from A to B and changes its subscription at once. Item 7 matches the new
        generation alone, and comes from the root; 8 matches the old one too. A redirects it, and
        it would be here first. So there is no new generation before the last was redirected:
        the client asks again until it is answered.
        """
        if not _same_registration(reading, known.reading):
            if self.core.migration.arrivals.holds(known.client):
                return
            new = self._made(message, known.client, known, turn)
            self._lifecycle.change(known, new, turn)
            return
        if message.revision > known.revision:
            known.replace_text(message.subscription, message.revision)
            self._ledger.keep(known, turn)
            self._lifecycle.followers_changed(known, turn)
            self._lifecycle.watch(known, turn)
            self.core.deliveries.reconsider(known.id, turn)
        if known.confirmed:
            turn.send(known.client, Subscribed(known.subscription.id, known.revision))

    def _unsubscribe(self, message: Unsubscribe, sender: Address, turn: Turn) -> None:
        name = scoped_id(sender, message.id)
        self._notices.take(name, turn)
        if self.get(name) is not None:
            self._end(name, turn)
        turn.send(sender, Unsubscribed(message.id))

    def _list(self, message: ListSubscriptions, sender: Address, turn: Turn) -> None:
        # Of each the last generation, which is what its client has said last.
        last = {local.id: local for local in self.of_client(sender)}
        standing = [self._status(last[name], turn) for name in sorted(last)]
        for part in listed(message.request, standing):
            turn.send(sender, part)

    def _ask_status(self, message: AskStatus, sender: Address, turn: Turn) -> None:
        name = scoped_id(sender, message.id)
        local = self.get(name)
        if local is None:
            # That it is not there alone would not tell it from one that is to be made yet.
            self._notices.tell(name, turn)
        status = None if local is None else self._status(local, turn)
        turn.send(sender, Status(message.id, status))

    def _status(self, local: LocalSubscription, turn: Turn) -> SubscriptionStatus:
        return status_of(local, self.core.deliveries.depth(local.id, turn.now_ns))

    def give_up(
        self, local: LocalSubscription, reason: str, turn: Turn, *, missed: int = 0
    ) -> None:
        """End a subscription that its client has not ended, and tell it why."""
        left = self.core.deliveries.left(local.id)
        own = local.subscription.id
        notice = NoticeRecord(local.client, own, reason, *left, turn.now_ns, missed, local.epoch)
        self._notices.add(notice, turn)
        self._end(local.id, turn)

    def supersede(self, registration: str, claim: int, turn: Turn) -> None:
        """End a subscription whose client has begun anew at another home, which a root says.

        So that those it covers have registrations of their own, and nothing more comes for nobody.
        One of a client that moves ends when it has.
        """
        local = self.registered(registration)
        if local is None or local.claim != claim:
            return
        if not self.core.migration.moves(local.client):
            self._end(local.id, turn)

    def _end(self, name: str, turn: Turn) -> None:
        self._lifecycle.end_all(name, turn)
        self.core.deliveries.close(name, turn)

    # Clients that move.

    def export_client(self, client: Address) -> ClientSubscriptions:
        """Return all subscriptions of a client, for its next home."""
        own = tuple(one.record() for one in self.of_client(client))
        return ClientSubscriptions(client, own, self._notices.of_client(client))

    def make_way(self, moved: ClientSubscriptions, turn: Turn) -> bool:
        """End what a client had here before; say whether what it has now can be entered.

        What is still here it may have ended or changed since, where it was. If it has begun anew
        here, whoever brings it is late.
        """
        newest = max((record.epoch for record in moved.subscriptions), default=0)
        here = {local.id: local for local in self.of_client(moved.client)}
        if any(local.epoch > newest for local in here.values()):
            return False
        for name in here:
            self._end(name, turn)
        ids = (read(record.text).subscription.id for record in moved.subscriptions)
        return self.can_adopt(scoped_id(moved.client, own) for own in ids)

    def can_adopt(self, ids: Iterable[str]) -> bool:
        """Whether subscriptions can be entered here: not while one of the same id is ending."""
        return all(local.live for name in ids for local in self._ledger.generations(name))

    def adopt_client(self, moved: ClientSubscriptions, turn: Turn) -> None:
        """Take over the subscriptions of a client, and register them from here.

        Roots serve the old home until it withdraws.
        """
        # What was asked for before is to be known to roots before what is now.
        for record in sorted(moved.subscriptions, key=lambda one: one.generation):
            local = LocalSubscription.moved(record, self._ledger.next_version(turn))
            self._lifecycle.begin(local, turn)
        for notice in moved.notices:
            self._notices.add(notice, turn)

    def settled(self, client: Address) -> bool:
        """Whether all subscriptions of a client are registered everywhere they must be."""
        safe = (SubscriptionState.REGISTERED, SubscriptionState.COVERED)
        return all(local.state in safe for local in self.of_client(client))

    def drop_client(self, client: Address, turn: Turn) -> None:
        """End the subscriptions of a client here, which has moved."""
        for local in self.of_client(client):
            self._lifecycle.depart(local, turn)
        for notice in self._notices.of_client(client):
            self._notices.take(notice.name, turn)

    def withdrawing(self, registrations: Iterable[str]) -> bool:
        """Whether some root may still have one of some registrations that have ended here."""
        return self._ledger.withdrawing(set(registrations))


def _says(one: Subscribe | LocalSubscription) -> tuple[int, int]:
    """Return what orders what a client says of a subscription."""
    return one.epoch, one.revision


def _same_registration(one: Reading, other: Reading) -> bool:
    """Whether two subscriptions differ at most in how large their tolerance is."""
    return (one.filters, one.profile, one.subscription.tolerance is None) == (
        other.filters,
        other.profile,
        other.subscription.tolerance is None,
    )
