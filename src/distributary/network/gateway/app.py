"""The application: all routes of a gateway, and what they have in common."""

from __future__ import annotations

from litestar import Litestar, Router
from litestar.di import Provide
from litestar.middleware import DefineMiddleware
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin

import distributary
from distributary.network.gateway.administering import ADMINISTERING_ROUTES
from distributary.network.gateway.authentication import PUBLIC, Authentication
from distributary.network.gateway.checking import check_subscription
from distributary.network.gateway.delivering import DELIVERY_ROUTES
from distributary.network.gateway.gateway import Gateway
from distributary.network.gateway.logins import LOGIN_ROUTES
from distributary.network.gateway.pages import NO_PAGES, Pages
from distributary.network.gateway.problems import answer
from distributary.network.gateway.publishing import publish_events
from distributary.network.gateway.subscribing import SUBSCRIPTION_ROUTES
from distributary.network.gateway.watching import WATCHING_ROUTES

__all__ = ["application"]


def application(gateway: Gateway, pages: Pages = NO_PAGES) -> Litestar:
    """Return the application that speaks for a gateway, with pages for people."""
    app = Litestar(
        [
            publish_events,
            *SUBSCRIPTION_ROUTES,
            *DELIVERY_ROUTES,
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
            # All of it is served here: nothing is asked of anybody else's machines.
            openapi_router=Router(
                "/docs", route_handlers=[], opt={PUBLIC: True}, include_in_schema=False
            ),
            render_plugins=[JsonRenderPlugin(path="/openapi.json")],
        ),
        logging_config=None,
        # Bodies are bounded as they come, and most of them go to the disk.
        request_max_body_size=None,
    )
    app.state.gateway = gateway
    app.state.landing = pages.landing
    return app
