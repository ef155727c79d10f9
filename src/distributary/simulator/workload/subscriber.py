"""Subscribers: clients that ask for content, take it in order and acknowledge it."""

from __future__ import annotations

import json
from functools import lru_cache

from distributary.broker import client as messages
from distributary.broker.dissemination.messages import ItemId
from distributary.broker.migration.messages import Connected, RegisterClient
from distributary.broker.settings import ns
from distributary.content import Publication, Subscription, parse_event
from distributary.simulator.checkers.ledger import Ledger, wish_name
from distributary.simulator.workload.device import Device
from distributary.simulator.world import World

__all__ = ["Subscriber"]

# How often a client tells its prices, which may get lost.
_PRICES_S = 20.0
# What a message may take beyond what clocks may be off, before a subscription counts as over.
_GRACE_S = 10.0


class Subscriber(Device):
    """A client with some subscriptions.

    Attributes
    ----------
    prices
        What a unit of traffic costs it at each broker; told again and again, unless empty.
    repeats
        How many deliveries came again because an acknowledgement was late or lost.
    """

    def __init__(
        self, world: World, name: str, home: str, ledger: Ledger, *, tenant: str = ""
    ) -> None:
        super().__init__(world, name, home, tenant=tenant)
        self.ledger = ledger
        self.repeats = 0
        self.prices: tuple[tuple[str, float], ...] = ()
        self._wanted: dict[str, Subscription] = {}
        self._received: dict[str, int] = {}
        self._early: dict[str, dict[int, messages.Delivery | messages.Undeliverable]] = {}
        self._revisions: dict[str, int] = {}
        # Until when subscriptions are wanted that expire, also when they have.
        self._expires_s: dict[str, float] = {}
        self._stuck = False
        self.handle(messages.Subscribed, self._subscribed)
        self.handle(messages.Unsubscribed, self._unsubscribed)
        self.handle(messages.Refused, self._refused)
        self.handle(messages.Delivery, self._numbered)
        self.handle(messages.Undeliverable, self._numbered)
        self.handle(messages.Ended, self._ended)
        self.handle(messages.Status, lambda message: self.answered("status", message.id))
        world.at(world.now_ns + ns(_PRICES_S), self._tell_prices_again)

    def subscribe(self, subscription: Subscription) -> None:
        """Ask for a subscription."""
        self._tell_prices()
        self.ledger.asked(subscription, self.address, self.world.now_ns)
        self._ask(subscription)
        config = subscription.config
        if config is not None and config.expires_s is not None:
            name, skew_s = self._named(subscription.id), self._skew_s
            self._expires_s[subscription.id] = config.expires_s
            # From when on it may be over by the clock of its home, and from when on it is.
            at_ns = ns(config.expires_s - skew_s)
            self.world.at(at_ns, lambda: self.ledger.ending(name, self.world.now_ns))
            self.ledger.ended(name, ns(config.expires_s + skew_s + _GRACE_S))

    def change(self, subscription: Subscription) -> None:
        """Ask for something else under the same id, if that is still wanted."""
        own = subscription.id
        if own not in self._wanted or self._stuck:
            return
        self._revisions[own] = self._revisions.get(own, 0) + 1
        self.ledger.changing(self._named(own), subscription, self.world.now_ns)
        self.answered("subscribe", own)
        self._ask(subscription)

    def unsubscribe(self, subscription_id: str) -> None:
        """End a subscription."""
        if self._wanted.pop(subscription_id, None) is None:
            return
        self.answered("subscribe", subscription_id)
        self.ledger.ending(self._named(subscription_id), self.world.now_ns)
        self.request(messages.Unsubscribe(subscription_id), "unsubscribe", subscription_id)

    def get_stuck(self) -> None:
        """Take nothing any more, and acknowledge nothing, until a notice says what is over."""
        self._stuck = self.concerned = True
        for subscription_id in self._wanted:
            self.answered("subscribe", subscription_id)
            self.ledger.ending(self._named(subscription_id), self.world.now_ns)

    def come_back(self, *, noticed: bool) -> None:
        """Have a connection again; unless that is noticed, ask how its subscriptions stand."""
        super().come_back(noticed=noticed)
        if not noticed:
            for subscription_id in self._wanted:
                self.request(messages.AskStatus(subscription_id), "status", subscription_id)

    @property
    def _skew_s(self) -> float:
        return self.world.settings.subscriptions.clock_skew_s

    def reattach(self, home: str) -> None:
        """Go to another home because the first one is lost for ever, with all it had kept."""
        self._received.clear()
        asked = [] if self._stuck else list(self._wanted.values())
        for subscription in asked:
            # What was asked before was said in an earlier epoch.
            self.answered("subscribe", subscription.id)
        super().reattach(home)
        for subscription in asked:
            self._ask(subscription)

    def received_numbers(self) -> tuple[tuple[str, int], ...]:
        """Return the number of the last delivery of each subscription."""
        return tuple(sorted(self._received.items()))

    def wanted(self) -> tuple[tuple[str, int], ...] | None:
        """Return all subscriptions that it has, with their revisions, if it has begun anew."""
        if not self._epoch or self._stuck:
            return None
        return tuple((own, self._revisions.get(own, 0)) for own in sorted(self._wanted))

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
        revision = self._revisions.get(subscription.id, 0)
        message = messages.Subscribe(text, revision, self._epoch)
        self.request(message, "subscribe", subscription.id)

    def _tell_prices_again(self) -> None:
        if self._wanted and not self._stuck:
            self._tell_prices()
        self.world.at(self.world.now_ns + ns(_PRICES_S), self._tell_prices_again)

    def _tell_prices(self) -> None:
        if self.prices:
            self.send(RegisterClient(self.prices))

    def _subscribed(self, message: messages.Subscribed) -> None:
        latest = message.revision == self._revisions.get(message.id, 0)
        if latest and self.answered("subscribe", message.id):
            self.ledger.registered(self._named(message.id), self.world.now_ns)

    def _unsubscribed(self, message: messages.Unsubscribed) -> None:
        if self.answered("unsubscribe", message.id):
            self.ledger.ended(self._named(message.id), self.world.now_ns)

    def _ended(self, message: messages.Ended) -> None:
        """Learn that a subscription is over, and say so."""
        if self.home == self._next:
            # It may have been put off elsewhere, which this home does not know yet.
            return
        name = self._named(message.id)
        if self._wanted.pop(message.id, None) is not None:
            self.answered("subscribe", message.id)
            self.ledger.noticed(name, message, self._received.get(message.id, 0), self.world.now_ns)
        # Whoever has heard of it listens again, also to what should not come any more.
        self._stuck = False
        self.send(messages.Unsubscribe(message.id))

    def _refused(self, message: messages.Refused) -> None:
        if self._may_be_over(message.id):
            # It was said again, or was to be changed, and has ended meanwhile. The notice that it
            # has may be still on its way, or be here already.
            self._wanted.pop(message.id, None)
            self.answered("subscribe", message.id)
            return
        self.ledger.refusals.append(
            (self.world.now_ns, f"{self.address} was refused {message.id}: {message.reason}")
        )

    def _may_be_over(self, subscription_id: str) -> bool:
        """Whether a subscription may have ended by the clock of its home."""
        expires_s = self._expires_s.get(subscription_id)
        return expires_s is not None and self.world.now_ns >= ns(expires_s - self._skew_s)

    def _numbered(self, message: messages.Delivery | messages.Undeliverable) -> None:
        """Take deliveries in the order of their numbers, and say how far it has got."""
        if self.home == self._next or self._stuck:
            # It is not known yet which number comes next, or nobody listens.
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
            event, identity, blob = None, (message.source, message.id), None
            media_type, reason = None, message.reason
        else:
            event, blob = _parsed(message.event), message.blob
            identity, media_type, reason = event.identity, event.media_type, ""
        self.ledger.delivered(
            self._named(message.subscription),
            ItemId(self.tenant, *identity),
            media_type=media_type,
            reason=reason,
            event=event,
            home=self.home,
            digest="" if blob is None else blob.digest,
            now_ns=self.world.now_ns,
        )


@lru_cache(maxsize=1024)
def _parsed(event: str) -> Publication:
    # Many clients get the same event.
    return parse_event(event)
