"""Authentication: by whose token or session a request is made, and what that permits.

A cookie is sent by a browser whoever has it do so. So by a cookie nobody comes in from a page that
is not ours, and whoever changes something has to say what only a page of ours can know.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any, TypeAlias

from litestar import Request, WebSocket
from litestar.connection import ASGIConnection
from litestar.di import NamedDependency
from litestar.handlers import BaseRouteHandler
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult
from litestar.params import SkipValidation

from distributary.network.gateway.directory import Owner
from distributary.network.gateway.gateway import Gateway
from distributary.network.gateway.problems import Problem
from distributary.network.gateway.protection import AUTHENTICATED, FOREIGN, SAFE
from distributary.network.gateway.sessions import cookie_of, csrf_of
from distributary.network.gateway.tokens import Access, Scope

__all__ = [
    "PUBLIC",
    "SESSION",
    "Asked",
    "Authentication",
    "Here",
    "Socket",
    "check_operator",
    "needs",
    "owner_of",
]

Asked: TypeAlias = Request[Access, str, Any]
"""A request, with what its token permits."""

Socket: TypeAlias = WebSocket[Access, str, Any]
"""A WebSocket, with what its token permits."""

Here: TypeAlias = NamedDependency[SkipValidation[Gateway]]
"""The gateway, as routes are given it."""

PUBLIC = "public"
"""What a route has among its options that needs no token."""

SESSION = "session"
"""How somebody was let in who has a cookie."""

_SCHEME = "bearer"
_CSRF = "x-csrf-token"


class Authentication(AbstractAuthenticationMiddleware):
    """Looks up the token of every request that needs one."""

    async def authenticate_request(
        self, connection: ASGIConnection[Any, Any, Any, Any]
    ) -> AuthenticationResult:
        """Return what the token of a request permits, or raise a problem."""
        gateway: Gateway = connection.app.state.gateway
        given = connection.headers.get("authorization")
        secret = connection.cookies.get(cookie_of(connection.headers.get("host", "")))
        if given is None and secret is not None:
            access = await gateway.sessions.find(secret)
            auth = SESSION
        else:
            scheme, _, token = (given or "").partition(" ")
            if scheme.lower() != _SCHEME or not token.strip():
                raise Problem(
                    HTTPStatus.UNAUTHORIZED,
                    "there is no token; hint: send Authorization: Bearer TOKEN",
                )
            access = await gateway.tokens.find(token.strip())
            auth = "token"
        if access is None:
            raise Problem(HTTPStatus.UNAUTHORIZED, f"the {auth} is not valid, or not any more")
        if auth == SESSION:
            assert secret is not None
            _check_page(connection, secret)
        scope: Any = connection.scope
        scope[AUTHENTICATED](partial(gateway.tokens.when_ended, access))
        # What changes something ends by itself, and one of these ends the session.
        if secret is not None and auth == SESSION and scope.get("method", "GET") in SAFE:
            scope[AUTHENTICATED](partial(gateway.sessions.when_ended, secret))
        return AuthenticationResult(user=access, auth=auth)


def _check_page(connection: ASGIConnection[Any, Any, Any, Any], secret: str) -> None:
    """Raise a problem unless a request by a cookie is from a page of ours."""
    headers = connection.headers
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Problem(HTTPStatus.FORBIDDEN, "Sec-Fetch-Site: a session is for our own pages")
    scope: Any = connection.scope
    if scope.get(FOREIGN):
        raise Problem(HTTPStatus.FORBIDDEN, "Origin: a session is for our own pages")
    if scope["type"] == "websocket":
        # A page cannot send headers of its own with these, but cannot leave this one out either.
        if "origin" not in headers:
            raise Problem(HTTPStatus.FORBIDDEN, "Origin: is missing, which browsers always send")
    elif scope["method"] not in SAFE:
        sent = headers.get(_CSRF, "").encode("latin-1", "replace")
        if not hmac.compare_digest(sent, csrf_of(secret).encode()):
            raise Problem(
                HTTPStatus.FORBIDDEN,
                "X-CSRF-Token: is missing or wrong; hint: GET /session tells it",
            )


def needs(
    scope: Scope,
) -> Callable[[ASGIConnection[Any, Any, Any, Any], BaseRouteHandler], None]:
    """Return a guard that lets only those pass whose token has a scope."""

    def guard(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
        access: Access = connection.user
        if not access.has(scope):
            raise Problem(HTTPStatus.FORBIDDEN, f"the token does not have the scope {scope}")

    return guard


def check_operator(access: Access) -> None:
    """Raise a problem unless somebody may see and change what is everybody's."""
    if not access.is_operator:
        raise Problem(HTTPStatus.FORBIDDEN, "needs the scope admin of the first tenant")


def owner_of(access: Access) -> Owner:
    """Return whose it is what somebody makes."""
    return Owner(access.tenant, access.name)
