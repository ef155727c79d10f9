"""Feeds: what comes for a subscription, to whoever is connected for it.

A feed has one connection at a time. Whatever was written to it is told to the home as received, so
that more may come; it is kept there until it is acknowledged: by the number from which a connection
goes on, by a message, or five minutes after it was written to somebody who does not say.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

from distributary.broker.addresses import Address, tenant_of
from distributary.broker.client import Delivery, Ended, SubscriptionStatus, Undeliverable, Updated
from distributary.network.client import Client, Numbered
from distributary.network.gateway.directory import Owner
from distributary.network.views import look

if TYPE_CHECKING:
    from distributary.network.gateway.gateway import Gateway

__all__ = ["Feed", "FeedConnection", "Feeds", "Incoming", "Ousted"]

Incoming: TypeAlias = Numbered | Updated | Ended
"""What a connection gets; after `Ended` nothing more."""

STATUS_S = 10.0
"""How long a home has to say how a subscription stands."""

_SUBSCRIBER = "s"
_MOVES_S = 60.0
_LOOK_S = 0.1
# A reconnect of one that was ousted is expected for so long.
_OUSTED_S = 60.0


class Ousted(Exception):
    """Another connection has taken over."""


class FeedConnection:
    """One connection for a feed.

    Attributes
    ----------
    ousted
        Whether a newer one has taken over.
    known
        Whether all gateways can see that it is there.
    first, written
        After which delivery it began, and the last that was written to it.
    """

    def __init__(self, feed: Feed, first: int, *, explicit: bool, peer: str) -> None:
        self.feed = feed
        self.id = secrets.token_hex(8)
        self.first = self.written = self._handed = first
        self.peer = peer
        self.ousted = False
        self.known = False
        self._explicit = explicit
        self._unacknowledged: deque[tuple[float, int]] = deque()
        self._sequences: dict[tuple[str, str], int] = {}

    def has(self, version: Updated) -> bool:
        """Whether it has got a version already, or a later one."""
        name = (version.source, version.subject)
        return version.sequence <= self._sequences.get(name, -1)

    async def next(self, wait_s: float) -> Incoming | None:
        """Return what comes next; None when nothing has come for a while.

        Raises
        ------
        Ousted
            When a newer connection has taken over.
        """
        feed = self.feed
        if not feed.waiting and not self.ousted:
            feed.news.clear()
            try:
                async with asyncio.timeout(wait_s):
                    await feed.news.wait()
            except TimeoutError:
                return None
        if self.ousted:
            raise Ousted
        message = feed.waiting.popleft()
        if isinstance(message, tuple):
            version = feed.versions.pop(message)
            self._sequences[message] = version.sequence
            return version
        if isinstance(message, Delivery | Undeliverable):
            self._handed = message.number
        return message

    def wrote(self, message: Incoming) -> None:
        """Note that something was written."""
        if isinstance(message, Delivery | Undeliverable):
            self.written = message.number
            self.feed.delivered()
            self.feed.client.take(self.feed.name, message.number)
            if not self._explicit:
                now = asyncio.get_running_loop().time()
                self._unacknowledged.append((now, message.number))
        self.look()

    def look(self) -> None:
        """Acknowledge what was written long ago."""
        old = asyncio.get_running_loop().time() - self.feed.acknowledged_s
        number = 0
        while self._unacknowledged and self._unacknowledged[0][0] <= old:
            number = self._unacknowledged.popleft()[1]
        if number:
            self.acknowledge(number)

    def acknowledge(self, number: int) -> None:
        """Take word that everything up to a number has arrived for good."""
        # It may be back before we know that it was written.
        self.feed.client.acknowledge(self.feed.name, min(number, self._handed))

    def oust(self) -> None:
        """Have a newer connection take over."""
        self.ousted = True
        self.feed.news.set()

    async def close(self) -> None:
        """Go away."""
        await self.feed.disconnected(self)


class Feed:
    """One subscription that somebody has to do with, as a client of its home.

    Attributes
    ----------
    waiting, versions, news
        What has come and was not written yet; of a stream object only the latest version.
    connections
        The names of all that there were here.
    users
        How many have to do with it besides who is connected.
    acknowledged_s
        How long what was written can be resumed, unless it is acknowledged before.
    """

    def __init__(self, feeds: Feeds, owner: Owner, name: str, home: str) -> None:
        self.name = name
        self.owner = owner
        self.waiting: deque[Numbered | Ended | tuple[str, str]] = deque()
        self.versions: dict[tuple[str, str], Updated] = {}
        self.news = asyncio.Event()
        self.connection: FeedConnection | None = None
        self.connections: set[str] = set()
        self.users = 0
        self.acknowledged_s = feeds.gateway.acknowledged_s
        self._feeds = feeds
        self._ousted: tuple[float, FeedConnection] | None = None
        self._told_end = False
        self.client = feeds.gateway.gate.client(
            f"{_SUBSCRIBER}/{owner.name}/{name}",
            home,
            self._came,
            tenant=owner.tenant,
            update=self._updated,
            changed=self._changed,
        )

    def _came(self, message: Numbered) -> None:
        self.waiting.append(message)
        self.news.set()

    def _updated(self, message: Updated) -> None:
        # A home that is told of a connection sends the latest, which may be under way already.
        if self.connection is not None and self.connection.has(message):
            return
        name = (message.source, message.subject)
        if name not in self.versions:
            self.waiting.append(name)
        self.versions[name] = message
        self.news.set()

    def _changed(self, client: Client) -> None:
        ended = client.ended.get(self.name)
        if ended is not None and not self._told_end:
            self._told_end = True
            self.waiting.append(ended)
            self.news.set()
        self._feeds.gateway.client_changed(self.owner, self.name, client)

    def was_ousted(self, number: int | None, peer: str) -> bool:
        """Whether somebody who connects was ousted, and comes again only because it must."""
        if self._ousted is None or number is None or self.connection is None:
            return False
        at, old = self._ousted
        recent = asyncio.get_running_loop().time() - at < _OUSTED_S
        if recent and old.peer == peer and old.first <= number <= old.written:
            self._ousted = None
            return True
        return False

    async def standing(self) -> SubscriptionStatus | Ended | None:
        """Return how its home has it, or why it has ended by itself; None if that knows nothing."""
        status = await self.client.status(self.name)
        return self.client.ended.get(self.name) if status is None else status

    async def connect(
        self, number: int | None, *, explicit: bool, peer: str
    ) -> FeedConnection | None:
        """Return a connection that goes on after a delivery; None when there is no subscription.

        Parameters
        ----------
        number
            The last that it has; without one it gets all that is not acknowledged.
        """
        async with asyncio.timeout(STATUS_S):
            status = await self.standing()
        if not isinstance(status, SubscriptionStatus):
            return None
        # Nobody has got what was not sent: a number beyond that is a mistake.
        first = max(status.acknowledged, min(number or 0, status.last))
        if self.connection is not None:
            self.connection.oust()
            self._ousted = (asyncio.get_running_loop().time(), self.connection)
        self.waiting.clear()
        self.versions.clear()
        self.client.resume(self.name, first)
        if first > status.acknowledged:
            self.client.acknowledge(self.name, first)
        self.client.come_back()
        connection = self.connection = FeedConnection(self, first, explicit=explicit, peer=peer)
        self.connections.add(connection.id)
        try:
            await self._feeds.gateway.directory.connected(self.owner, self.name, connection.id)
        except BaseException:
            await self.disconnected(connection)
            raise
        connection.known = True
        return connection

    def delivered(self) -> None:
        """Count something that was written."""
        self._feeds.gateway.metrics.delivered.inc()

    async def acknowledge(self, number: int) -> None:
        """Take word that everything up to a number has arrived, whoever is connected."""
        if self.connection is not None:
            self.connection.acknowledge(number)
            return
        async with asyncio.timeout(STATUS_S):
            status = await self.client.status(self.name)
        if status is not None:
            self.client.acknowledge(self.name, min(number, status.last))

    async def disconnected(self, connection: FeedConnection) -> None:
        """Be without a connection, if it is that one."""
        if self.connection is connection:
            self.connection = None
            await self._feeds.drop(self)


class Feeds:
    """All subscriptions that one gateway has to do with now."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self._feeds: dict[tuple[Owner, str], Feed] = {}
        gateway.directory.when_connected(self._connected_somewhere)

    def __len__(self) -> int:
        return len(self._feeds)

    @asynccontextmanager
    async def using(self, owner: Owner, name: str, home: str) -> AsyncIterator[Feed]:
        """Have to do with a subscription for a while."""
        feed = self._feeds.get((owner, name))
        if feed is None:
            feed = self._feeds[owner, name] = Feed(self, owner, name, home)
        feed.users += 1
        try:
            yield feed
        finally:
            feed.users -= 1
            await self.drop(feed)

    async def drop(self, feed: Feed) -> None:
        """Close a feed that nobody has to do with any more."""
        key = (feed.owner, feed.name)
        if feed.connection is not None or feed.users or self._feeds.get(key) is not feed:
            return
        del self._feeds[key]
        # Whoever connects next asks the home what was acknowledged.
        feed.client.send_acknowledgements()
        try:
            alone = await self.gateway.directory.leave(*key, feed.connections)
        except OSError:
            alone = True
        # By now somebody may be connected again, here or at another gateway.
        await feed.client.close(goodbye=alone and key not in self._feeds)

    def _connected_somewhere(self, owner: Owner, name: str) -> None:
        feed = self._feeds.get((owner, name))
        if feed is not None and feed.connection is not None:
            self.gateway.spawn(self._compare(feed, feed.connection))

    async def _compare(self, feed: Feed, connection: FeedConnection) -> None:
        """End a connection if there is a newer one at another gateway."""
        # Word of the one before it may come while its own name is still being written: what
        # is read then is older than it is. Word of its own name comes after that.
        if not connection.known:
            return
        newest = await self.gateway.directory.connection(feed.owner, feed.name)
        if newest != connection.id and feed.connection is connection:
            connection.oust()

    async def wake_those_at(self, home: str) -> None:
        """Have clients of a home take part in its leaving that nobody is connected for."""
        gate = self.gateway.gate
        subject = gate.subjects.to_host(home, gate.name)
        rows = await look(gate.connection, subject, "subscriptions")
        await asyncio.gather(*(self._wake(row["client"], home) for row in rows))

    async def _wake(self, client: Address, home: str) -> None:
        prefix, kind, *names = f"{client.rpartition('@')[2]}//".split("/")[:4]
        if (prefix, kind) != (self.gateway.gate.name, _SUBSCRIBER):
            return
        owner, name = Owner(tenant_of(client), names[0]), names[1]
        async with self.using(owner, name, home) as feed, asyncio.timeout(_MOVES_S):
            feed.client.come_back()
            while feed.client.home == home:
                await asyncio.sleep(_LOOK_S)

    def end(self, owner: Owner, name: str) -> None:
        """End the connection for a subscription, as that has ended."""
        feed = self._feeds.get((owner, name))
        if feed is not None and feed.connection is not None:
            feed.connection.oust()

    def look(self) -> None:
        """Acknowledge what was written long ago, and see to those who wait."""
        for feed in list(self._feeds.values()):
            if feed.connection is not None:
                feed.connection.look()
                if feed.client.has_gap(feed.name):
                    self.gateway.spawn(_close_gap(feed))


async def _close_gap(feed: Feed) -> None:
    async with asyncio.timeout(STATUS_S):
        await feed.client.close_gap(feed.name)
