"""Publications under way: many at once over one WebSocket, in the order in which they were given.

The gateway answers each when it is stored, in the same order. What has no answer when a connection
breaks is sent again over the next one, under the same `source` and `id`: whatever was stored by
then is known by these, and delivered once.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from distributary.client.failure import problem_sentence
from distributary.client.gateway import Gateway, Patience, Trouble, problem_of, refusal_of
from distributary.content.publication import Publication
from distributary.errors import LocalMisuse, MissingPackage, PeerMisbehaved

try:
    from websockets.asyncio.client import ClientConnection, connect
    from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
    from websockets.typing import Subprotocol
except ModuleNotFoundError:
    raise MissingPackage("websockets", extra="client", purpose="publishing") from None

__all__ = ["PublishingSocket"]

# Whoever has given more than this and has no answer waits.
_UNDER_WAY = 512
_ANSWER_BYTES_MAX = 2**20
_OPEN_S = 10.0
_CLOSE_S = 2.0


class _Pending:
    """An event that has no answer, as it is sent."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)
            # Somebody who has given up does not ask what became of it.
            self.answer.exception()


class PublishingSocket:
    """The WebSocket by which one connection publishes; it is open while something waits."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._room = asyncio.Semaphore(_UNDER_WAY)
        # Those that have no answer, and how many of them were sent over the present connection.
        self._pending: deque[_Pending] = deque()
        self._sent = 0
        # How many may be sent ahead of their answers. Over a connection that breaks before the
        # first answer, as many again would not arrive either.
        self._ahead = _UNDER_WAY
        self._given = asyncio.Event()
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    async def publish(self, publication: Publication) -> None:
        """Publish an event behind those before it; return when it is stored."""
        text = json.dumps(publication.document(), ensure_ascii=False, separators=(",", ":"))
        async with self._room:
            if self._closed:
                raise _closed()
            pending = _Pending(text)
            self._pending.append(pending)
            self._given.set()
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._run())
            # Whoever gives up waiting does not take back what may be on its way.
            await asyncio.shield(pending.answer)

    async def close(self) -> None:
        """Stop; whoever waits for an answer is told that there will be none."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        # Not in the task itself: one that is cancelled before it begins never does anything.
        self._give_up(_closed())

    async def _run(self) -> None:
        try:
            await self._gateway.persist(self._run_once)
        except Exception as error:
            # Also what is our own fault: nobody shall wait for ever.
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        for pending in self._pending:
            pending.fail(error)
        self._pending.clear()

    async def _run_once(self, patience: Patience) -> None:
        async with _websocket(self._gateway) as socket:
            self._sent = 0
            self._given.set()
            sending = asyncio.create_task(self._send(socket))
            answers = 0
            try:
                async for frame in socket:
                    self._answered(frame)
                    answers += 1
                    self._ahead = min(self._ahead + 1, _UNDER_WAY)
                    self._given.set()
                    patience.renew()
            finally:
                if not answers:
                    self._ahead = max(1, min(self._ahead, self._sent) // 2)
                sending.cancel()
                with suppress(asyncio.CancelledError, ConnectionClosed):
                    await sending
        if self._pending:
            raise Trouble("the connection ended")

    async def _send(self, socket: ClientConnection) -> None:
        while True:
            await self._given.wait()
            self._given.clear()
            while self._sent < min(len(self._pending), self._ahead):
                # Counted before: its answer may come while this one waits for room.
                self._sent += 1
                await socket.send(self._pending[self._sent - 1].text)

    def _answered(self, frame: str | bytes) -> None:
        """Take the answer to the first that has none."""
        if not self._sent:
            raise PeerMisbehaved("the gateway answers what was not published")
        problem = _problem_in(frame)
        if problem is not None:
            refusal = refusal_of(*problem)
            if isinstance(refusal, Trouble):
                # Those behind it were stored before it, or will be sent again with it.
                raise refusal
            self._pending[0].fail(refusal)
        first = self._pending.popleft()
        self._sent -= 1
        if not first.answer.done():
            first.answer.set_result(None)


def _closed() -> LocalMisuse:
    return LocalMisuse("the connection was closed before this was stored")


def _problem_in(frame: str | bytes) -> tuple[int, str] | None:
    """Return the status and the sentence of an answer that is a problem."""
    try:
        answer = json.loads(frame)
        if "accepted" in answer:
            return None
        return int(answer["problem"]["status"]), str(answer["problem"]["detail"])
    except (ValueError, KeyError, TypeError):
        raise PeerMisbehaved("the gateway gives an answer that is none") from None


@asynccontextmanager
async def _websocket(gateway: Gateway) -> AsyncIterator[ClientConnection]:
    """Yield a connection for publishing; what goes wrong with it is `Trouble` or refused."""
    try:
        async with connect(
            f"ws{gateway.address.url.removeprefix('http')}/publish",
            additional_headers=gateway.headers,
            user_agent_header=None,
            subprotocols=[Subprotocol("cloudevents.json")],
            compression=None,
            max_size=_ANSWER_BYTES_MAX,
            open_timeout=_OPEN_S,
            close_timeout=_CLOSE_S,
            ssl=gateway.tls,
            proxy=True if gateway.by_proxy else None,
        ) as socket:
            yield socket
    except InvalidStatus as error:
        status, body = error.response.status_code, bytes(error.response.body or b"")
        told = error.response.headers.get("retry-after", "")
        raise refusal_of(status, problem_sentence(body, status), told) from None
    except (ConnectionClosed, InvalidHandshake, OSError) as error:
        raise Trouble(problem_of(error)) from None
