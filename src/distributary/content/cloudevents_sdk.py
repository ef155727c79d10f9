"""The bridge to the official CloudEvents SDK, for programs that already use it.

With it a publication travels through any binding that the SDK has, such as Kafka or AMQP.
Needs the package `cloudevents`, which is imported when an event is made.
"""

from __future__ import annotations

import base64
from datetime import datetime
from typing import TYPE_CHECKING, Any

from distributary.content.publication import Publication
from distributary.errors import MissingPackage

if TYPE_CHECKING:
    from cloudevents.core.base import BaseCloudEvent
    from cloudevents.core.v1.event import CloudEvent

__all__ = ["from_sdk", "to_sdk"]


def from_sdk(event: BaseCloudEvent) -> Publication:
    """Return an event of the SDK as a publication, held to our rules.

    The SDK gives an event that lacks an `id` or a `time` one of its own making, before we
    see it.
    """
    document: dict[str, object] = dict(event.get_attributes())
    time = document.get("time")
    if isinstance(time, datetime):
        document["time"] = time.isoformat()
    data = event.get_data()
    if isinstance(data, bytes | bytearray):
        document["data_base64"] = base64.b64encode(data).decode("ascii")
    else:
        document["data"] = data
    return Publication.parse(document)


def to_sdk(publication: Publication) -> CloudEvent:
    """Return a publication as an event of the SDK."""
    try:
        from cloudevents.core.v1.event import CloudEvent
    except ImportError:
        raise MissingPackage(
            "cloudevents", extra="cloudevents", purpose="an event of the official SDK"
        ) from None

    attributes: dict[str, object] = dict(publication.attributes)
    if publication.time is not None:
        attributes["time"] = datetime.fromisoformat(publication.time)
    data: Any = publication.data
    event = CloudEvent(attributes, data)
    if publication.time is None:
        # The SDK puts the present into an event without a time; we say nothing we do not know.
        del event.get_attributes()["time"]
    return event
