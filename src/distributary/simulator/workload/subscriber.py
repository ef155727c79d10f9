"""Subscribers: clients that ask for content, take it in order and acknowledge it."""

from __future__ import annotations

import json
from functools import lru_cache

from distributary.broker import client as messages
from distributary.broker.migration.messages import Connected, RegisterClient
from distributary.broker.settings import ns
from distributary.content import Publication, Subscription, parse_event
from distributary.simulator.checkers.ledger import Ledger, wish_name
from distributary.simulator.workload.device import Device
from distributary.simulator.world import World

__all__ = ["Subscriber"]

# A lease outlasts this many renewals, so that chance loses it about never.
_RENEWALS_PER_LEASE = 6
# What a message may take beyond what clocks may be off, before a lease counts as over.
_GRACE_S = 10.0


class Subscriber(Device):
    """A client with some subscriptions.

    Attributes
    ----------
    prices
        What a unit of traffic costs it at each broker; told with every renewal, unless empty.
    repeats
        How many deliveries came again because an acknowledgement was late or lost.
    """

    def __init__(self, world: World, name: str, home: str, ledger: Ledger) -> None:
        super().__init__(world, name, home)
        self.ledger = ledger
        self.repeats = 0
        self.prices: tuple[tuple[str, float], ...] = ()
        self._wanted: dict[str, Subscription] = {}
        self._received: dict[str, int] = {}
        self._early: dict[str, dict[int, messages.Delivery | messages.Undeliverable]] = {}
        self._renews = True
        self.handle(messages.Subscribed, self._subscribed)
        self.handle(messages.Unsubscribed, self._unsubscribed)
        self.handle(messages.Refused, self._refused)
        self.handle(messages.Delivery, self._numbered)
        self.handle(messages.Undeliverable, self._numbered)
        lease_s = world.settings.subscriptions.lease_s
        self._renew_ns = ns(lease_s / _RENEWALS_PER_LEASE)
        world.at(world.now_ns + self._renew_ns, self._renew)

    def subscribe(self, subscription: Subscription) -> None:
        """Ask for a subscription."""
        self._tell_prices()
        self.ledger.asked(subscription, self.address, self.world.now_ns)
        self._ask(subscription)

    def unsubscribe(self, subscription_id: str) -> None:
        """End a subscription."""
        if self._wanted.pop(subscription_id, None) is None:
            return
        self.answered("subscribe", subscription_id)
        self.ledger.ending(self._named(subscription_id), self.world.now_ns)
        self.request(messages.Unsubscribe(subscription_id), "unsubscribe", subscription_id)

    def leave(self) -> None:
        """Go without a word: nothing is renewed any more."""
        self._renews = False
        for subscription_id in self._wanted:
            self.answered("subscribe", subscription_id)
            self.ledger.ending(self._named(subscription_id), self.world.now_ns)
            self.ledger.ended(self._named(subscription_id), self._lease_over_ns())

    def home_restarted(self) -> None:
        """Note that the home has begun all leases anew, also those of who is gone."""
        if not self._renews:
            for subscription_id in self._wanted:
                self.ledger.prolonged(self._named(subscription_id), self._lease_over_ns())

    def _lease_over_ns(self) -> int:
        settings = self.world.settings.subscriptions
        return self.world.now_ns + ns(settings.lease_s + settings.clock_skew_s + _GRACE_S)

    def reattach(self, home: str) -> None:
        """Go to another home because the first one is lost for ever, with all it had kept."""
        super().reattach(home)
        if self._renews:
            for subscription in list(self._wanted.values()):
                self._ask(subscription)

    def received_numbers(self) -> tuple[tuple[str, int], ...]:
        """Return the number of the last delivery of each subscription."""
        return tuple(sorted(self._received.items()))

    def _connected(self, message: Connected) -> None:
        if self.home == self._next:
            self._received = dict(message.received)
            self._early.clear()
        super()._connected(message)

    def _named(self, subscription_id: str) -> str:
        return wish_name(self.address, subscription_id)

    def _ask(self, subscription: Subscription) -> None:
        self._wanted[subscription.id] = subscription
        text = json.dumps(subscription.document(), separators=(",", ":"))
        self.request(messages.Subscribe(text), "subscribe", subscription.id)

    def _renew(self) -> None:
        if not self._renews:
            return
        if self._wanted:
            self.send(messages.Renew(tuple(sorted(self._wanted))))
            self._tell_prices()
        self.world.at(self.world.now_ns + self._renew_ns, self._renew)

    def _tell_prices(self) -> None:
        if self.prices:
            self.send(RegisterClient(self.prices))

    def _subscribed(self, message: messages.Subscribed) -> None:
        if self.answered("subscribe", message.id):
            self.ledger.registered(self._named(message.id), self.world.now_ns)

    def _unsubscribed(self, message: messages.Unsubscribed) -> None:
        if self.answered("unsubscribe", message.id):
            self.ledger.ended(self._named(message.id), self.world.now_ns)

    def _refused(self, message: messages.Refused) -> None:
        self.ledger.refusals.append(
            (self.world.now_ns, f"{self.address} was refused {message.what}: {message.reason}")
        )

    def _numbered(self, message: messages.Delivery | messages.Undeliverable) -> None:
        """Take deliveries in the order of their numbers, and say how far it has got."""
        if self.home == self._next:
            # It is not known yet which number comes next.
            return
        subscription_id = message.subscription
        received = self._received.get(subscription_id, 0)
        early = self._early.setdefault(subscription_id, {})
        if message.number <= received or message.number in early:
            self.repeats += 1
        else:
            early[message.number] = message
        while received + 1 in early:
            received += 1
            self._take(early.pop(received))
        self._received[subscription_id] = received
        self.send(messages.Acknowledge(subscription_id, received))

    def _take(self, message: messages.Delivery | messages.Undeliverable) -> None:
        if isinstance(message, messages.Undeliverable):
            identity, media_type, reason = (message.source, message.id), None, message.reason
        else:
            event = _parsed(message.event)
            identity, media_type, reason = event.identity, event.media_type, ""
        self.ledger.delivered(
            self._named(message.subscription),
            identity,
            media_type=media_type,
            reason=reason,
            now_ns=self.world.now_ns,
        )


@lru_cache(maxsize=1024)
def _parsed(event: str) -> Publication:
    # Many clients get the same event.
    return parse_event(event)
