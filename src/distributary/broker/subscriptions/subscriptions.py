"""Subscriptions: what the clients of this broker have asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from distributary.broker.addresses import Address
from distributary.broker.client import (
    Refused,
    Renew,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Unsubscribed,
)
from distributary.broker.core import Handler, Part
from distributary.broker.effects import Turn
from distributary.broker.encoding import wire
from distributary.broker.membership.roster import MembersChanged
from distributary.broker.settings import ns
from distributary.broker.subscriptions.ledger import Ledger
from distributary.broker.subscriptions.lifecycle import Lifecycle
from distributary.broker.subscriptions.messages import Registered, Withdrawn
from distributary.broker.subscriptions.subscription import (
    LocalSubscription,
    Reading,
    State,
    SubscriptionRecord,
    read,
    scoped_id,
)
from distributary.content import Publication
from distributary.errors import BadInput

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["ClientSubscriptions", "Subscriptions"]


@wire(543)
@dataclass(frozen=True, slots=True)
class ClientSubscriptions:
    """All subscriptions of a client, for its next home."""

    client: str
    subscriptions: tuple[SubscriptionRecord, ...]


class Subscriptions(Part):
    """What the clients of this broker have asked for, registered and leased."""

    name = "subscriptions"
    uses = ("membership", "links", "rendezvous", "streams", "migration")

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._ledger = Ledger(core.settings.space)
        self._lifecycle = Lifecycle(core, self._ledger)
        self._lease_ns = ns(core.settings.subscriptions.lease_s)

    def handlers(self) -> Mapping[type, Handler]:
        """Return who handles which kind of message."""
        return {
            Subscribe: self._subscribe,
            Renew: self._renew,
            Unsubscribe: self._unsubscribe,
            Registered: self._registered,
            Withdrawn: self._withdrawn,
        }

    def load(self, key: str, record: Any) -> None:
        """Take back what was kept."""
        self._ledger.load(record)

    def start(self, turn: Turn) -> None:
        """Begin, or go on with what was kept."""
        self._lifecycle.resume(turn)

    def members_changed(self, change: MembersChanged, turn: Turn) -> None:
        """Register anew at roots that are new or have come back."""
        if self.core.membership.alive():
            self._lifecycle.registrar.members_changed(change, turn)

    # What other parts ask.

    def matching(self, publication: Publication) -> list[LocalSubscription]:
        """Return the confirmed subscriptions to content that a publication is for, by id."""
        return self._ledger.matching(publication)

    def streaming(self, publication: Publication) -> list[LocalSubscription]:
        """Return the subscriptions with a tolerance that a stream object is for, by id.

        Those that are not confirmed yet are among them: a root tells a home of an object
        once, as soon as it has the registration.
        """
        return self._ledger.streaming(publication)

    def get(self, subscription_id: str) -> LocalSubscription | None:
        """Return a subscription that has not ended."""
        local = self._ledger.get(subscription_id)
        return local if local is not None and local.live else None

    def clients(self) -> list[Address]:
        """Return the clients that have subscriptions here, in order."""
        return self._ledger.clients()

    def of_client(self, client: Address) -> list[LocalSubscription]:
        """Return the subscriptions of a client that have not ended, by id."""
        return self._ledger.of_client(client)

    # What clients ask.

    def _subscribe(self, message: Subscribe, sender: Address, turn: Turn) -> None:
        try:
            reading = read(message.subscription)
        except BadInput as error:
            turn.send(sender, Refused("subscription", str(error)))
            return
        subscription_id = reading.subscription.id
        known = self._ledger.get(scoped_id(sender, subscription_id))
        if known is not None:
            self._subscribe_again(known, message.subscription, reading, turn)
            return
        settings = self.core.settings.subscriptions
        if self._ledger.count(sender) >= settings.client_max:
            reason = f"a client has at most {settings.client_max:,} subscriptions"
            turn.send(sender, Refused(subscription_id, reason))
            return
        local = LocalSubscription(
            sender,
            message.subscription,
            version=self._ledger.next_version(turn),
            now_ns=turn.now_ns,
            expires_ns=turn.now_ns + self._lease_ns,
        )
        self._lifecycle.begin(local, turn)

    def _subscribe_again(
        self, known: LocalSubscription, text: str, reading: Reading, turn: Turn
    ) -> None:
        client, own = known.client, known.subscription.id
        if not known.live:
            # The client asks again until it is answered; the old one will have ended then.
            return
        if not _same_registration(reading, known.reading):
            turn.send(client, Refused(own, "the id is that of another subscription"))
        else:
            if reading.subscription.tolerance != known.subscription.tolerance:
                known.replace_text(text)
                self._ledger.keep(known, turn)
                self._lifecycle.followers_changed(known, turn)
            if known.confirmed:
                turn.send(client, Subscribed(own))

    def _renew(self, message: Renew, sender: Address, turn: Turn) -> None:
        for subscription_id in message.ids:
            local = self.get(scoped_id(sender, subscription_id))
            if local is None:
                turn.send(sender, Unsubscribed(subscription_id))
            else:
                local.expires_ns = turn.now_ns + self._lease_ns
                self._ledger.keep(local, turn)

    def _unsubscribe(self, message: Unsubscribe, sender: Address, turn: Turn) -> None:
        local = self.get(scoped_id(sender, message.id))
        if local is not None:
            self._lifecycle.end(local, turn)
        turn.send(sender, Unsubscribed(message.id))

    # What roots answer.

    def _registered(self, message: Registered, sender: Address, turn: Turn) -> None:
        self._lifecycle.registered(message, turn)

    def _withdrawn(self, message: Withdrawn, sender: Address, turn: Turn) -> None:
        self._lifecycle.withdrawn(message, turn)

    # Clients that move.

    def export_client(self, client: Address) -> ClientSubscriptions:
        """Return all subscriptions of a client, for its next home."""
        return ClientSubscriptions(client, tuple(one.record() for one in self.of_client(client)))

    def can_adopt(self, ids: Iterable[str]) -> bool:
        """Whether subscriptions can be entered here: not while one of the same id is ending."""
        known = (self._ledger.get(subscription_id) for subscription_id in ids)
        return all(local is None or local.live for local in known)

    def adopt_client(self, moved: ClientSubscriptions, turn: Turn) -> None:
        """Take over the subscriptions of a client, and register them from here.

        Those that are here already, as when the request is repeated, stay as they are. Roots
        serve the old home until it withdraws.
        """
        for record in moved.subscriptions:
            if (
                self._ledger.get(scoped_id(moved.client, read(record.text).subscription.id))
                is not None
            ):
                continue
            local = LocalSubscription(
                moved.client,
                record.text,
                version=self._ledger.next_version(turn),
                now_ns=record.since_ns,
                expires_ns=turn.now_ns + self._lease_ns,
            )
            local.confirmed = record.confirmed
            local.claim = record.claim - 1
            self._lifecycle.begin(local, turn)

    def settled(self, client: Address) -> bool:
        """Whether all subscriptions of a client are registered everywhere they must be."""
        safe = (State.REGISTERED, State.COVERED)
        return all(local.state in safe for local in self.of_client(client))

    def drop_client(self, client: Address, turn: Turn) -> None:
        """End the subscriptions of a client here, which has moved."""
        for local in self.of_client(client):
            self._lifecycle.depart(local, turn)

    def withdrawing(self, ids: Iterable[str]) -> bool:
        """Whether some root may still have one of some subscriptions that have ended here."""
        return self._ledger.withdrawing(set(ids))


def _same_registration(one: Reading, other: Reading) -> bool:
    """Whether two subscriptions differ at most in how large their tolerance is."""
    return (one.filters, one.profile, one.subscription.tolerance is None) == (
        other.filters,
        other.profile,
        other.subscription.tolerance is None,
    )
