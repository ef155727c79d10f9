"""Routes of administrators: tokens, and the end of a tenant."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from litestar import delete, get, post
from litestar.params import Parameter

from distributary.errors import BadInput
from distributary.network.gateway.authentication import Asked, Here, needs
from distributary.network.gateway.erasure import Erased, erase
from distributary.network.gateway.problems import ANSWERS, DOCUMENT_BYTES_MAX, Problem
from distributary.network.gateway.protection import DETAIL
from distributary.network.gateway.tokens import Access, Scope

__all__ = ["ADMINISTERING_ROUTES"]

TokenName = Annotated[str, Parameter(max_length=64, description="Of a token.")]
Tenant = Annotated[str, Parameter(max_length=64, description="Whose it is.")]


class TokenAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token that is wanted.

    Attributes
    ----------
    sources
        What the sources of its publications must begin with, by whole parts: `/site` permits
        `/site/7` and not `/sites`. Any, unless given.
    tenant
        That of whoever asks, unless given.
    """

    name: str
    scopes: list[Scope]
    sources: list[str] | None = None
    tenant: str | None = None
    expires: datetime | None = None


class TokenTold(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a token permits; the token itself only once, when it is made."""

    name: str
    tenant: str
    scopes: tuple[Scope, ...]
    sources: tuple[str, ...]
    created: datetime
    expires: datetime | None = None
    token: str | None = None


class TokensTold(msgspec.Struct, frozen=True):
    """What all tokens permit that somebody administers."""

    tokens: list[TokenTold]


def _told(access: Access, token: str | None = None) -> TokenTold:
    return TokenTold(
        access.name,
        access.tenant,
        access.scopes,
        access.sources,
        access.created,
        access.expires,
        token,
    )


def _note(request: Asked, detail: str) -> None:
    """Have something written into the audit log."""
    scope: Any = request.scope
    scope[DETAIL] = detail


def _administered(access: Access, tenant: str | None) -> str:
    """Return the tenant that somebody means and administers."""
    meant = access.tenant if tenant is None else tenant
    if not access.administers(meant):
        raise Problem(
            HTTPStatus.FORBIDDEN, f"the token has the scope admin for tenant {access.tenant} alone"
        )
    return meant


@post(
    "/tokens",
    guards=[needs("admin")],
    responses=ANSWERS,
    request_max_body_size=DOCUMENT_BYTES_MAX,
    summary="Make a token",
)
async def create_token(request: Asked, gateway: Here, data: TokenAsked) -> TokenTold:
    """Make a token, which is told this once."""
    tenant = _administered(request.user, data.tenant)
    token = await gateway.tokens.create(
        data.name,
        scopes=data.scopes,
        sources=[""] if data.sources is None else data.sources,
        tenant=tenant,
        expires=data.expires,
    )
    access = await gateway.tokens.find(token)
    if access is None:
        raise Problem(HTTPStatus.CONFLICT, "the token was revoked at once")
    _note(request, f"token {data.name} of tenant {tenant!r} for {', '.join(access.scopes)}")
    return _told(access, token)


@get("/tokens", guards=[needs("admin")], responses=ANSWERS, summary="List tokens")
async def list_tokens(request: Asked, gateway: Here) -> TokensTold:
    """Return what the tokens permit of all tenants that somebody administers."""
    access = request.user
    found = gateway.tokens.list(None if access.is_operator else access.tenant)
    return TokensTold([_told(one) for one in found])


@delete(
    "/tokens/{name:str}",
    guards=[needs("admin")],
    responses=ANSWERS,
    summary="Revoke a token",
    description="Everything that is connected by it is disconnected within five seconds.",
)
async def revoke_token(
    request: Asked, gateway: Here, name: TokenName, tenant: Tenant | None = None
) -> None:
    """End a token everywhere."""
    meant = _administered(request.user, tenant)
    _note(request, f"token {name} of tenant {meant!r}")
    if not await gateway.tokens.revoke(name, meant):
        raise Problem(HTTPStatus.NOT_FOUND, f"there is no token {name}")


@delete(
    "/tenants/{tenant:str}",
    status_code=HTTPStatus.OK,
    guards=[needs("admin")],
    responses=ANSWERS,
    summary="Erase a tenant",
    description=(
        "Ends its subscriptions and tokens. What brokers keep for it they forget when it is not "
        "needed any more, at the latest after the time that is told."
    ),
)
async def erase_tenant(request: Asked, gateway: Here, tenant: Tenant) -> Erased:
    """Erase what there is of a tenant."""
    if not tenant:
        raise BadInput("tenant", "must be named")
    return await erase(gateway, _administered(request.user, tenant))


ADMINISTERING_ROUTES = [create_token, list_tokens, revoke_token, erase_tenant]
"""All of these routes."""
