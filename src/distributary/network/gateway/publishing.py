"""Routes by which events are published."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import msgspec
from litestar import post, put

from distributary.content.attributes import attribute_text
from distributary.content.documents import parse_document
from distributary.network.gateway.authentication import Asked, Here, needs, owner_of
from distributary.network.gateway.gateway import Gateway
from distributary.network.gateway.messages import Outbound, read_events
from distributary.network.gateway.objects import object_of
from distributary.network.gateway.problems import ANSWERS, Problem
from distributary.network.gateway.spool import spooled
from distributary.network.gateway.tokens import Access

__all__ = ["PUBLISHING_ROUTES", "check_sizes", "check_sources", "take"]

_OBJECTS_BYTES_MAX = 2**20
_OBJECTS_MAX = 1_000


class AcceptedEvent(msgspec.Struct, frozen=True):
    """An event that is stored."""

    source: str
    id: str


class AcceptedEvents(msgspec.Struct, frozen=True):
    """The events of a request, all of which are stored."""

    accepted: list[AcceptedEvent]


def take(gateway: Gateway, access: Access, events: int, size_bytes: int) -> None:
    """Count what somebody publishes, or raise a problem if that is too much."""
    gateway.limits.take_events(access.tenant, events)
    gateway.limits.take_bytes(access.tenant, size_bytes)


def check_sources(access: Access, events: list[Outbound]) -> None:
    """Raise a problem if somebody may not publish one of some events."""
    for one in events:
        if not access.may_publish_from(one.publication.source):
            raise Problem(
                HTTPStatus.FORBIDDEN,
                f"source: the token may not publish from {one.publication.source}",
            )


@post(
    "/events",
    status_code=HTTPStatus.ACCEPTED,
    guards=[needs("publish")],
    responses=ANSWERS,
    summary="Publish events",
    description=(
        "CloudEvents 1.0 in binary, structured or batch mode. Answered when all are stored; the "
        "same `source` and `id` again within ten minutes is delivered once."
    ),
)
async def publish_events(request: Asked, gateway: Here) -> AcceptedEvents:
    """Publish the events in a body."""
    # JSON takes a third more for bytes than they are, and something for the attributes.
    bytes_max = gateway.content_bytes_max * 3 // 2 + 2**20
    body = await spooled(request.stream(), gateway.folder, bytes_max=bytes_max)
    try:
        host = request.headers.get("host", "")
        events = await read_events(list(request.headers.multi_items()), body, host)
        check_sizes(events, gateway.content_bytes_max)
        check_sources(request.user, events)
        take(gateway, request.user, len(events), body.size_bytes)
        with gateway.metrics.publishing.time():
            accepted = await gateway.publishers.publish(owner_of(request.user), events)
        gateway.metrics.accepted.inc(len(accepted))
        gateway.audit.published(request.user, len(accepted))
    finally:
        body.close()
    return AcceptedEvents([AcceptedEvent(one.source, one.id) for one in accepted])


class Announced(msgspec.Struct, frozen=True):
    """A stream object that those who follow it know of."""

    source: str
    subject: str


class AnnouncedObjects(msgspec.Struct, frozen=True):
    """The objects of a request."""

    objects: list[Announced]


@put(
    "/objects",
    guards=[needs("publish")],
    responses=ANSWERS,
    summary="Announce stream objects",
    description=(
        "An event without data, or a list of them: what the versions of an object have in common. "
        "Events with its `source`, `subject` and a `sequence` are its versions from then on."
    ),
)
async def announce_objects(request: Asked, gateway: Here) -> AnnouncedObjects:
    """Announce stream objects."""
    body = await spooled(request.stream(), gateway.folder, bytes_max=_OBJECTS_BYTES_MAX)
    try:
        document = parse_document(body.read())
    finally:
        body.close()
    if isinstance(document, dict) and isinstance(document.get("objects"), list):
        document = document["objects"]
    documents = document if isinstance(document, list) else [document]
    if len(documents) > _OBJECTS_MAX:
        raise Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {_OBJECTS_MAX:,} objects at once"
        )
    found = [object_of(one, f"objects[{place}]") for place, one in enumerate(documents)]
    check_sources(request.user, [Outbound(one) for one in found])
    owner = owner_of(request.user)
    names = [(one.source, attribute_text(one.attributes["subject"])) for one in found]
    # One that is named twice must not be in its own way.
    each = dict(zip(names, found, strict=True)).values()
    await asyncio.gather(*(gateway.objects.announce(owner, one) for one in each))
    return AnnouncedObjects([Announced(*name) for name in names])


def check_sizes(events: list[Outbound], bytes_max: int) -> None:
    """Raise a problem if the data of an event is too large."""
    for one in events:
        content = one.content
        if content is None:
            continue
        size = len(content) if isinstance(content, bytes) else content.size_bytes
        if size > bytes_max:
            raise Problem(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the data of an event has {size:,} bytes; at most {bytes_max:,} are taken",
            )


PUBLISHING_ROUTES = [publish_events, announce_objects]
"""All of these routes."""
