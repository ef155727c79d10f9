"""Deliveries as events: with their data in them, or where that is."""

from __future__ import annotations

import base64
import json
from typing import Any

from distributary.broker.addresses import Blob
from distributary.broker.client import Delivery, Ended, Undeliverable, Updated
from distributary.content.media_type import MediaType
from distributary.content.payload import content_text
from distributary.errors import BadInput
from distributary.network.client import Client, Numbered
from distributary.network.gateway.feeds import FeedConnection
from distributary.network.gateway.gateway import Gateway
from distributary.network.gateway.spool import INLINE_BYTES_MAX
from distributary.network.transfers import TransferFailed

__all__ = ["event_of", "notice", "number_of", "text_of", "version_of"]

_UNDELIVERABLE = "distributary.undeliverable"
_NUMBER_DIGITS_MAX = 18


async def event_of(
    gateway: Gateway, connection: FeedConnection, message: Numbered
) -> dict[str, Any]:
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
    data = await _data(connection.feed.client, blob)
    if data is None:
        gateway.contents.note(
            connection.feed.owner.tenant, blob.digest, connection.feed.client.home
        )
        event["dataref"] = f"/content/{blob.digest}"
        event["datasize"] = blob.size_bytes
        return event
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


async def _data(client: Client, blob: Blob) -> bytes | None:
    """Return what goes into an event; None where it has to go by reference."""
    if blob.size_bytes > INLINE_BYTES_MAX:
        return None
    try:
        return b"".join([chunk async for chunk in client.content(blob)])
    except TransferFailed:
        # What comes after it need not wait for what may be there later, or never again.
        return None


async def version_of(
    gateway: Gateway, connection: FeedConnection, message: Updated
) -> dict[str, Any]:
    """Return a version of a stream object as an event."""
    return await gateway.objects.event(connection.feed.owner.tenant, message)


def number_of(text: str | None) -> int | None:
    """Return the number of the last event that somebody has."""
    if text is None or not text.strip():
        return None
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _NUMBER_DIGITS_MAX:
        raise BadInput("Last-Event-ID", "must be the number of a delivery")
    return int(digits)


def text_of(event: dict[str, Any]) -> str:
    """Return an event as JSON on one line."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))


def notice(ended: Ended) -> str:
    """Return what is said when a subscription has ended, as JSON."""
    left = {"count": ended.count, "first": ended.first, "last": ended.last, "missed": ended.missed}
    return json.dumps({"id": ended.id, "reason": ended.reason, "left": left})
