"""A connection to a NATS server that comes back by itself.

The library can reconnect, but keeps what was said while there was no connection and says it
afterwards, late and out of step. Here nothing is kept: what is sent without a connection is lost,
whoever must be heard says it again, and each connection is a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from distributary.errors import BadInput, MissingPackage

try:
    import nats
    from nats.aio.client import Client
    from nats.aio.msg import Msg
except ImportError:  # pragma: no cover, where the extra is not installed
    raise MissingPackage("nats-py", extra="live", purpose="a broker on NATS") from None

__all__ = ["Handler", "NatsConnection", "Server"]

_log = logging.getLogger(__name__)

Handler = Callable[[Msg], None]
"""Takes a message that has arrived."""

# Between attempts to connect, at first and at most.
_RETRY_S = 0.05
_RETRY_S_MAX = 1.0
_WATCH_S = 0.2
_CONNECT_S = 5
_CLOSES_S = 1.0
# How long an end waits for a server to take what was sent; it may have ended too.
_FLUSHES_S = 3.0
# A server that does not answer for so long is gone, even if nobody says so.
_PING_S = 5
_PINGS_MAX = 2
# What may wait in memory for the broker, or for the server; beyond it messages are lost.
_MESSAGES_MAX = 1 << 18
_BYTES_MAX = 256 << 20


@dataclass(frozen=True)
class Server:
    """Where a NATS server is, and how to be let in.

    Attributes
    ----------
    urls
        One or several of a cluster.
    user, password
        Empty where the server asks for none.
    authority, certificate, key
        Files for TLS: whose certificates are believed, and the own one.
    """

    urls: tuple[str, ...]
    user: str = ""
    password: str = field(default="", repr=False)
    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    @property
    def wants_tls(self) -> bool:
        """Whether nothing may be said in clear text."""
        given = self.authority is not None or self.certificate is not None
        return given or any(url.startswith("tls:") for url in self.urls)

    def context(self) -> ssl.SSLContext | None:
        """Return what TLS needs, if it is wanted."""
        if self.authority is None and self.certificate is None:
            return None
        try:
            context = ssl.create_default_context(cafile=self.authority)
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise BadInput("nats.tls", f"cannot be read: {error}") from None
        return context


class NatsConnection:
    """A connection that is made again whenever it is lost.

    Parameters
    ----------
    server
        Where to.
    name
        Whose it is, for those who look at the server.
    inbox
        What the subjects of answers begin with.
    handlers
        Who takes messages, by the subjects that are subscribed to.
    changed
        Called when there is a connection, with True, and when there is none any more.
    """

    def __init__(
        self,
        server: Server,
        *,
        name: str,
        inbox: str,
        handlers: Mapping[str, Handler],
        changed: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._server = server
        self._name = name
        self._inbox = inbox
        self._handlers = handlers
        self._changed = changed
        self._client: Client | None = None
        self._lost = asyncio.Event()
        self._found = asyncio.Event()
        self._context = server.context()
        self._queue: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
        self._waiting_bytes = 0
        self._closing = False
        self._writing: asyncio.Task[None] | None = None
        self._keeping = asyncio.ensure_future(self._keep())
        self.problem = ""
        """Why there is no connection, as far as it is known."""
        self.refused = 0
        """How often the server has said that something is not allowed."""

    @property
    def connected(self) -> bool:
        """Whether there is a connection now; without one, what is sent is lost."""
        return self._client is not None

    async def wait(self) -> None:
        """Wait until there is a connection."""
        await self._found.wait()

    def send(self, subject: str, data: bytes) -> None:
        """Send something behind what was sent before; it may get lost."""
        if self._client is None or self._waiting_bytes > _BYTES_MAX:
            return
        self._waiting_bytes += len(data)
        self._queue.put_nowait((subject, data))

    async def request(
        self,
        subject: str,
        data: bytes,
        *,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Return the answer to a question.

        Raises
        ------
        OSError
            When there is none in time.
        """
        client, task = self._client, asyncio.current_task()
        if client is None:
            raise ConnectionError("there is no connection to NATS")
        assert task is not None
        cancellations = task.cancelling()
        try:
            named = dict(headers) if headers else None
            return (await client.request(subject, data, timeout=timeout_s, headers=named)).data
        except (TimeoutError, nats.errors.Error) as error:
            raise TimeoutError(f"no answer: {_described(error)}") from None
        finally:
            # The library swallows a cancellation that comes together with the answer, or while
            # it writes: whoever was to end would go on for good.
            if task.cancelling() > cancellations:
                raise asyncio.CancelledError

    async def flush(self) -> None:
        """Wait until the server has all that was sent, and all that it had for us is here."""
        while not self._queue.empty():
            await asyncio.sleep(0)
        client = self._client
        if client is not None:
            with contextlib.suppress(nats.errors.Error, asyncio.TimeoutError):
                # The library asks the server past what waits to be written; by the answer that
                # is written, and the second answer comes behind all that it led to.
                await client.flush()
                await client.flush()

    async def close(self) -> None:
        """End the connection, when all that was sent has left."""
        if self._client is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FLUSHES_S):
                    await self.flush()
        self._closing = True
        client, self._client = self._client, None
        tasks = {task for task in (self._keeping, self._writing) if task is not None}
        while tasks:
            # Again and again: the library may swallow a cancellation.
            for task in tasks:
                task.cancel()
            _, tasks = await asyncio.wait(tasks, timeout=_CLOSES_S)
        if client is not None:
            await _discard(client)

    async def _keep(self) -> None:
        wait_s = _RETRY_S
        # The library may swallow a cancellation.
        while not self._closing:
            try:
                client = await self._connect()
            except (TimeoutError, OSError, nats.errors.Error) as error:
                self._say(_described(error))
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, _RETRY_S_MAX)
                continue
            if self._closing:
                await _discard(client)
                return
            wait_s = _RETRY_S
            self._client = client
            self.problem = ""
            # What waited for the connection before is lost with it.
            self._queue, self._waiting_bytes = asyncio.Queue(), 0
            self._writing = asyncio.ensure_future(self._write(client))
            self._found.set()
            self._changed(True)
            await self._watch(client)
            self._client = None
            self._found.clear()
            # It may wait, for long, until a server that is gone takes more.
            self._writing.cancel()
            await _discard(client)
            self._say("the connection was lost")
            self._changed(False)

    async def _connect(self) -> Client:
        self._lost.clear()

        async def closed() -> None:
            self._lost.set()

        reasons: list[Exception] = []

        async def failed(error: Exception) -> None:
            reasons[:] = [error]
            if "ermissions" in str(error):
                self.refused += 1
            _log.debug("%s: %s", self._name, error)

        client = _SecretClient() if self._server.wants_tls else _DirectClient()
        try:
            await self._open(client, failed, closed)
        except BaseException as error:
            await _discard(client)
            if isinstance(error, nats.errors.NoServersError) and reasons:
                raise ConnectionError(_described(reasons[0])) from None
            raise
        return client

    async def _watch(self, client: Client) -> None:
        """Wait until a connection is lost.

        Where the library fails to send the rest of what it has, it does not say that it has
        closed; so it is asked as well.
        """
        while client.is_connected:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_WATCH_S):
                    await self._lost.wait()
                return

    async def _open(
        self,
        client: _DirectClient,
        failed: Callable[[Exception], Awaitable[None]],
        closed: Callable[[], Awaitable[None]],
    ) -> None:
        await client.connect(
            list(self._server.urls),
            name=self._name,
            user=self._server.user or None,
            password=self._server.password or None,
            tls=self._context,
            allow_reconnect=False,
            # Or it would try a server that is not there sixty times, two seconds apart.
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            connect_timeout=_CONNECT_S,
            ping_interval=_PING_S,
            max_outstanding_pings=_PINGS_MAX,
            inbox_prefix=self._inbox,
            error_cb=failed,
            closed_cb=closed,
        )
        for subject, handler in self._handlers.items():
            subscription = await client.subscribe(
                subject,
                cb=_asynchronous(handler),
                pending_msgs_limit=_MESSAGES_MAX,
                pending_bytes_limit=_BYTES_MAX,
            )
            client.handlers[subscription._id] = handler
        # Whoever hears that there is a connection can rely on hearing everything.
        await client.flush()

    async def _write(self, client: Client) -> None:
        queue = self._queue
        # The library may swallow a cancellation here, too.
        while self._client is client:
            subject, data = await queue.get()
            self._waiting_bytes -= len(data)
            try:
                await client.publish(subject, data)
            except nats.errors.MaxPayloadError:
                _log.error("%s: a message of %d bytes is too large", self._name, len(data))
            except (OSError, nats.errors.Error) as error:
                _log.debug("%s: %s", self._name, error)

    def _say(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            _log.warning("%s: no connection to NATS: %s", self._name, problem)


class _DirectClient(Client):
    """A client that hands messages over as it reads them.

    The library puts each into a queue, for a task to take it out: as much work again as to read
    it. Handlers here put messages aside themselves, or are done with them at once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.handlers: dict[int, Handler] = {}

    async def _process_msg(
        self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes
    ) -> None:
        handler = self.handlers.get(sid)
        if handler is None:
            await super()._process_msg(sid, subject, reply, data, headers)
            return
        try:
            handler(Msg(self, subject.decode(), reply.decode(), data))
        except Exception as error:
            await self._error_cb(error)


class _SecretClient(_DirectClient):
    """A client that says nothing to a server that does not speak TLS, least of all its password.

    The library goes by what the server says of itself, in clear text, which anybody on the way
    can change.
    """

    def _connect_command(self) -> bytes:
        if not self._server_info.get("tls_required"):
            raise nats.errors.Error("the server does not speak TLS")
        return bytes(super()._connect_command())


async def _discard(client: Client) -> None:
    """Close what is left of a connection, within a time.

    After a handshake that has failed, nobody ever says that anything is closed.
    """
    closing = asyncio.ensure_future(_close(client))
    # In a task of its own: whoever is interrupted while it waits for that is taken for cancelled.
    await asyncio.wait({closing}, timeout=_CLOSES_S)
    closing.cancel()
    await asyncio.wait({closing}, timeout=_CLOSES_S)
    for task in (client._reading_task, client._flusher_task):
        # The library's own end of a connection that was reset: it is known, and no news.
        if task is not None and task.done() and not task.cancelled():
            task.exception()
    transport: Any = client._transport
    if transport is not None:
        transport.close()


async def _close(client: Client) -> None:
    with contextlib.suppress(OSError, nats.errors.Error):
        await client.close()
    # The library forgets a socket whose server has said no, or is gone.
    transport: Any = client._transport
    if transport is not None:
        transport.close()
        with contextlib.suppress(OSError):
            await transport.wait_closed()


def _asynchronous(handler: Handler) -> Callable[[Msg], Awaitable[None]]:
    async def handle(message: Msg) -> None:
        handler(message)

    return handle


def _described(error: BaseException) -> str:
    return str(error) or type(error).__name__
