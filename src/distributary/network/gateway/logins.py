"""Routes of browsers: a link that works once, the session after it, and its end."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

import msgspec
from litestar import Response, delete, get, post
from litestar.datastructures import Cookie
from litestar.params import Parameter
from litestar.response import Redirect

from distributary.network.gateway.authentication import PUBLIC, SESSION, Asked, Here
from distributary.network.gateway.problems import ANSWERS, Problem, documented
from distributary.network.gateway.sessions import SESSION_S, cookie_of, csrf_of
from distributary.network.gateway.tokens import Scope

__all__ = ["LOGIN_ROUTES"]

Secret = Annotated[str, Parameter(max_length=128, description="Works once.")]


class Login(msgspec.Struct, frozen=True):
    """The path of a link that works once."""

    login: str


class SessionTold(msgspec.Struct, frozen=True):
    """Who somebody is.

    Attributes
    ----------
    csrf
        What the header `X-CSRF-Token` must have with whatever changes something; None for those
        who come with a token.
    """

    name: str
    tenant: str
    scopes: tuple[Scope, ...]
    csrf: str | None


def _cookie(request: Asked, secret: str, seconds: int) -> Cookie:
    return Cookie(
        key=cookie_of(request.headers.get("host", "")),
        value=secret,
        max_age=seconds,
        path="/",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


@get(
    "/login/{link:str}",
    opt={PUBLIC: True},
    status_code=HTTPStatus.SEE_OTHER,
    responses=documented(400, 403, 431, 503),
    summary="Log in with a browser",
    description="Works once, and leads to where a person can look around.",
)
async def log_in(request: Asked, gateway: Here, link: Secret) -> Response[None]:
    """Exchange a link for a session."""
    found = await gateway.sessions.log_in(link)
    if found is None:
        raise Problem(
            HTTPStatus.FORBIDDEN,
            "this link was used, or is not valid any more; hint: distributary token login",
        )
    secret, access = found
    # So that it is written down who it was.
    request.scope["user"] = access
    return Response(
        None,
        status_code=HTTPStatus.SEE_OTHER,
        headers={"Location": request.app.state.landing},
        cookies=[_cookie(request, secret, SESSION_S)],
    )


@post("/login", responses=ANSWERS, summary="Make a link for a browser")
async def make_link(request: Asked, gateway: Here) -> Login:
    """Make a link by which a browser may do what the token permits."""
    return Login(f"/login/{await gateway.sessions.offer(request.user)}")


@get("/session", responses=ANSWERS, summary="Who somebody is")
async def told(request: Asked) -> SessionTold:
    """Return who somebody is, and what a page has to send with what it changes."""
    access = request.user
    secret = request.cookies.get(cookie_of(request.headers.get("host", "")))
    csrf = csrf_of(secret) if request.auth == SESSION and secret is not None else None
    return SessionTold(access.name, access.tenant, access.scopes, csrf)


@delete("/session", responses=ANSWERS, summary="Log out")
async def log_out(request: Asked, gateway: Here) -> Response[None]:
    """End the session of a browser."""
    secret = request.cookies.get(cookie_of(request.headers.get("host", "")))
    if request.auth == SESSION and secret is not None:
        await gateway.sessions.log_out(secret)
    return Response(None, status_code=HTTPStatus.NO_CONTENT, cookies=[_cookie(request, "", 0)])


@get("/", opt={PUBLIC: True}, include_in_schema=False, status_code=HTTPStatus.TEMPORARY_REDIRECT)
async def land(request: Asked) -> Redirect:
    """Lead who has nothing but the address to where a person can look around."""
    return Redirect(request.app.state.landing)


LOGIN_ROUTES = [log_in, make_link, told, log_out, land]
"""All of these routes."""
