"""Routes by which events are delivered: server-sent events and WebSockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from http import HTTPStatus

import msgspec
from litestar import Response, get, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.response import Stream

from distributary.broker.client import Ended, Updated
from distributary.errors import BadInput
from distributary.network.gateway.authentication import Asked, Here, needs, owner_of
from distributary.network.gateway.deliveries import (
    event_of,
    notice,
    number_of,
    text_of,
    version_of,
)
from distributary.network.gateway.feeds import FeedConnection, Ousted
from distributary.network.gateway.gateway import Gateway
from distributary.network.gateway.problems import ANSWERS, DOCUMENT_BYTES_MAX, Problem
from distributary.network.gateway.subscribing import Name, held_of

__all__ = ["DELIVERY_ROUTES"]

_HEARTBEAT_S = 15.0
_RETRY_MS = 1000
_NUMBER_MAX = 10**18
# Whoever was ousted has this for the number of its last event, and says so when it comes again.
_OUSTED = "ousted"


class Acknowledgement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Up to which number everything has arrived."""

    up_to: int


@get(
    "/subscriptions/{name:str}/events",
    guards=[needs("subscribe")],
    responses={**ANSWERS, 204: ResponseSpec(None, description="Another connection took over")},
    summary="Get events",
    description=(
        "Server-sent events; `id:` is the number of a delivery, `data:` a structured CloudEvent. "
        "`Last-Event-ID` goes on after a number, and acknowledges up to it."
    ),
    media_type="text/event-stream",
)
async def get_events(
    request: Asked, gateway: Here, name: Name, ack: str | None = None
) -> Stream | Response[None]:
    """Deliver events for as long as somebody listens."""
    if ack not in (None, "explicit"):
        raise BadInput("ack", "must be explicit, or left out")
    last = request.headers.get("last-event-id")
    gone = Response(None, status_code=HTTPStatus.NO_CONTENT)
    if last == _OUSTED:
        return gone
    number = number_of(last)
    owner = owner_of(request.user)
    held = await held_of(gateway, owner, name)
    if held.ended:
        raise Problem(HTTPStatus.NOT_FOUND, f"subscription {name} has ended: {held.ended}")
    peer = f"{request.client.host if request.client else ''} {request.headers.get('user-agent')}"
    async with gateway.feeds.using(owner, name, held.home) as feed:
        if feed.was_ousted(number, peer):
            return gone
        connection = await feed.connect(number, explicit=ack is not None, peer=peer)
    if connection is None:
        raise Problem(HTTPStatus.NOT_FOUND, f"subscription {name} has ended")
    return Stream(
        _server_sent(gateway, connection),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _server_sent(gateway: Gateway, connection: FeedConnection) -> AsyncIterator[str]:
    try:
        yield f"retry: {_RETRY_MS}\n\n"
        while True:
            message = await connection.next(_HEARTBEAT_S)
            if message is None:
                yield ":\n\n"
                continue
            if isinstance(message, Ended):
                yield f"event: ended\ndata: {notice(message)}\n\n"
                return
            if isinstance(message, Updated):
                version = await version_of(gateway, connection, message)
                yield f"data: {text_of(version)}\n\n"
            else:
                event = await event_of(gateway, connection, message)
                yield f"id: {message.number}\ndata: {text_of(event)}\n\n"
            # We are asked for more when this was written.
            connection.wrote(message)
    except Ousted:
        yield f"id: {_OUSTED}\n\n"
    except OSError:
        # Whoever comes again when NATS is there gets it then.
        return
    finally:
        await connection.close()


@post(
    "/subscriptions/{name:str}/acks",
    status_code=HTTPStatus.NO_CONTENT,
    guards=[needs("subscribe")],
    responses=ANSWERS,
    request_max_body_size=DOCUMENT_BYTES_MAX,
    summary="Acknowledge events",
)
async def acknowledge(request: Asked, gateway: Here, name: Name, data: Acknowledgement) -> None:
    """Have events up to a number be forgotten."""
    if data.up_to < 0 or data.up_to >= _NUMBER_MAX:
        raise BadInput("up_to", "must be the number of a delivery")
    owner = owner_of(request.user)
    held = await held_of(gateway, owner, name)
    async with gateway.feeds.using(owner, name, held.home) as feed:
        await feed.acknowledge(data.up_to)


DELIVERY_ROUTES = [get_events, acknowledge]
"""All of these routes."""
