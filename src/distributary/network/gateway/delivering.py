"""Routes by which events are delivered: server-sent events and WebSockets."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Response, get, post
from litestar.response import Stream

from distributary.broker.client import Delivery, Ended, Undeliverable, Updated
from distributary.content.media_type import MediaType
from distributary.content.payload import content_text
from distributary.errors import BadInput
from distributary.network.gateway.authentication import Asked, Here, needs, owner_of
from distributary.network.gateway.feeds import Connection, Incoming, Ousted
from distributary.network.gateway.gateway import Gateway
from distributary.network.gateway.problems import ANSWERS, Problem
from distributary.network.gateway.spool import INLINE_BYTES_MAX
from distributary.network.gateway.subscribing import Name, held_of

__all__ = ["DELIVERY_ROUTES"]

_HEARTBEAT_S = 15.0
_RETRY_MS = 1000
_NUMBER_DIGITS_MAX = 18
# Whoever was ousted has this for the number of its last event, and says so when it comes again.
_OUSTED = "ousted"
_UNDELIVERABLE = "distributary.undeliverable"


class Acknowledgement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Up to which number everything has arrived."""

    up_to: int


async def event_of(gateway: Gateway, connection: Connection, message: Incoming) -> dict[str, Any]:
    """Return what has come as an event, with its data in it or where that is."""
    if isinstance(message, Undeliverable):
        return {
            "specversion": "1.0",
            "type": _UNDELIVERABLE,
            "source": message.source,
            "id": message.id,
            "data": {"source": message.source, "id": message.id, "reason": message.reason},
        }
    assert isinstance(message, Delivery)
    event: dict[str, Any] = json.loads(message.event)
    blob = message.blob
    if blob is None:
        return event
    event.setdefault("datacontenttype", blob.media_type)
    client = connection.feed.client
    if blob.size_bytes > INLINE_BYTES_MAX:
        gateway.contents.note(connection.feed.owner.tenant, blob.digest, client.home)
        event["dataref"] = f"/content/{blob.digest}"
        event["datasize"] = blob.size_bytes
        return event
    data = b"".join([chunk async for chunk in client.content(blob)])
    declared = MediaType.parse(blob.media_type, place="datacontenttype")
    if declared.is_json:
        try:
            event["data"] = json.loads(data)
        except ValueError:
            event["data_base64"] = base64.b64encode(data).decode()
        return event
    text = content_text(data, declared)
    if text is None:
        event["data_base64"] = base64.b64encode(data).decode()
    else:
        event["data"] = text
    return event


def _number(text: str | None) -> int | None:
    """Return the number of the last event that somebody has."""
    if text is None or not text.strip():
        return None
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _NUMBER_DIGITS_MAX:
        raise BadInput("Last-Event-ID", "must be the number of a delivery")
    return int(digits)


@get(
    "/subscriptions/{name:str}/events",
    guards=[needs("subscribe")],
    responses=ANSWERS,
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
    number = _number(last)
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


async def _server_sent(gateway: Gateway, connection: Connection) -> AsyncIterator[str]:
    try:
        yield f"retry: {_RETRY_MS}\n\n"
        while True:
            message = await connection.next(_HEARTBEAT_S)
            if message is None:
                yield ":\n\n"
            elif isinstance(message, Ended):
                yield f"event: ended\ndata: {_notice(message)}\n\n"
                return
            elif not isinstance(message, Updated):
                event = await event_of(gateway, connection, message)
                text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
                yield f"id: {message.number}\ndata: {text}\n\n"
                # We are asked for more when this was written.
                connection.wrote(message)
    except Ousted:
        yield f"id: {_OUSTED}\n\n"
    finally:
        await connection.close()


def _notice(ended: Ended) -> str:
    left = {"count": ended.count, "first": ended.first, "last": ended.last, "missed": ended.missed}
    return json.dumps({"id": ended.id, "reason": ended.reason, "left": left})


@post(
    "/subscriptions/{name:str}/acks",
    status_code=HTTPStatus.NO_CONTENT,
    guards=[needs("subscribe")],
    responses=ANSWERS,
    summary="Acknowledge events",
)
async def acknowledge(request: Asked, gateway: Here, name: Name, data: Acknowledgement) -> None:
    """Have events up to a number be forgotten."""
    if data.up_to < 0 or data.up_to >= 10**_NUMBER_DIGITS_MAX:
        raise BadInput("up_to", "must be the number of a delivery")
    owner = owner_of(request.user)
    held = await held_of(gateway, owner, name)
    async with gateway.feeds.using(owner, name, held.home) as feed:
        await feed.acknowledge(data.up_to)


DELIVERY_ROUTES = [get_events, acknowledge]
"""All of these routes."""
