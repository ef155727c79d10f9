"""The process of a gateway, from its configuration to its end."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable

import uvicorn

from distributary.errors import DistributaryError
from distributary.network.gateway.app import application, refusing
from distributary.network.gateway.config import GatewayConfig
from distributary.network.gateway.gateway import Gateway
from distributary.network.gateway.tokens import SCOPES
from distributary.network.process import STOPPED
from distributary.network.subjects import Subjects

__all__ = ["run_gateway"]

_log = logging.getLogger(__name__)

_STOPS_S = 3
_KEPT_ALIVE_S = 30


def run_gateway(
    config: GatewayConfig,
    ready: Callable[[], None] = lambda: None,
    *,
    token: str | None = None,
) -> int:
    """Run a gateway until it is told to stop; return its exit code.

    Parameters
    ----------
    ready
        Called when it takes requests.
    token
        One that is to be valid for everything.
    """
    try:
        asyncio.run(_run(config, ready, token))
    except DistributaryError as error:
        _log.error("%s", error)
        return STOPPED
    return os.EX_OK


class _Server(uvicorn.Server):
    """A server that says when it takes requests."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: object = None) -> None:
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started:
            self._ready()


async def _run(config: GatewayConfig, ready: Callable[[], None], token: str | None) -> None:
    table = config.gateway
    config.folder.mkdir(parents=True, exist_ok=True)
    subjects = Subjects(table.overlay)
    gateway = Gateway(
        subjects,
        config.server,
        table.name,
        brokers=table.brokers,
        folder=config.folder,
        content_bytes_max=table.content_bytes_max,
    )
    try:
        if token is not None:
            await gateway.tokens.create("up", scopes=SCOPES, token=token)
        await gateway.members.wait()
        server = _Server(
            uvicorn.Config(
                refusing(application(gateway)),
                host=table.host,
                port=table.port,
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                ws="websockets-sansio",
                timeout_keep_alive=_KEPT_ALIVE_S,
                timeout_graceful_shutdown=_STOPS_S,
            ),
            ready,
        )
        await server.serve()
    finally:
        await gateway.close()
