"""Routes by which one sees how a gateway is."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Request, get

from distributary.network.gateway.authentication import PUBLIC, Here
from distributary.network.gateway.problems import Problem, documented

__all__ = ["WATCHING_ROUTES"]


class Health(msgspec.Struct, frozen=True):
    """That a gateway runs."""

    status: str


@get("/health", opt={PUBLIC: True}, summary="Whether the gateway runs")
async def health() -> Health:
    """Say that the gateway runs."""
    return Health("ok")


@get(
    "/ready",
    opt={PUBLIC: True},
    responses=documented(503),
    summary="Whether the gateway can take and deliver events",
)
async def ready(gateway: Here) -> Health:
    """Say whether brokers answer."""
    if not gateway.gate.connection.connected:
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "there is no connection to NATS", retry_s=1.0)
    if not gateway.members.alive:
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "no broker answers", retry_s=1.0)
    return Health("ready")


@get("/openapi.json", opt={PUBLIC: True}, include_in_schema=False)
async def document(request: Request[Any, Any, Any]) -> dict[str, Any]:
    """Return the document that describes all of this."""
    return request.app.openapi_schema.to_schema()


WATCHING_ROUTES = [health, ready, document]
"""All of these routes."""
