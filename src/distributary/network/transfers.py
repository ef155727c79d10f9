"""Transfers: content from host to host, and from clients, in chunks below what NATS takes.

Several chunks are under way, so that a long way does not make it slow, and they are written in
order, so that a break costs only what was under way.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from distributary.broker.addresses import Blob, is_digest
from distributary.broker.encoding import journal_key
from distributary.errors import DistributaryError, PeerMisbehaved
from distributary.network.connection import NatsConnection
from distributary.network.content import ContentStore, PartialContent, WrongContent
from distributary.network.requests import (
    CHUNK_BYTES,
    Answer,
    ContentReceived,
    GetChunk,
    Given,
    NotGiven,
    PutChunk,
    Request,
    decode_answer,
    encode_request,
)

__all__ = ["NotAnswered", "TransferFailed", "Transfers", "ask", "chunks", "put_content"]

_CHUNKS_UNDER_WAY = 6
_ANSWER_S = 5.0
# How many clients may put content at the same time; each has an open file.
_PUTS_MAX = 256

_Result = TypeVar("_Result")


class TransferFailed(DistributaryError):
    """Content could not be fetched.

    Attributes
    ----------
    lasting
        Whether it would be no use to try again.
    """

    def __init__(self, reason: str, *, lasting: bool) -> None:
        self.lasting = lasting
        super().__init__(reason)


class NotAnswered(TransferFailed):
    """A host has not said anything."""


async def ask(connection: NatsConnection, subject: str, request: Request) -> Answer:
    """Return what a host answers.

    Raises
    ------
    TransferFailed
        When it does not, or what it says makes no sense: `NotAnswered`.
    """
    try:
        data = await connection.request(subject, encode_request(request), timeout_s=_ANSWER_S)
        return decode_answer(data)
    except (OSError, PeerMisbehaved) as error:
        raise NotAnswered(str(error), lasting=False) from None


async def put_content(
    connection: NatsConnection,
    subject: str,
    client: str,
    blob: Blob,
    read: Callable[[int, int], bytes],
    heard: Callable[[], None] = lambda: None,
    *,
    end: int | None = None,
) -> int:
    """Put content to a home for a client, from where an earlier try has got to.

    Parameters
    ----------
    read
        Returns bytes from an offset on, as many as are asked for.
    heard
        Called at every answer.
    end
        Where to stop, if not when all of it is there.

    Returns
    -------
    int
        How many bytes are there, from the first on.

    Raises
    ------
    TransferFailed
        When it is not taken.
    """
    there = 0
    chunk = b""
    while True:
        message = PutChunk(client, blob.media_type, blob.digest, blob.size_bytes, there, chunk)
        answer = await ask(connection, subject, message)
        heard()
        if isinstance(answer, NotGiven):
            raise TransferFailed(answer.reason, lasting=answer.lasting)
        if not isinstance(answer, ContentReceived):
            raise TransferFailed("an answer to something else", lasting=True)
        there = answer.there
        chunk = read(there, CHUNK_BYTES)
        if there >= blob.size_bytes or (end is not None and (there >= end or not chunk)):
            return there


async def chunks(
    connection: NatsConnection, subject: str, blob: Blob, there: int = 0, end: int | None = None
) -> AsyncIterator[bytes]:
    """Yield the bytes of content from the host that has this subject, in order.

    Parameters
    ----------
    there
        How many of the first need not come.
    end
        Up to where they are wanted; all of them, unless given.

    Raises
    ------
    TransferFailed
        When the host does not have it, or does not answer.
    """
    under_way: deque[asyncio.Task[Answer]] = deque()
    asked = there
    end = blob.size_bytes if end is None else end
    # Whoever gets less than it has asked for has all of it.
    last = CHUNK_BYTES if end == blob.size_bytes else 0
    try:
        while there < end:
            while len(under_way) < _CHUNKS_UNDER_WAY and asked < end:
                count = min(CHUNK_BYTES, end - asked)
                request = GetChunk(blob.digest, asked, max(count, last))
                under_way.append(asyncio.ensure_future(ask(connection, subject, request)))
                asked += CHUNK_BYTES
            answer = await under_way.popleft()
            if isinstance(answer, NotGiven):
                raise TransferFailed(answer.reason, lasting=answer.lasting)
            wanted = min(CHUNK_BYTES, end - there)
            if not isinstance(answer, Given) or len(answer.data) != wanted:
                raise TransferFailed("other bytes than were asked for", lasting=True)
            there += wanted
            yield answer.data
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


class Transfers:
    """What goes into the store of one host, and out of it.

    Parameters
    ----------
    store
        Where content is.
    bytes_max
        How large content may be.
    """

    def __init__(self, store: ContentStore, *, bytes_max: int) -> None:
        self.store = store
        self._bytes_max = bytes_max
        # Syncs take their time, and the disk has one head anyway.
        self._thread = ThreadPoolExecutor(1, "content")
        self._puts: dict[str, PartialContent] = {}

    def close(self) -> None:
        """Let go of files when the write under way has ended; what was put so far stays."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        for partial in self._puts.values():
            partial.close()

    async def do(self, call: Callable[..., _Result], *arguments: Any) -> _Result:
        """Do something with files beside the loop."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)

    async def fetch(self, connection: NatsConnection, subject: str, blob: Blob) -> int:
        """Get content from the host that has this subject; return how many bytes have come.

        Raises
        ------
        TransferFailed
            When that does not have it, or does not answer.
        """
        if blob.size_bytes > self._bytes_max:
            raise TransferFailed(f"it has {blob.size_bytes:,} bytes", lasting=True)
        if await self.do(self.store.size, blob.digest) is not None:
            return 0
        partial = await self.do(self.store.partial, blob.digest, blob.size_bytes, "fetched")
        try:
            async for data in chunks(connection, subject, blob, partial.there):
                await self.do(partial.write, data)
            await self.do(partial.finish)
        except WrongContent as error:
            # What was left of an earlier try may be to blame.
            raise TransferFailed(str(error), lasting=partial.resumed == 0) from None
        except OSError as error:
            raise TransferFailed(f"it cannot be kept: {error}", lasting=False) from None
        finally:
            await self.do(partial.close)
        return blob.size_bytes - partial.resumed

    async def give(self, request: GetChunk) -> Answer | None:
        """Return bytes that somebody asks for; None if they are not there."""
        if not is_digest(request.digest) or request.offset < 0:
            return NotGiven("there is no such content", lasting=True)
        count = min(max(request.count, 0), CHUNK_BYTES)
        try:
            return Given(await self.do(self.store.read, request.digest, request.offset, count))
        except FileNotFoundError:
            return None

    async def take(self, request: PutChunk) -> ContentReceived | NotGiven:
        """Take bytes that a client puts."""
        if not is_digest(request.digest) or request.size_bytes < 0:
            return NotGiven("that is no content", lasting=True)
        if request.size_bytes > self._bytes_max:
            reason = f"it has {request.size_bytes:,} bytes; at most {self._bytes_max:,} are taken"
            return NotGiven(reason, lasting=True)
        try:
            return ContentReceived(await self.do(self._take, request))
        except WrongContent as error:
            return NotGiven(str(error), lasting=True)
        except OSError as error:
            return NotGiven(f"it cannot be kept: {error.strerror}", lasting=False)

    def _take(self, request: PutChunk) -> int:
        # Each client has partial content of its own. Who has sent nothing is not told how far
        # somebody else is, nor that the bytes are known already: a digest is no oracle.
        name = journal_key(request.client)
        key = f"{request.digest} {name}"
        partial = self._puts.pop(key, None)
        if partial is None:
            while len(self._puts) >= _PUTS_MAX:
                self._puts.pop(next(iter(self._puts))).close()
            partial = self.store.partial(request.digest, request.size_bytes, name)
        there = partial.there
        if request.offset == there and there + len(request.data) <= partial.size_bytes:
            partial.write(request.data)
        if partial.there < partial.size_bytes:
            self._puts[key] = partial
            return partial.there
        with partial:
            partial.finish()
        return partial.there
