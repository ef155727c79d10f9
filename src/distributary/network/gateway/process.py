"""The process of a gateway, from its configuration to its end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from distributary.errors import DistributaryError
from distributary.network.gateway.app import application, refusing
from distributary.network.gateway.audit import Audit
from distributary.network.gateway.config import GatewayConfig
from distributary.network.gateway.gateway import Gateway
from distributary.network.gateway.limits import TenantLimiter
from distributary.network.gateway.pages import NO_PAGES, PageRoutes
from distributary.network.gateway.patience import PatientHttp, PatientWebSocket
from distributary.network.gateway.protection import Protection, hosts_of
from distributary.network.gateway.tokens import SCOPES
from distributary.network.process import STOPPED
from distributary.network.server import listening_at
from distributary.network.subjects import Subjects

__all__ = ["run_gateway"]

_log = logging.getLogger(__name__)

_AUDIT = "audit.jsonl"
_FIRST, _UP = "first", "up"
_MESSAGE_BYTES_MAX = 2**20
_STOPS_S = 3
_KEPT_ALIVE_S = 30


def run_gateway(
    config: GatewayConfig,
    ready: Callable[[], None] = lambda: None,
    *,
    token: str | None = None,
    login: str | None = None,
    pages: PageRoutes = NO_PAGES,
    listening: socket.socket | None = None,
) -> int:
    """Run a gateway until it is told to stop; return its exit code.

    Parameters
    ----------
    ready
        Called when it takes requests.
    token
        One that is to be valid for everything.
    login
        The secret of a link by which a browser gets the same, once.
    pages
        What it serves to people.
    listening
        Where it takes connections, if somebody has it for when this process is gone.
    """
    try:
        asyncio.run(_run(config, ready, token, login, pages, listening))
    except DistributaryError as error:
        _log.error("%s", error)
        return STOPPED
    except OSError as error:
        # It may be there when this one is started again.
        _log.error("%s", error)
        return os.EX_UNAVAILABLE
    return os.EX_OK


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether a record is of more than somebody who went away in the middle of a handshake."""
    return "without completing handshake" not in record.getMessage()


class _Server(uvicorn.Server):
    """A server that says when it takes requests."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: object = None) -> None:
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started:
            self._ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop when told to; the library would then die of the signal, with all that is open."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield


async def _run(
    config: GatewayConfig,
    ready: Callable[[], None],
    token: str | None,
    login: str | None,
    pages: PageRoutes,
    listening: socket.socket | None,
) -> None:
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
        acknowledged_s=table.acknowledged_s,
        publisher_idle_s=table.publisher_idle_s,
        limits=TenantLimiter(config.limits),
        audit=Audit(config.folder / _AUDIT),
    )
    try:
        await gateway.buckets.check()
        if token is not None:
            name = _FIRST if login is None else _UP
            await gateway.tokens.create(name, scopes=SCOPES, token=token)
            access = await gateway.tokens.find(token)
            if access is not None and login is not None:
                await gateway.sessions.offer(access, login)
        await gateway.members.wait()
        logging.getLogger("uvicorn.error").addFilter(_is_ours)
        server = _Server(
            uvicorn.Config(
                Protection(
                    refusing(application(gateway, pages)),
                    hosts=hosts_of(table.host, table.port, table.hosts),
                    origins=table.origins,
                    audit=gateway.audit,
                ),
                log_config=None,
                # What strangers send is answered, and fills no log.
                log_level="error",
                access_log=False,
                server_header=False,
                lifespan="off",
                ssl_certfile=config.certificate,
                ssl_keyfile=config.key,
                http=PatientHttp,
                ws=PatientWebSocket,
                ws_max_size=_MESSAGE_BYTES_MAX,
                timeout_keep_alive=_KEPT_ALIVE_S,
                timeout_graceful_shutdown=_STOPS_S,
            ),
            ready,
        )
        with listening or listening_at(table.host, table.port) as one:
            await server.serve([one])
    finally:
        await gateway.close()
