"""Routes by which one sees how a gateway is."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import msgspec
from litestar import HttpMethod, MediaType, Request, Response, get, route

from distributary.network.gateway.authentication import PUBLIC, Asked, Here, check_operator, needs
from distributary.network.gateway.documentation import completed, page
from distributary.network.gateway.problems import ANSWERS, Problem, documented

__all__ = ["WATCHING_ROUTES"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"


class Health(msgspec.Struct, frozen=True):
    """That a gateway runs."""

    status: str


# Balancers of load look with HEAD.
@route(
    "/health",
    http_method=[HttpMethod.GET, HttpMethod.HEAD],
    opt={PUBLIC: True},
    summary="Whether the gateway runs",
)
async def health() -> Health:
    """Say that the gateway runs."""
    return Health("ok")


@route(
    "/ready",
    http_method=[HttpMethod.GET, HttpMethod.HEAD],
    opt={PUBLIC: True},
    responses=documented(400, 403, 431, 503),
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
    return completed(request.app.openapi_schema.to_schema())


@get("/docs", opt={PUBLIC: True}, include_in_schema=False, media_type=MediaType.HTML)
async def documentation(request: Request[Any, Any, Any]) -> Response[str]:
    """Return the same for people."""
    text = page(completed(request.app.openapi_schema.to_schema()))
    return Response(text, media_type=MediaType.HTML, headers={"Content-Security-Policy": _POLICY})


@get(
    "/metrics",
    guards=[needs("admin")],
    responses=ANSWERS,
    summary="Figures for Prometheus",
    media_type="text/plain; version=0.0.4",
)
async def metrics(request: Asked, gateway: Here) -> bytes:
    """Return what is counted."""
    check_operator(request.user)
    return await gateway.metrics.text()


WATCHING_ROUTES = [health, ready, document, documentation, metrics]
"""All of these routes."""
