"""Outgoing publications of a client: in order, to its home, and elsewhere while that is away.

Publications of a session are taken in the order of their numbers, by one broker. When that does not
answer any more, what has no answer is published at another broker in a new session. Nobody knows
how much of it the first one has stored. What it has, it delivers when it is back; what both have
has one `source` and `id`, and is delivered once. There is no order between the two sessions, and
whoever publishes can tell, as every answer names its session.

The way back is not looked for: it would begin a third session, and cost order for nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import random
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeAlias

from distributary.broker import client as messages
from distributary.broker.addresses import Address, Blob
from distributary.errors import DistributaryError
from distributary.network.connection import NatsConnection
from distributary.network.requests import GetStatus, StatusTold
from distributary.network.subjects import Subjects
from distributary.network.transfers import NotAnswered, TransferFailed, ask, put_content

__all__ = [
    "REPEAT_S",
    "REPEAT_S_MAX",
    "ContentGone",
    "ContentSource",
    "Given",
    "Outgoing",
    "PendingRequest",
]

# How long a client waits for an answer at first, and at most.
REPEAT_S = 0.5
REPEAT_S_MAX = 8.0
# As many as a home keeps for one before them that has not come.
_UNDER_WAY_MAX = 64
# So much content is on its way to the home at once.
_PUTS_MAX = 8
# A broker that is started again is back after two seconds at most.
_AWAY_S = 4.0
# Whoever was not looked at for so long has slept, and others may well have answered.
_SLEPT_S = 1.0
# So many others are asked at once whether they are there, and for so long.
_ASKED = 3
_ASKED_S = 3.0


class ContentGone(DistributaryError):
    """A publication refers to content that was put before, and that its home does not have."""

    def __init__(self, digest: str) -> None:
        self.digest = digest
        super().__init__(f"content {digest} is not there any more; hint: put it again")


class ContentSource(Protocol):
    """Bytes that are kept somewhere else than in memory, until what refers to them is accepted."""

    @property
    def digest(self) -> str:
        """SHA-256 in hexadecimal digits."""

    @property
    def size_bytes(self) -> int:
        """How many there are."""

    def read(self, offset: int, count: int) -> bytes:
        """Return some of them."""


Given: TypeAlias = bytes | ContentSource
"""What is published with an event: bytes, or where they are."""


class _Bytes:
    """Bytes in memory."""

    def __init__(self, data: bytes) -> None:
        self.digest = hashlib.sha256(data).hexdigest()
        self.size_bytes = len(data)
        self._data = data

    def read(self, offset: int, count: int) -> bytes:
        return self._data[offset : offset + count]


class PendingRequest:
    """A request that waits for its answer, and is repeated meanwhile.

    Attributes
    ----------
    askers
        How many wait for it.
    """

    __slots__ = ("again_at", "answer", "askers", "message", "wait_s")

    def __init__(self, message: object, now: float) -> None:
        self.message = message
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.askers = 0
        self.wait_s = REPEAT_S
        self.again_at = now + REPEAT_S

    def is_due(self, now: float) -> bool:
        """Whether it is to be asked again; if so, the next time is later."""
        if now < self.again_at:
            return False
        self.wait_s = min(2 * self.wait_s, REPEAT_S_MAX)
        self.again_at = now + self.wait_s
        return True


class _Publication:
    """An event that is to be published, until it is accepted.

    Attributes
    ----------
    is_put
        Whether the home has its content, as far as it is known.
    """

    __slots__ = ("blob", "content", "event", "is_put", "request")

    def __init__(self, event: str, given: Given | Blob | None, media_type: str, now: float) -> None:
        self.event = event
        self.content: ContentSource | None = None
        self.blob: Blob | None = None
        if isinstance(given, Blob):
            self.blob = given
        elif given is not None:
            content = self.content = _Bytes(given) if isinstance(given, bytes) else given
            self.blob = Blob(media_type, content.size_bytes, content.digest)
        self.is_put = self.content is None
        self.request = PendingRequest(None, now)


class Outgoing:
    """What one client publishes.

    Parameters
    ----------
    connection, subjects, gateway
        How brokers are reached, and by whom.
    send
        Sends a message of the client to a broker.
    brokers
        Where it may publish when its home is away; nowhere else, if there are none.

    Attributes
    ----------
    home
        The broker that takes the publications.
    session
        In which session they are.
    objection
        Why they are not taken at present, if a broker has said so since one was.
    """

    def __init__(
        self,
        connection: NatsConnection,
        subjects: Subjects,
        gateway: str,
        address: Address,
        home: str,
        *,
        send: Callable[[object, str], None],
        brokers: Sequence[str],
    ) -> None:
        self.home = home
        self.session = secrets.token_hex(8)
        self.objection = ""
        self._connection = connection
        self._subjects = subjects
        self._gateway = gateway
        self._address = address
        self._send = send
        self._brokers = brokers
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Publication] = deque()
        self._numbers = itertools.count(1)
        self._under_way: dict[int, _Publication] = {}
        self._putting: dict[_Publication, asyncio.Task[None]] = {}
        self._room_to_put = asyncio.Semaphore(_PUTS_MAX)
        self._looking: asyncio.Task[None] | None = None
        self._paused_until = 0.0
        self._heard_at = self._looked_at = self._loop.time()

    def publish(
        self, event: str, content: Given | Blob | None, media_type: str
    ) -> asyncio.Future[messages.Accepted]:
        """Publish an event behind those before it; return what says that it is stored."""
        publication = _Publication(event, content, media_type, self._loop.time())
        self._waiting.append(publication)
        if publication.content is None:
            self._send_more()
        else:
            self._put_soon(publication)
        return publication.request.answer

    async def put(self, blob: Blob, begin: int, content: ContentSource) -> int:
        """Bring a part of some content that is to be published later.

        Parameters
        ----------
        begin
            Where its bytes stand.

        Returns
        -------
        int
            How many bytes are there now, from the first on. What does not follow them is not
            taken.

        Raises
        ------
        TransferFailed
            When it is not taken.
        """
        subject = self._subjects.to_host(self.home, self._gateway)

        def read(offset: int, count: int) -> bytes:
            return content.read(offset - begin, count) if offset >= begin else b""

        end = begin + content.size_bytes
        return await put_content(self._connection, subject, self._address, blob, read, end=end)

    @property
    def busy_s(self) -> float:
        """For how long nothing is to be sent."""
        return max(0.0, self._paused_until - self._loop.time())

    @property
    def waiting(self) -> int:
        """How many are not sent yet."""
        return len(self._waiting)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is to be sent, and everything is answered."""
        return not (self._waiting or self._under_way)

    def follow(self, old: str, new: str) -> None:
        """Go along with a client that has moved, and its sessions with it."""
        if self.home == old:
            self.home = new
            for publication in list(self._putting):
                self._put_soon(publication)

    def ask_again(self) -> None:
        """Send at once everything that is not answered, as after a break."""
        self._heard_at = self._loop.time()
        self._send_under_way()

    def look(self, now: float) -> None:
        """Send again what has waited for long enough, and elsewhere if that is no use."""
        if now >= self._paused_until:
            first = next(iter(self._under_way.values()), None)
            if first is not None and first.request.is_due(now):
                self._send_under_way()
            self._send_more()
        if self.is_idle or not self._connection.connected or now - self._looked_at > _SLEPT_S:
            self._heard_at = now
        self._looked_at = now
        silent_s = now - max(self._heard_at, self._paused_until)
        if silent_s > _AWAY_S and self._looking is None and self._brokers:
            self._looking = asyncio.ensure_future(self._look_elsewhere())

    async def close(self) -> None:
        """End what is under way."""
        looking = [] if self._looking is None else [self._looking]
        for task in [*looking, *self._putting.values()]:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    # What brokers answer.

    def accepted(self, message: messages.Accepted) -> None:
        """Take word that something is stored."""
        request = self.answered(message)
        if request is not None and not request.answer.done():
            request.answer.set_result(message)

    def answered(self, message: messages.Accepted | messages.Refused) -> PendingRequest | None:
        """Return what an answer is to, if it was waited for, and go on."""
        if message.session != self.session:
            return None
        self._heard_at = self._loop.time()
        self.objection = ""
        found = self._under_way.pop(message.number, None)
        self._send_more()
        return None if found is None else found.request

    def busy(self, message: messages.Busy) -> None:
        """Wait as long as a broker says."""
        if message.session == self.session and message.number in self._under_way:
            now = self._heard_at = self._loop.time()
            self.objection = message.reason
            if now >= self._paused_until:
                self._paused_until = now + message.wait_ns / 1e9
                self._loop.call_later(message.wait_ns / 1e9, self._send_under_way)

    def content_missing(self, message: messages.ContentMissing) -> None:
        """Bring content that a broker does not have, or not any more."""
        publication = self._under_way.get(message.number)
        if message.session == self.session and publication is not None and publication.is_put:
            self._heard_at = self._loop.time()
            if publication.content is not None:
                self._put_soon(publication)
            elif not publication.request.answer.done():
                publication.request.answer.set_exception(ContentGone(message.digest))
                # Its number is to be used up all the same: by a refusal.
                publication.event, publication.blob = "", None
                self._send_publication(message.number)

    # What is sent.

    def _send_more(self) -> None:
        now = self._loop.time()
        while self._waiting and len(self._under_way) < _UNDER_WAY_MAX and now >= self._paused_until:
            if not self._waiting[0].is_put:
                return
            number = next(self._numbers)
            one = self._under_way[number] = self._waiting.popleft()
            # It may have stood in line for longer than an answer takes.
            one.request.wait_s, one.request.again_at = REPEAT_S, now + REPEAT_S
            self._send_publication(number)

    def _send_publication(self, number: int) -> None:
        one = self._under_way[number]
        first = next(iter(self._under_way))
        publish = messages.Publish(one.event, one.blob, self.session, number, first)
        self._send(publish, self.home)

    def _send_under_way(self) -> None:
        for number, publication in self._under_way.items():
            if not publication.is_put:
                return
            self._send_publication(number)

    def _put_soon(self, publication: _Publication) -> None:
        """Bring content to the home, and then what refers to it."""
        publication.is_put = False
        before = self._putting.pop(publication, None)
        if before is not None:
            before.cancel()
        self._putting[publication] = asyncio.ensure_future(self._put(publication))

    async def _put(self, publication: _Publication) -> None:
        # In order, so that what is to be published first is there first.
        async with self._room_to_put:
            await self._put_until_taken(publication)
        del self._putting[publication]
        publication.is_put = True
        self._send_under_way()
        self._send_more()

    async def _put_until_taken(self, publication: _Publication) -> None:
        blob, content = publication.blob, publication.content
        assert blob is not None
        assert content is not None
        subject = self._subjects.to_host(self.home, self._gateway)
        wait_s = REPEAT_S
        while True:
            try:
                await put_content(
                    self._connection, subject, self._address, blob, content.read, self._heard
                )
            except TransferFailed as failure:
                # If it is no use, the home says what is wrong when it is published.
                if not failure.lasting:
                    if not isinstance(failure, NotAnswered):
                        self.objection = str(failure)
                    await asyncio.sleep(wait_s)
                    wait_s = min(2 * wait_s, REPEAT_S_MAX)
                    continue
            return

    def _heard(self) -> None:
        self._heard_at = self._loop.time()

    # Elsewhere.

    async def _look_elsewhere(self) -> None:
        """Go to another broker that answers, unless the present one does."""
        try:
            others = [one for one in self._brokers if one != self.home]
            asked = [self.home, *random.sample(others, min(_ASKED, len(others)))]
            there = await asyncio.gather(*(self._is_there(one) for one in asked))
            if there[0]:
                # It has much to do, and less if nobody comes again.
                self._heard()
                return
            found = [one for one, answers in zip(asked, there, strict=True) if answers]
            if found and self._loop.time() - self._heard_at > _AWAY_S:
                self._begin_anew(found[0])
        finally:
            self._looking = None

    async def _is_there(self, broker: str) -> bool:
        subject = self._subjects.to_host(broker, self._gateway)
        try:
            async with asyncio.timeout(_ASKED_S):
                return isinstance(await ask(self._connection, subject, GetStatus()), StatusTold)
        except (TransferFailed, TimeoutError):
            return False

    def _begin_anew(self, home: str) -> None:
        self.home = home
        self.session = secrets.token_hex(8)
        self._numbers = itertools.count(1)
        self._waiting.extendleft(reversed(self._under_way.values()))
        self._under_way.clear()
        self._paused_until = 0.0
        self._heard()
        for publication in self._waiting:
            if publication.content is not None:
                self._put_soon(publication)
        self._send_more()
