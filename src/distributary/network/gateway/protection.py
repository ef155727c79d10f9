"""Protection: what holds of every request and every answer, whatever the route.

A request must be for this host, as another name may be a page's that has had its own name point
here; and from no page but ours, unless that was configured. An answer tells browsers to guess no
types, frame nothing, keep nothing, and run nothing that somebody has published.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any, TypeAlias

from distributary.network.gateway.audit import Audit
from distributary.network.gateway.problems import MEDIA_TYPE, Problem, document, retry_after
from distributary.network.gateway.tokens import Access

__all__ = ["AUTHENTICATED", "CONTENT_PATH", "DETAIL", "FOREIGN", "SAFE", "Protection", "hosts_of"]

_Message: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[_Message]]
_Send: TypeAlias = Callable[[_Message], Awaitable[None]]
_App: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]

CONTENT_PATH = "/content/"
"""What the paths begin with under which there is what others have published."""

AUTHENTICATED = "distributary.authenticated"
"""Where the scope of a request has what is called with what it is made by, to end with that.

What it is called with takes what ends the request, and returns how to undo that.
"""

FOREIGN = "distributary.foreign"
"""Where it has whether it comes from a page of somebody else."""

DETAIL = "distributary.detail"
"""Where a route says more of what was done, for the audit log."""

SAFE = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing."""

_HEADERS_MAX = 256
_HEADERS_BYTES_MAX = 64 * 2**10
_TARGET_BYTES_MAX = 8 * 2**10
# Twice the same of these, and two who read a request may not agree on what it says.
_ONCE = frozenset(
    (
        b"authorization",
        b"content-length",
        b"content-type",
        b"host",
        b"idempotency-key",
        b"last-event-id",
        b"origin",
        b"transfer-encoding",
    )
)
# A body may stand still for so long, besides the time it takes at the least rate.
_BODY_S = 30.0
_BODY_BYTES_PER_S = 1024
# Summed up, or too many to tell: what they did is seen from who was let in.
_UNTOLD = ("/events", "/publish", "/acks")
_LOGIN = "/login/"
_POLICY = 1008
_RESTART = 1012
_ENDED = Problem(HTTPStatus.UNAUTHORIZED, "the token or the session has ended")
_STOPPED = Problem(HTTPStatus.SERVICE_UNAVAILABLE, "the gateway is stopping", retry_s=1.0)
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_CORS_S = 600

_ALWAYS = {
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
}
_UNLESS_SAID = {
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"x-frame-options": b"DENY",
}
_CONTENT = {
    b"content-security-policy": b"sandbox",
    b"content-disposition": b"attachment",
}


def hosts_of(host: str, port: int, more: Iterable[str] = ()) -> frozenset[str]:
    """Return the names under which a gateway may be asked, as browsers write them.

    Parameters
    ----------
    host, port
        Where it listens.
    more
        Names that were configured, with a port unless it is that of the scheme.
    """
    names = {*_LOOPBACK, host if ":" not in host else f"[{host}]"}
    return frozenset((*(f"{name}:{port}" for name in names), *(one.lower() for one in more)))


class Protection:
    """Stands before an application.

    Parameters
    ----------
    hosts
        The names under which it may be asked.
    origins
        Pages of others that may ask, with a token; none, unless configured.
    """

    def __init__(
        self,
        app: _App,
        *,
        hosts: frozenset[str],
        origins: Iterable[str],
        audit: Audit,
    ) -> None:
        self._app = app
        self._hosts = hosts
        self._origins = frozenset(origins)
        self._audit = audit

    async def __call__(self, scope: Any, receive: _Receive, send: _Send) -> None:
        """Take a request, or whatever else the server has to say."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        origin: str | None = None

        async def protected(message: _Message) -> None:
            kind = message["type"]
            if kind in ("http.response.start", "websocket.http.response.start"):
                self._note(scope, message["status"])
                message["headers"] = self._headers(scope, message, origin)
            elif kind == "websocket.accept":
                self._note(scope, HTTPStatus.SWITCHING_PROTOCOLS)
            await send(message)

        try:
            headers = _headers(scope)
            origin = self._checked(scope, headers)
        except Problem as problem:
            await _answer(scope, protected, problem)
            return
        scope[FOREIGN] = origin is not None
        if origin is not None and _is_preflight(scope, headers):
            await _allow(protected, origin, headers)
            return
        taking = _Body(receive) if scope["type"] == "http" else receive
        await self._run(scope, taking, protected)

    async def _run(self, scope: Any, receive: _Receive, send: _Send) -> None:
        """Have a request answered for as long as its token and session are valid."""
        task = asyncio.current_task()
        assert task is not None
        began = sized = revoked = False
        undo: list[Callable[[], None]] = []

        def end() -> None:
            nonlocal revoked
            # By its session and by its token, it may be; what is said to it then is to be said.
            if not revoked:
                revoked = True
                task.cancel()

        def authenticated(when_ended: Callable[[Callable[[], None]], Callable[[], None]]) -> None:
            undo.append(when_ended(end))

        async def noted(message: _Message) -> None:
            nonlocal began, sized
            began = True
            sized = sized or any(
                name == b"content-length" for name, _ in message.get("headers", ())
            )
            await send(message)

        scope[AUTHENTICATED] = authenticated
        try:
            await self._app(scope, receive, noted)
        except asyncio.CancelledError:
            # Otherwise it is the server that stops, and has waited for long enough.
            task.uncancel()
            reason = _ENDED if revoked else _STOPPED
            await _end(scope, send, reason, began=began, sized=sized)
        finally:
            for one in undo:
                one()

    def _checked(self, scope: Any, headers: Mapping[bytes, bytes]) -> str | None:
        """Return the other origin that a request comes from, or raise a problem."""
        target = len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"")
        if target > _TARGET_BYTES_MAX:
            raise Problem(
                HTTPStatus.REQUEST_URI_TOO_LONG,
                f"the address has more than {_TARGET_BYTES_MAX:,} bytes",
            )
        if b"content-length" in headers and b"transfer-encoding" in headers:
            raise Problem(
                HTTPStatus.BAD_REQUEST, "Content-Length and Transfer-Encoding exclude each other"
            )
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if host not in self._hosts:
            raise Problem(
                HTTPStatus.BAD_REQUEST,
                "Host: this gateway is not known by that name; hint: see hosts of [gateway]",
            )
        given = headers.get(b"origin")
        if given is None:
            return None
        origin = given.decode("latin-1").lower()
        secure = scope["scheme"] in ("https", "wss")
        if origin == f"{'https' if secure else 'http'}://{host}":
            return None
        if origin not in self._origins:
            raise Problem(HTTPStatus.FORBIDDEN, "Origin: pages from there may not ask this gateway")
        return origin

    def _headers(
        self, scope: Any, message: _Message, origin: str | None
    ) -> list[tuple[bytes, bytes]]:
        given = [(bytes(name).lower(), bytes(value)) for name, value in message["headers"]]
        forced = dict(_ALWAYS)
        if scope["path"].startswith(CONTENT_PATH) and message["status"] < HTTPStatus.BAD_REQUEST:
            forced.update(_CONTENT)
        if origin is not None:
            forced[b"access-control-allow-origin"] = origin.encode("latin-1")
            forced[b"access-control-expose-headers"] = b"location, retry-after"
            forced[b"cross-origin-resource-policy"] = b"cross-origin"
            forced[b"vary"] = b"origin"
        said = {name for name, _ in given}
        kept = [(name, value) for name, value in given if name not in forced]
        more = [item for item in _UNLESS_SAID.items() if item[0] not in said | forced.keys()]
        return [*kept, *forced.items(), *more]

    def _note(self, scope: Any, status: int) -> None:
        """Write down what somebody did, unless it only looked, or was one of very many."""
        access = scope.get("user")
        path: str = scope["path"]
        method = scope.get("method", "WS")
        refused = status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
        login = path.startswith(_LOGIN)
        told = method not in SAFE and not path.endswith(_UNTOLD)
        if refused or login or told:
            remote = scope.get("client")
            self._audit.note(
                # A link that is good for a login is not for reading.
                f"{method} {'/login' if login else path}",
                access if isinstance(access, Access) else None,
                remote=remote[0] if remote else None,
                status=int(status),
                detail=scope.get(DETAIL),
            )


class _Body:
    """Receives a body that must not come too slowly."""

    def __init__(self, receive: _Receive) -> None:
        self._receive = receive
        self._left_s = _BODY_S
        self._complete = False

    async def __call__(self) -> _Message:
        if self._complete:
            return await self._receive()
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self._left_s):
                message = await self._receive()
        except TimeoutError:
            raise Problem(
                HTTPStatus.REQUEST_TIMEOUT,
                f"the body comes too slowly: it may stand still for {_BODY_S:g} s",
            ) from None
        # What the application takes its time for is not counted.
        self._left_s += len(message.get("body", b"")) / _BODY_BYTES_PER_S - (loop.time() - began)
        self._left_s = min(self._left_s, _BODY_S)
        self._complete = not message.get("more_body", False)
        return message


def _headers(scope: Any) -> dict[bytes, bytes]:
    """Return the headers of a request by name, or raise a problem if they are too many."""
    given: list[tuple[bytes, bytes]] = scope["headers"]
    if len(given) > _HEADERS_MAX or sum(len(a) + len(b) for a, b in given) > _HEADERS_BYTES_MAX:
        raise Problem(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            f"there are more than {_HEADERS_MAX} headers, or {_HEADERS_BYTES_MAX:,} bytes of them",
        )
    found: dict[bytes, bytes] = {}
    for name, value in given:
        if name in found and name in _ONCE:
            raise Problem(HTTPStatus.BAD_REQUEST, f"{name.decode('latin-1')}: there are two")
        found[name] = value
    return found


def _is_preflight(scope: Any, headers: Mapping[bytes, bytes]) -> bool:
    asked = b"access-control-request-method" in headers
    return scope["type"] == "http" and scope["method"] == "OPTIONS" and asked


async def _allow(send: _Send, origin: str, headers: Mapping[bytes, bytes]) -> None:
    """Say what a page of another origin may ask: with a token, never with the cookie."""
    answers = [
        (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE"),
        (b"access-control-allow-headers", headers.get(b"access-control-request-headers", b"")),
        (b"access-control-max-age", str(_CORS_S).encode()),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": answers})
    await send({"type": "http.response.body", "body": b""})


async def _end(scope: Any, send: _Send, reason: Problem, *, began: bool, sized: bool) -> None:
    """End a connection that cannot go on."""
    if not began:
        await _answer(scope, send, reason)
    elif scope["type"] == "websocket":
        code = _POLICY if reason is _ENDED else _RESTART
        await send({"type": "websocket.close", "code": code, "reason": reason.detail})
    elif not sized:
        # Of one that has said how long it is, the server closes the connection.
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _answer(scope: Any, send: _Send, problem: Problem) -> None:
    """Refuse a request before the application sees it."""
    body = document(problem.status, problem.detail)
    headers = [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    if problem.retry_s is not None:
        headers.append((b"retry-after", retry_after(problem.retry_s).encode()))
    begin = "" if scope["type"] == "http" else "websocket."
    status = int(problem.status)
    await send({"type": f"{begin}http.response.start", "status": status, "headers": headers})
    await send({"type": f"{begin}http.response.body", "body": body})
