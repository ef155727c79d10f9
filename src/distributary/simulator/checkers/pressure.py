"""Pressure: nobody is sent more than it can take, nor while it is gone or has said to wait."""

from __future__ import annotations

from collections.abc import Callable

from distributary.broker.addresses import Address
from distributary.broker.client import (
    Acknowledge,
    Busy,
    Delivery,
    Ended,
    Publish,
    Subscribed,
    Undeliverable,
    Unsubscribed,
)
from distributary.broker.migration.messages import Connect
from distributary.broker.settings import SubscriptionSettings, ns
from distributary.simulator.checkers.violation import Checker

__all__ = ["PressureCheck"]

# What a broker has decided to send before it was told may leave it a little later.
_GRACE_S = 2.0
# Most messages are between brokers.
_HEARD = frozenset(
    (
        Acknowledge,
        Busy,
        Connect,
        Delivery,
        Ended,
        Publish,
        Subscribed,
        Undeliverable,
        Unsubscribed,
    )
)


class PressureCheck(Checker):
    """Listens to what homes send to clients.

    What a client has acknowledged counts when it says so, although its home learns of that
    later: a home that keeps to the window by what it knows keeps to it by what the client has
    said.

    Parameters
    ----------
    gone_since
        Since when a client has been known to be gone by the host of a broker, or None.
    hears
        Whether clients hear everything that they are told: then they have to keep to it.

    Attributes
    ----------
    busy
        How often a client was told to wait.
    """

    name = "pressure"
    names_all = False

    def __init__(
        self,
        settings: SubscriptionSettings,
        gone_since: Callable[[str, Address], int | None],
        *,
        hears: bool = False,
    ) -> None:
        super().__init__()
        self._items_max, self._bytes_max = settings.window_items, settings.window_bytes
        self._gone_since = gone_since
        self._hears = hears
        # What is under way, in bytes by number: by home, client and subscription.
        self._under_way: dict[tuple[str, Address, str], dict[int, int]] = {}
        self._acknowledged: dict[tuple[str, Address, str], int] = {}
        self.busy = 0
        # From which number on, since when and until when: by home, client and session.
        self._waits: dict[tuple[str, Address, str], tuple[int, int, int]] = {}

    def listen(self, sender: Address, to: Address, message: object, now_ns: int) -> None:
        """Take note of a message."""
        if type(message) not in _HEARD:
            return
        if isinstance(message, Delivery | Undeliverable):
            self._delivered(sender, to, message, now_ns)
        elif isinstance(message, Acknowledge):
            self._arrived(to, sender, message.subscription, message.number)
        elif isinstance(message, Connect):
            self._left(sender, to)
            for subscription, number in message.received:
                self._arrived(to, sender, subscription, number)
        elif isinstance(message, Busy):
            self._told_to_wait(sender, to, message, now_ns)
        elif isinstance(message, Publish):
            self._published(to, sender, message, now_ns)
        elif isinstance(message, Subscribed) and message.revision:
            # Numbers go on after a change.
            return
        elif isinstance(message, Subscribed | Unsubscribed | Ended):
            # Numbers may begin anew.
            self._under_way.pop((sender, to, message.id), None)
            self._acknowledged.pop((sender, to, message.id), None)

    def _told_to_wait(self, home: str, client: Address, message: Busy, now_ns: int) -> None:
        """Take note from when on a client may publish again, once it has heard of it."""
        self.busy += 1
        key = (home, client, message.session)
        if message.number and key not in self._waits:
            self._waits[key] = (message.number, now_ns, now_ns + message.wait_ns)

    def _published(self, home: str, client: Address, message: Publish, now_ns: int) -> None:
        waits = self._waits.get((home, client, message.session))
        if waits is None:
            return
        number, since_ns, until_ns = waits
        if now_ns >= until_ns:
            del self._waits[home, client, message.session]
        elif self._hears and message.number >= number and now_ns > since_ns + ns(_GRACE_S):
            self.complain(
                now_ns,
                f"{client} published number {message.number} again, and was told by {home} to "
                f"wait for another {(until_ns - now_ns) / 1e9:.3f} s",
            )

    def _left(self, client: Address, home: str) -> None:
        """Forget what a client was sent by other homes, which it acknowledges where it is now.

        It may come back to one of them, and be sent more.
        """
        for key in [key for key in self._under_way if key[1] == client and key[0] != home]:
            del self._under_way[key]

    def _arrived(self, home: str, client: Address, subscription: str, number: int) -> None:
        key = (home, client, subscription)
        self._acknowledged[key] = max(number, self._acknowledged.get(key, 0))
        under_way = self._under_way.get(key, {})
        for done in [one for one in under_way if one <= number]:
            del under_way[done]

    def _delivered(
        self, home: str, client: Address, message: Delivery | Undeliverable, now_ns: int
    ) -> None:
        since_ns = self._gone_since(home, client)
        if since_ns is not None and now_ns > since_ns + ns(_GRACE_S):
            self.complain(
                now_ns,
                f"{home} sent {client} number {message.number} of {message.subscription}, and "
                f"knew that it was gone since {since_ns / 1e9:.3f} s",
            )
        key = (home, client, message.subscription)
        if message.number <= self._acknowledged.get(key, 0):
            return
        under_way = self._under_way.setdefault(key, {})
        size_bytes = 0
        if isinstance(message, Delivery):
            blob_bytes = 0 if message.blob is None else message.blob.size_bytes
            size_bytes = len(message.event.encode()) + blob_bytes
        under_way[message.number] = size_bytes
        count, in_all = len(under_way), sum(under_way.values())
        if count > 1 and (count > self._items_max or in_all > self._bytes_max):
            self.complain(
                now_ns,
                f"{client} had {count} deliveries of {message.subscription} with {in_all:,} bytes "
                f"under way from {home}, and had acknowledged none of them",
            )
