"""Erasure: the end of a tenant, with all that is its.

First nobody can come in any more, then its subscriptions end, by which its queues are deleted; what
it has published is then owed to nobody. Brokers forget that, and content that nothing refers to,
after `retention_s`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from distributary.network.gateway.directory import Owner

if TYPE_CHECKING:
    from distributary.network.gateway.gateway import Gateway

__all__ = ["Erased", "erase"]

_ENDS_S = 20.0
_AT_ONCE = 32


class Erased(msgspec.Struct, frozen=True):
    """What was erased.

    Attributes
    ----------
    tokens, subscriptions
        How many there were.
    forgotten_s
        After how long brokers have forgotten all that it has published.
    """

    tenant: str
    tokens: int
    subscriptions: int
    forgotten_s: float


async def erase(gateway: Gateway, tenant: str) -> Erased:
    """Erase what there is of a tenant; again, if that was interrupted.

    Raises
    ------
    OSError
        When a broker does not answer; its subscriptions are still there then.
    """
    tokens = gateway.tokens.list(tenant)
    for access in tokens:
        await gateway.tokens.revoke(access.name, tenant)
    held = [one async for one in gateway.directory.of_tenant(tenant)]
    gate = asyncio.Semaphore(_AT_ONCE)

    async def end(owner: Owner, name: str, home: str) -> None:
        async with gate, asyncio.timeout(_ENDS_S):
            async with gateway.feeds.using(owner, name, home) as feed:
                await feed.client.unsubscribe(name)
            await gateway.directory.forget_subscription(owner, name)

    await asyncio.gather(*(end(owner, name, home) for owner, name, home in held))
    await gateway.directory.forget_tenant(tenant)
    gateway.limits.forget(tenant)
    return Erased(tenant, len(tokens), len(held), gateway.limits.stored_s)
