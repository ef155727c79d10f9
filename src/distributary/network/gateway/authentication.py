"""Authentication: by whose token a request is made, and what that permits."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any, TypeAlias

from litestar import Request, WebSocket
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult
from litestar.params import Dependency

from distributary.network.gateway.directory import Owner
from distributary.network.gateway.gateway import Gateway
from distributary.network.gateway.problems import Problem
from distributary.network.gateway.tokens import Access, Scope

__all__ = ["PUBLIC", "Asked", "Authentication", "Here", "Socket", "needs", "owner_of"]

Asked: TypeAlias = Request[Access, str, Any]
"""A request, with what its token permits."""

Socket: TypeAlias = WebSocket[Access, str, Any]
"""A WebSocket, with what its token permits."""

Here: TypeAlias = Annotated[Gateway, Dependency(skip_validation=True)]
"""The gateway, as routes are given it."""

PUBLIC = "public"
"""What a route has among its options that needs no token."""

_SCHEME = "bearer"


class Authentication(AbstractAuthenticationMiddleware):
    """Looks up the token of every request that needs one."""

    async def authenticate_request(
        self, connection: ASGIConnection[Any, Any, Any, Any]
    ) -> AuthenticationResult:
        """Return what the token of a request permits, or raise a problem."""
        scheme, _, token = connection.headers.get("authorization", "").partition(" ")
        if scheme.lower() != _SCHEME or not token.strip():
            raise Problem(
                HTTPStatus.UNAUTHORIZED, "there is no token; hint: send Authorization: Bearer TOKEN"
            )
        gateway: Gateway = connection.app.state.gateway
        access = await gateway.tokens.find(token.strip())
        if access is None:
            raise Problem(HTTPStatus.UNAUTHORIZED, "the token is not valid, or not any more")
        return AuthenticationResult(user=access, auth="token")


def needs(
    scope: Scope,
) -> Callable[[ASGIConnection[Any, Any, Any, Any], BaseRouteHandler], None]:
    """Return a guard that lets only those pass whose token has a scope."""

    def guard(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
        access: Access = connection.user
        if not access.has(scope):
            raise Problem(HTTPStatus.FORBIDDEN, f"the token does not have the scope {scope}")

    return guard


def owner_of(access: Access) -> Owner:
    """Return whose it is what somebody makes."""
    return Owner(access.tenant, access.name)
