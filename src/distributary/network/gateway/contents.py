"""Content at a gateway: which broker has it, for whom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from distributary.broker.addresses import Blob, client_address
from distributary.network.requests import ContentFound, FindContent
from distributary.network.transfers import TransferFailed, ask, chunks

if TYPE_CHECKING:
    from distributary.network.gateway.gateway import Gateway

__all__ = ["Contents"]

_HOLDERS_MAX = 4_096


class Contents:
    """What clients of a gateway may read.

    Brokers know who has put content, and who was sent it. A gateway asks them all, the one that
    had it last before the others.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._holders: dict[tuple[str, str], str] = {}

    async def find(self, tenant: str, digest: str) -> Blob | None:
        """Return content that a tenant has put or was sent; None if nobody has that."""
        key = (tenant, digest)
        holder = self._holders.get(key)
        if holder is not None:
            found = await self._ask(holder, tenant, digest)
            if found is not None:
                return found
        names = list(self._gateway.members.status)
        answers = await asyncio.gather(*(self._ask(name, tenant, digest) for name in names))
        for name, blob in zip(names, answers, strict=True):
            if blob is not None:
                self.note(tenant, digest, name)
                return blob
        return None

    def note(self, tenant: str, digest: str, holder: str) -> None:
        """Note who has some content."""
        while len(self._holders) >= _HOLDERS_MAX:
            del self._holders[next(iter(self._holders))]
        self._holders[tenant, digest] = holder

    def read(self, tenant: str, blob: Blob, begin: int, end: int) -> AsyncIterator[bytes]:
        """Return the bytes of content that was found, from one place to another."""
        holder = self._holders[tenant, blob.digest]
        gate = self._gateway.gate
        subject = gate.subjects.to_host(holder, gate.name)
        return chunks(gate.connection, subject, blob, begin, end)

    async def _ask(self, holder: str, tenant: str, digest: str) -> Blob | None:
        gate = self._gateway.gate
        client = client_address(f"{gate.name}/reader", tenant)
        subject = gate.subjects.to_host(holder, gate.name)
        try:
            answer = await ask(gate.connection, subject, FindContent(client, digest))
        except TransferFailed:
            return None
        if not isinstance(answer, ContentFound):
            return None
        return Blob("", answer.size_bytes, digest)
