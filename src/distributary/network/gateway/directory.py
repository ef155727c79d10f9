"""The directory: where the clients of gateways are at home, and what they have subscribed to.

Gateways keep nothing themselves. Each subscription, and each publisher, is a client of its own for
the brokers; where its home is stands in a bucket that all gateways share. An entry is written
before the home hears of the client, so that nothing is ever forgotten there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Container
from typing import Any

import msgspec

from distributary.network.buckets import Buckets, Entry, WasChanged

__all__ = ["Directory", "DirectoryEntry", "Owner"]

_BUCKET = "clients"
_SUBSCRIPTION = "s"
_PUBLISHER = "p"
_OBJECT = "o"
_CONNECTION = "c"
_CONNECTION_PARTS = 4


class Owner(msgspec.Struct, frozen=True):
    """Whose something is: a token's, by its name within its tenant."""

    tenant: str
    name: str


class DirectoryEntry(msgspec.Struct, frozen=True):
    """What is known of a client.

    Attributes
    ----------
    home
        The broker that it is at home with.
    version
        How often its subscription was changed.
    document
        The subscription as it was asked for.
    ended
        Why it has ended by itself, if it has.
    entry
        The revision in the bucket, to change it by.
    """

    home: str
    version: int = 0
    document: dict[str, Any] = {}
    ended: str = ""
    entry: int = 0


class Directory:
    """The bucket `clients`."""

    def __init__(self, buckets: Buckets) -> None:
        self._bucket = buckets[_BUCKET]

    # Subscriptions.

    async def subscription(self, owner: Owner, name: str) -> DirectoryEntry | None:
        """Return a subscription of somebody, if there is one."""
        return _held(await self._bucket.get(_SUBSCRIPTION, owner.tenant, owner.name, name))

    async def subscriptions(self, owner: Owner) -> dict[str, DirectoryEntry]:
        """Return all subscriptions of somebody, oldest change first."""
        found: dict[str, DirectoryEntry] = {}
        async for entry in self._bucket.entries(_SUBSCRIPTION, owner.tenant, owner.name):
            held = _held(entry)
            if held is not None:
                found[entry.key[-1]] = held
        return found

    async def keep_subscription(
        self, owner: Owner, name: str, held: DirectoryEntry
    ) -> DirectoryEntry:
        """Write a subscription in the place of what was read, or raise `WasChanged`."""
        return await self._keep((_SUBSCRIPTION, owner.tenant, owner.name, name), held)

    async def forget_subscription(self, owner: Owner, name: str) -> None:
        """Delete a subscription, and which connection is its newest."""
        for kind in (_SUBSCRIPTION, _CONNECTION):
            await self._bucket.delete(kind, owner.tenant, owner.name, name)

    async def of_tenant(self, tenant: str) -> AsyncIterator[tuple[Owner, str, str]]:
        """Return whose, which and where all subscriptions of a tenant are."""
        async for entry in self._bucket.entries(_SUBSCRIPTION, tenant):
            held = _held(entry)
            if held is not None:
                _, _, owner, name = entry.key
                yield Owner(tenant, owner), name, held.home

    async def forget_tenant(self, tenant: str) -> None:
        """Delete what else there is of a tenant."""
        for kind in (_PUBLISHER, _OBJECT):
            async for entry in self._bucket.entries(kind, tenant):
                await self._bucket.delete(*entry.key)

    # Connections.

    async def connected(self, owner: Owner, name: str, connection: str) -> None:
        """Write down which connection for a subscription is the newest."""
        key = (_CONNECTION, owner.tenant, owner.name, name)
        await self._bucket.put(*key, value=connection.encode())

    async def connection(self, owner: Owner, name: str) -> str:
        """Return which connection for a subscription is the newest."""
        entry = await self._bucket.get(_CONNECTION, owner.tenant, owner.name, name)
        return "" if entry is None or entry.value is None else entry.value.decode()

    async def leave(self, owner: Owner, name: str, connections: Container[str]) -> bool:
        """Write down that some connections have ended; return whether there is no other one."""
        key = (_CONNECTION, owner.tenant, owner.name, name)
        entry = await self._bucket.get(*key)
        if entry is None or not entry.value:
            return True
        if entry.value.decode() not in connections:
            return False
        try:
            await self._bucket.put(*key, value=b"", revision=entry.revision)
        except WasChanged:
            return False
        return True

    def when_connected(self, call: Callable[[Owner, str], None]) -> None:
        """Have something called when there is a newer connection, perhaps at another gateway."""

        def changed(key: tuple[str, ...]) -> None:
            if len(key) == _CONNECTION_PARTS and key[0] == _CONNECTION:
                call(Owner(key[1], key[2]), key[3])

        self._bucket.listeners.append(changed)

    # Publishers and what they have announced.

    async def publisher(self, owner: Owner) -> DirectoryEntry | None:
        """Return where somebody publishes."""
        return _held(await self._bucket.get(_PUBLISHER, owner.tenant, owner.name))

    async def keep_publisher(self, owner: Owner, held: DirectoryEntry) -> DirectoryEntry:
        """Write where somebody publishes, or raise `WasChanged`."""
        return await self._keep((_PUBLISHER, owner.tenant, owner.name), held)

    async def stream_object(self, tenant: str, source: str, subject: str) -> DirectoryEntry | None:
        """Return a stream object that was announced; `home` is the name of who did."""
        return _held(await self._bucket.get(_OBJECT, tenant, source, subject))

    async def keep_object(
        self, tenant: str, source: str, subject: str, held: DirectoryEntry
    ) -> DirectoryEntry:
        """Write down a stream object, or raise `WasChanged`."""
        return await self._keep((_OBJECT, tenant, source, subject), held)

    async def _keep(self, key: tuple[str, ...], held: DirectoryEntry) -> DirectoryEntry:
        value = msgspec.json.encode(msgspec.structs.replace(held, entry=0))
        revision = await self._bucket.put(*key, value=value, revision=held.entry)
        return msgspec.structs.replace(held, entry=revision)


def _held(entry: Entry | None) -> DirectoryEntry | None:
    if entry is None or entry.value is None:
        return None
    return msgspec.structs.replace(
        msgspec.json.decode(entry.value, type=DirectoryEntry), entry=entry.revision
    )
