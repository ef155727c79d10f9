"""The application: all routes of a gateway, and what they have in common."""

from __future__ import annotations

import msgspec
from litestar import Litestar, Request, Router
from litestar.di import Provide
from litestar.enums import ScopeType
from litestar.middleware import DefineMiddleware
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.types import ASGIApp, Message, Receive, Scope, Send

import distributary
from distributary.network.gateway.administering import ADMINISTERING_ROUTES
from distributary.network.gateway.authentication import PUBLIC, Authentication
from distributary.network.gateway.checking import check_subscription
from distributary.network.gateway.delivering import DELIVERY_ROUTES
from distributary.network.gateway.gateway import Gateway
from distributary.network.gateway.logins import LOGIN_ROUTES
from distributary.network.gateway.overview import OVERVIEW_ROUTES
from distributary.network.gateway.pages import NO_PAGES, PageRoutes
from distributary.network.gateway.problems import MEDIA_TYPE, answer
from distributary.network.gateway.publishing import PUBLISHING_ROUTES
from distributary.network.gateway.sockets import SOCKET_ROUTES
from distributary.network.gateway.storing import CONTENT_ROUTES
from distributary.network.gateway.subscribing import SUBSCRIPTION_ROUTES
from distributary.network.gateway.watching import WATCHING_ROUTES

__all__ = ["application", "refusing"]

_PROBLEM = "problem"


def _remember(error: Exception, scope: Scope) -> None:
    """Have what goes wrong be known to `refusing`."""
    scope["state"][_PROBLEM] = error


def refusing(app: ASGIApp) -> ASGIApp:
    """Have WebSockets that are not accepted be answered by a problem, as other requests are."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.WEBSOCKET:
            await app(scope, receive, send)
            return
        accepted = False

        async def send_refusal(message: Message) -> None:
            nonlocal accepted
            accepted = accepted or message["type"] == "websocket.accept"
            error = scope.get("state", {}).get(_PROBLEM)
            if accepted or message["type"] != "websocket.close" or error is None:
                await send(message)
                return
            response = answer(Request(scope), error)
            headers = [(b"content-type", MEDIA_TYPE.encode())]
            headers += [(k.lower().encode(), v.encode()) for k, v in response.headers.items()]
            status = response.status_code
            begin = {"type": "websocket.http.response.start", "status": status, "headers": headers}
            await send(begin)  # type: ignore[arg-type]
            body = msgspec.json.encode(response.content)
            await send({"type": "websocket.http.response.body", "body": body})  # type: ignore

        await app(scope, receive, send_refusal)

    return serve


def application(gateway: Gateway, pages: PageRoutes = NO_PAGES) -> Litestar:
    """Return the application that speaks for a gateway, with pages for people."""
    app = Litestar(
        [
            *PUBLISHING_ROUTES,
            *SUBSCRIPTION_ROUTES,
            *DELIVERY_ROUTES,
            *SOCKET_ROUTES,
            *CONTENT_ROUTES,
            *OVERVIEW_ROUTES,
            *WATCHING_ROUTES,
            *LOGIN_ROUTES,
            *ADMINISTERING_ROUTES,
            check_subscription,
            *pages.routes(),
        ],
        dependencies={"gateway": Provide(lambda: gateway, sync_to_thread=False)},
        middleware=[DefineMiddleware(Authentication, exclude_from_auth_key=PUBLIC)],
        exception_handlers={Exception: answer},
        openapi_config=OpenAPIConfig(
            title="distributary",
            version=distributary.__version__,
            # `watching` serves it, with what cannot be told from the routes.
            openapi_router=Router(
                "/schema", route_handlers=[], opt={PUBLIC: True}, include_in_schema=False
            ),
            render_plugins=[JsonRenderPlugin(path="/openapi.json")],
        ),
        after_exception=[_remember],
        logging_config=None,
        # Bodies are bounded as they come, and most of them go to the disk.
        request_max_body_size=None,
    )
    app.state.gateway = gateway
    app.state.landing = pages.landing
    return app
