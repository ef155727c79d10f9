"""Routes by which events are published."""

from __future__ import annotations

from http import HTTPStatus

import msgspec
from litestar import post

from distributary.network.gateway.authentication import Asked, Here, needs, owner_of
from distributary.network.gateway.gateway import Gateway
from distributary.network.gateway.messages import Outbound, read_events
from distributary.network.gateway.problems import ANSWERS, Problem
from distributary.network.gateway.spool import spooled
from distributary.network.gateway.tokens import Access

__all__ = ["AcceptedEvents", "check_sources", "publish_events", "take"]


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
        _check_sizes(events, gateway.content_bytes_max)
        check_sources(request.user, events)
        take(gateway, request.user, len(events), body.size_bytes)
        accepted = await gateway.publishers.publish(owner_of(request.user), events)
        gateway.audit.published(request.user, len(accepted))
    finally:
        body.close()
    return AcceptedEvents([AcceptedEvent(one.source, one.id) for one in accepted])


def _check_sizes(events: list[Outbound], bytes_max: int) -> None:
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
