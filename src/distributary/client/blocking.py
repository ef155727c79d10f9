"""The blocking twin, for scripts and notebooks.

A thread of its own has an event loop with a connection; every call is carried out there. It
therefore works where a loop runs already, as in a notebook, and where none does.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from distributary.arguments import checked
from distributary.client.connection import PATIENCE_S, Connection, connect
from distributary.client.delivery import READ_BYTES_MAX, Delivered, Delivery
from distributary.client.subscription import Subscription
from distributary.errors import LocalMisuse

__all__ = ["SyncConnection", "SyncDelivery", "SyncSubscription", "connect_sync"]

T = TypeVar("T")

_AHEAD = 64
_END = object()


def connect_sync(
    url: str | None = None,
    token: str | None = None,
    *,
    patience_s: float = PATIENCE_S,
    clear_text: bool = False,
    tls: ssl.SSLContext | None = None,
) -> SyncConnection:
    """Return a connection to a gateway, for `with`; the arguments are those of `connect`."""
    return SyncConnection(
        connect(url, token, patience_s=patience_s, clear_text=clear_text, tls=tls)
    )


def _not_open() -> LocalMisuse:
    return LocalMisuse("the connection is not open; hint: use it inside of `with`")


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="distributary", daemon=True
        )
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin with a coroutine."""
        if self._loop.is_closed():
            work.close()
            raise _not_open()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine gives; an interrupt cancels it."""
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """End the thread; nothing can be run any more."""
        self.run(self._loop.shutdown_asyncgens())
        self.run(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class SyncConnection:
    """A connection to a gateway; made by `connect_sync`. `Connection` explains each method."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._loop: _Loop | None = None

    @property
    def url(self) -> str:
        """Where the gateway is."""
        return self._connection.url

    def __enter__(self) -> SyncConnection:
        self._loop = _Loop()
        try:
            self._loop.run(self._connection.__aenter__())
        except BaseException:
            self._loop.stop()
            self._loop = None
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        loop = self._opened
        self._loop = None
        try:
            loop.run(self._connection.__aexit__(kind, error, traceback))
        finally:
            loop.stop()

    @property
    def _opened(self) -> _Loop:
        if self._loop is None:
            raise _not_open()
        return self._loop

    def publish(self, data: object = None, /, **said: Any) -> tuple[str, str]:
        """Publish an event; return its `source` and `id` when it is stored."""
        return self._opened.run(self._connection.publish(data, **said))

    @checked
    def publish_all(self, items: Iterable[object], /, **said: Any) -> int:
        """Publish an event for every item, in order and many at once; return how many."""
        loop = self._opened
        queue: asyncio.Queue[object] = asyncio.Queue(_AHEAD)

        async def handed() -> AsyncIterator[object]:
            while (item := await queue.get()) is not _END:
                yield item

        # What makes the items may take its time: it does so here, and not in the loop's thread.
        publishing = loop.submit(self._connection.publish_all(handed(), **said))
        try:
            for item in chain(items, [_END]):
                putting = loop.submit(queue.put(item))
                both: list[Future[Any]] = [putting, publishing]
                wait(both, return_when=FIRST_COMPLETED)
                if publishing.done():
                    break
            return publishing.result()
        except BaseException:
            publishing.cancel()
            raise

    def announce(self, *subjects: str, **said: Any) -> None:
        """Announce stream objects: what is published under their names are versions of them."""
        self._opened.run(self._connection.announce(*subjects, **said))

    def subscribe(self, filters: Any = (), **wanted: Any) -> SyncSubscription:
        """Return a subscription, for `for` and perhaps `with` around it."""
        loop = self._opened

        async def make() -> Subscription:
            return self._connection.subscribe(filters, **wanted)

        return SyncSubscription(loop, loop.run(make()))

    def subscriptions(self) -> list[dict[str, Any]]:
        """Return the subscriptions that there are of ours, with how far they are."""
        return self._opened.run(self._connection.subscriptions())

    def brokers(self) -> dict[str, dict[str, Any] | None]:
        """Return how each broker is, None of those who do not answer; for operators."""
        return self._opened.run(self._connection.brokers())

    def unsubscribe(self, id: str) -> None:
        """End a subscription, and forget what waits for it."""
        self._opened.run(self._connection.unsubscribe(id))


class SyncSubscription:
    """What one `for` runs over; made by `SyncConnection.subscribe`."""

    def __init__(self, loop: _Loop, subscription: Subscription) -> None:
        self._loop = loop
        self._subscription = subscription

    @property
    def id(self) -> str:
        """Its identifier; "" before it is registered."""
        return self._subscription.id

    def __enter__(self) -> SyncSubscription:
        self._loop.run(self._subscription.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave: tell the gateway how far we are, and end the subscription unless it is kept."""
        self._loop.run(self._subscription.close())

    def __iter__(self) -> Iterator[SyncDelivery]:
        self._subscription.__aiter__()
        return self

    def __next__(self) -> SyncDelivery:
        try:
            return SyncDelivery(self._loop, self._loop.run(self._subscription.__anext__()))
        except StopAsyncIteration:
            raise StopIteration from None


class SyncDelivery(Delivered):
    """An event that was delivered, with its content wherever that is."""

    def __init__(self, loop: _Loop, delivery: Delivery) -> None:
        super().__init__(delivery.publication, delivery.number, delivery._progress)
        self._loop = loop
        self._delivery = delivery

    def read(self, *, bytes_max: int = READ_BYTES_MAX) -> bytes:
        """Return its content as bytes, wherever it is; see `Delivery.read`."""
        return self._loop.run(self._delivery.read(bytes_max=bytes_max))

    def save(self, path: Path | str) -> Path:
        """Write its content to a file; see `Delivery.save`."""
        return self._loop.run(self._delivery.save(path))

    def acknowledge(self) -> None:
        """Say that this is done, and all before it; see `Delivery.acknowledge`."""
        # In the thread of the loop, where those are who are told of it.
        self._loop.run(self._acknowledge())

    async def _acknowledge(self) -> None:
        self._delivery.acknowledge()
        super().acknowledge()
