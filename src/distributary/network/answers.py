"""Answers: what a host says to those who ask it something, beside what its broker says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributary.broker.addresses import Blob, is_broker, tenant_of
from distributary.broker.host import ContentPut
from distributary.network.requests import (
    Answer,
    ContentFound,
    ContentReceived,
    Drain,
    FindContent,
    GetChunk,
    GetRows,
    GetStatus,
    Given,
    NotGiven,
    PutChunk,
    Request,
    StatusTold,
)
from distributary.network.status import summary
from distributary.network.views import rows_of

if TYPE_CHECKING:
    from distributary.network.host import NetworkHost

__all__ = ["answer"]


async def answer(host: NetworkHost, request: Request, sender: str) -> Answer:
    """Return what a host answers somebody, whom the server vouches for."""
    if isinstance(request, GetStatus):
        return StatusTold(summary(host))
    if isinstance(request, GetRows):
        return rows_of(host, request)
    if isinstance(request, Drain):
        if is_broker(sender, len(host.identity)):
            return NotGiven("brokers do not order each other about", lasting=True)
        host.drain()
        return StatusTold(summary(host))
    if isinstance(request, PutChunk):
        return await _take(host, request, sender)
    if isinstance(request, FindContent):
        return _find(host, request, sender)
    return await _give(host, request)


def _find(host: NetworkHost, request: FindContent, sender: str) -> Answer:
    """Say whether a client may have content; of what others have it learns nothing."""
    broker = host.driver.broker
    if broker is not None and host.subjects.may_speak_for(sender, request.client):
        size_bytes = broker.content_size(tenant_of(request.client), request.digest)
        if size_bytes is not None:
            return ContentFound(size_bytes)
    return NotGiven("there is no such content", lasting=True)


async def _give(host: NetworkHost, request: GetChunk) -> Answer:
    """Give content away, and tell the broker, which keeps what is in use."""
    given = await host.transfers.give(request)
    if given is None:
        broker = host.driver.broker
        comes = broker is None or broker.awaits(request.digest)
        return NotGiven(f"{host.identity} does not have it", lasting=not comes)
    if isinstance(given, Given) and (request.offset == 0 or len(given.data) < request.count):
        broker = host.driver.broker
        if broker is not None:
            broker.content_used(request.digest, now_ns=host.now_ns())
    return given


async def _take(host: NetworkHost, request: PutChunk, sender: str) -> Answer:
    """Take content for a client of the gateway that asks."""
    if not host.subjects.may_speak_for(sender, request.client):
        return NotGiven(f"{sender} does not speak for this client", lasting=True)
    if host.disk_space.is_low:
        return NotGiven("the disk is nearly full", lasting=False)
    taken = await host.transfers.take(request)
    if isinstance(taken, ContentReceived) and taken.there == request.size_bytes:
        blob = Blob(request.media_type, request.size_bytes, request.digest)
        host.tell(ContentPut(request.client, blob))
    return taken
