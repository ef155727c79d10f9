"""Subscriptions as loops: events come, and are acknowledged when the body is done with them.

Three tasks share one `Resumption`. The caller's own takes deliveries out of a short queue. A
reader fills the queue from server-sent events and connects again when they break off; when the
queue is full it stops reading, and the gateway stops sending. A third one tells the gateway how far
the caller is, one request at a time, so that what is done while a request is under way goes
together with the next.

Server-sent events, not the WebSocket: there the number of a delivery is an attribute of the event,
where a version of a stream has its own; here it is beside the event.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from contextlib import suppress
from types import TracebackType
from typing import Any
from urllib.parse import quote

from distributary.client.delivery import Delivery
from distributary.client.event_stream import EventStream, Message
from distributary.client.failure import RequestRefused, SubscriptionEnded, SubscriptionTaken
from distributary.client.gateway import Gateway, Patience, Trouble
from distributary.client.resumption import Resumption, delivery_number
from distributary.content.publication import parse_event
from distributary.errors import DistributaryError, PeerMisbehaved

__all__ = ["Subscription"]

# What is ready while the caller is busy.
_QUEUE = 16
# Leaving must not take long where nobody is.
_LEAVE_S = 5.0
_NO_CONTENT = 204
# The identifier by which a gateway says that a newer connection has taken over, and the kind of
# message by which it says that there is nothing more to come.
_OUSTED = "ousted"
_ENDED = "ended"
_NOT_THERE = (404, 410)


class Subscription:
    """What one `async for` runs over; made by `Connection.subscribe`.

    It is registered when it is entered by `async with`, or when the loop begins. What is published
    after that is owed.

    Attributes
    ----------
    id
        Its identifier; "" before it is registered.
    """

    def __init__(
        self, gateway: Gateway, request: dict[str, Any] | None, *, id: str = "", keep: bool
    ) -> None:
        self.id = id
        self._gateway = gateway
        self._request = request
        # Whoever asks again after a lost answer must not get a second subscription.
        self._key = secrets.token_urlsafe(16)
        self._keep = keep
        self._something_done = asyncio.Event()
        self._progress = Resumption(changed=self._something_done.set)
        self._queue: asyncio.Queue[Delivery | None] = asyncio.Queue(_QUEUE)
        self._handed: Delivery | None = None
        self._again: Delivery | None = None
        self._reader: asyncio.Task[None] | None = None
        self._teller: asyncio.Task[None] | None = None
        self._closed = False

    async def __aenter__(self) -> Subscription:
        await self._begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __aiter__(self) -> Subscription:
        # Whoever left the loop before its body was done gets that event again.
        if self._handed is not None and not self._handed.acknowledged:
            self._again = self._handed
        self._handed = None
        return self

    async def __anext__(self) -> Delivery:
        if self._handed is not None:
            self._handed.acknowledge()
            self._handed = None
        if self._closed:
            raise StopAsyncIteration
        await self._begin()
        assert self._reader is not None
        assert self._teller is not None
        if self._teller.done():
            await self._teller
        if self._again is not None:
            self._handed, self._again = self._again, None
            return self._handed
        delivery = await self._queue.get()
        if delivery is None:
            # So that asking once more gives the same answer.
            self._queue.put_nowait(None)
            await self._reader
            raise StopAsyncIteration
        self._handed = delivery
        return delivery

    async def close(self) -> None:
        """Leave: tell the gateway how far we are, and end the subscription unless it is kept."""
        if self._closed:
            return
        self._closed = True
        tasks = [task for task in (self._reader, self._teller) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            # Not one by one: if it is us who are cancelled meanwhile, that must not be taken
            # for one of theirs. And nobody asks any more what ended them.
            await asyncio.wait(tasks)
            await asyncio.gather(*tasks, return_exceptions=True)
        if not self.id:
            return
        with suppress(DistributaryError):
            if self._keep:
                await self._tell(_LEAVE_S)
            else:
                await self._gateway.ask("DELETE", self._path, patience_s=_LEAVE_S)

    @property
    def _path(self) -> str:
        return f"/subscriptions/{quote(self.id, safe='')}"

    async def _begin(self) -> None:
        if self._reader is not None:
            return
        if self._request is not None and not self.id:
            headers = {"idempotency-key": self._key}
            answer = await self._gateway.ask(
                "POST", "/subscriptions", json=self._request, headers=headers
            )
            self.id = _field(answer.content, "id")
        self._reader = asyncio.create_task(self._read())
        self._teller = asyncio.create_task(self._tell_always())

    # Reading.

    async def _read(self) -> None:
        try:
            await self._gateway.persist(self._read_once)
        finally:
            # The caller wakes up and finds why.
            if not self._closed:
                await self._queue.put(None)

    async def _read_once(self, patience: Patience) -> None:
        # Without `Last-Event-ID`: what is done is told by itself, what is not comes again, and
        # what has come already is dropped. After a cut, a gateway that takes our old connection
        # for somebody else's would turn us away for it.
        headers = {"accept": "text/event-stream", "cache-control": "no-store"}
        stream = EventStream()
        async with self._gateway.stream(
            "GET", f"{self._path}/events", headers=headers, params={"ack": "explicit"}
        ) as response:
            if response.status_code == _NO_CONTENT:
                raise SubscriptionTaken(self.id)
            patience.renew()
            async for chunk in response.aiter_bytes():
                for message in stream.feed(chunk):
                    await self._take(message)
        if stream.last_id == _OUSTED:
            raise SubscriptionTaken(self.id)
        raise Trouble("the stream of events ended", told_s=(stream.retry_ms or 0) / 1000)

    async def _take(self, message: Message) -> None:
        if message.event == _ENDED:
            raise SubscriptionEnded(self.id, _field(message.data.encode(), "reason"))
        number = delivery_number(message.id)
        if not self._progress.is_new(number):
            return
        publication = parse_event(message.data)
        await self._queue.put(Delivery(publication, number, self._progress, self._gateway))

    # Telling how far we are.

    async def _tell_always(self) -> None:
        while True:
            await self._something_done.wait()
            self._something_done.clear()
            await self._tell(None)

    async def _tell(self, patience_s: float | None) -> None:
        number = self._progress.untold
        if number is None:
            return
        try:
            await self._gateway.ask(
                "POST", f"{self._path}/acks", json={"up_to": number}, patience_s=patience_s
            )
        except RequestRefused as refusal:
            # One that has ended has nothing to acknowledge; its reader says so.
            if refusal.status not in _NOT_THERE:
                raise
        self._progress.was_told(number)


def _field(body: bytes, name: str) -> str:
    """Return a text that an answer of the gateway must have."""
    try:
        found = json.loads(body)[name]
    except (ValueError, KeyError, TypeError):
        found = None
    if not isinstance(found, str) or not found:
        raise PeerMisbehaved(f"the gateway does not say the {name} of a subscription")
    return found
