"""Connections: where publishing and subscribing begin."""

from __future__ import annotations

import asyncio
import json
import math
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias
from urllib.parse import quote
from weakref import WeakSet

from distributary.arguments import check_number, check_type, checked
from distributary.client.composition import SOURCE, compose
from distributary.client.content import by_reference
from distributary.client.failure import RequestRefused
from distributary.client.gateway import Gateway, Observe
from distributary.client.here import Address, find_gateway
from distributary.client.publisher import PublishingSocket
from distributary.client.subscription import Subscription
from distributary.content.attributes import AttributeValue
from distributary.content.payload import checked_json
from distributary.content.profile import DeviceProfile
from distributary.content.publication import Publication
from distributary.errors import BadInput, LocalMisuse

__all__ = ["PATIENCE_S", "Connection", "Filters", "connect"]

Filters: TypeAlias = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
"""One filter or several, all of which must hold; a text is an expression of CESQL."""

PATIENCE_S = 60.0
_FIRST_S = 5.0
_UNDER_WAY = 256
_PUTS_MAX = 5
_CONFLICT = 409


@checked
def connect(
    url: str | None = None,
    token: str | None = None,
    *,
    patience_s: float = PATIENCE_S,
    clear_text: bool = False,
    tls: ssl.SSLContext | None = None,
) -> Connection:
    """Return a connection to a gateway, for `async with`.

    Parameters
    ----------
    url, token
        The gateway, and who we are to it. Unless given, `DISTRIBUTARY_URL` and
        `DISTRIBUTARY_TOKEN` say it, or it is what `distributary up` runs on this machine.
    patience_s
        How long to try again what fails for now, `math.inf` for ever.
    clear_text
        Whether a token may go to another machine in clear text.
    tls
        Whom to believe, if not those whom this machine believes.
    """
    check_number("patience_s", patience_s, positive=True, most=math.inf)
    address = find_gateway(url, token, clear_text=clear_text)
    return Connection(address, patience_s=patience_s, tls=tls)


class Connection:
    """A connection to a gateway; made by `connect`."""

    def __init__(
        self,
        address: Address,
        *,
        patience_s: float,
        tls: ssl.SSLContext | None = None,
        observe: Observe | None = None,
    ) -> None:
        self._address = address
        self._patience_s = patience_s
        self._tls = tls
        self._observe = observe
        self._open: tuple[Gateway, PublishingSocket] | None = None
        self._subscriptions: WeakSet[Subscription] = WeakSet()

    @property
    def url(self) -> str:
        """Where the gateway is."""
        return self._address.url

    async def __aenter__(self) -> Connection:
        gateway = Gateway(
            self._address, patience_s=self._patience_s, tls=self._tls, observe=self._observe
        )
        try:
            # A wrong address is noticed now, not after a minute of patience.
            await gateway.ask("GET", "/health", patience_s=min(_FIRST_S, self._patience_s))
        except BaseException:
            await gateway.close()
            raise
        self._open = gateway, PublishingSocket(gateway)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        gateway, publisher = self._opened
        self._open = None
        for subscription in list(self._subscriptions):
            await subscription.close()
        await publisher.close()
        await gateway.close()

    @property
    def _opened(self) -> tuple[Gateway, PublishingSocket]:
        if self._open is None:
            raise LocalMisuse("the connection is not open; hint: use it inside of `async with`")
        return self._open

    # Publishing.

    async def publish(
        self,
        data: object = None,
        /,
        *,
        type: str | None = None,
        source: str | None = None,
        media_type: str | None = None,
        **attributes: AttributeValue | None,
    ) -> tuple[str, str]:
        """Publish an event; return its `source` and `id` when it is stored.

        Several at once go over one connection without waiting for each other, in the order in
        which they were called.

        Parameters
        ----------
        data
            Bytes, a text, the `Path` of a file, or any other JSON value; or a `Publication`,
            which has its attributes already.
        type
            What kind of event it is.
        source
            Where it comes from, `/client` unless given.
        media_type
            The format of the data, if it does not follow from what it is.
        attributes
            `id`, `subject`, `time` and extensions. The same `source` and `id` again is the same
            event, and delivered once.
        """
        said = {"type": type, "source": source, "datacontenttype": media_type, **attributes}
        publication, file = compose(data, said)
        await self._publish(publication, file, await self._put(publication, file))
        return publication.identity

    @checked
    async def publish_all(
        self,
        items: Iterable[object] | AsyncIterable[object],
        /,
        *,
        type: str | None = None,
        source: str | None = None,
        media_type: str | None = None,
        **attributes: AttributeValue | None,
    ) -> int:
        """Publish an event for every item, in order and many at once; return how many.

        Each item goes as soon as it is there. The first that is refused ends it. One that cannot
        be published at all is named when those before it are stored.

        Parameters
        ----------
        items
            The data of each event; see `publish` for this and the rest.
        """
        said = {"type": type, "source": source, "datacontenttype": media_type, **attributes}
        room = asyncio.Semaphore(_UNDER_WAY)
        published = 0
        failure: Exception | None = None

        async def send(publication: Publication, file: Path | None, sent: Publication) -> None:
            try:
                await self._publish(publication, file, sent)
            finally:
                room.release()

        try:
            async with asyncio.TaskGroup() as group:
                try:
                    async for item in _each(items):
                        publication, file = _composed(item, said, published)
                        sent = await self._put(publication, file)
                        await room.acquire()
                        group.create_task(send(publication, file, sent))
                        published += 1
                except Exception as error:
                    # Left to the group, it would cancel those that are under way.
                    failure = error
        except BaseExceptionGroup as group_of:
            raise group_of.exceptions[0] from None
        if failure is not None:
            raise failure
        return published

    async def _put(self, publication: Publication, file: Path | None) -> Publication:
        """Return an event as it is sent: large content is put to the gateway first."""
        return await by_reference(self._opened[0], publication, file)

    async def _publish(
        self, publication: Publication, file: Path | None, sent: Publication
    ) -> None:
        """Publish an event whose content was put, and put that again if it is gone.

        It is kept by one broker until it is published, and that one may be away by then.
        """
        for left in reversed(range(_PUTS_MAX)):
            try:
                await self._opened[1].publish(sent)
                return
            except RequestRefused as refusal:
                is_gone = refusal.status == _CONFLICT and sent is not publication
                if not is_gone or not left:
                    raise
            sent = await self._put(publication, file)

    async def announce(
        self,
        *subjects: str,
        type: str,
        source: str = SOURCE,
        **attributes: AttributeValue | None,
    ) -> None:
        """Announce stream objects: what is published under their names are versions of them.

        A version is an event with this `source`, one of these subjects and a `sequence` that
        grows; whoever follows an object gets as many of them as its tolerance asks for.

        Parameters
        ----------
        subjects
            The names of the objects.
        type, source, attributes
            What versions say of themselves, and filters look at.
        """
        said = {"type": type, "source": source, **attributes}
        objects = [compose(None, {**said, "subject": one})[0].attributes for one in subjects]
        await self._opened[0].ask("PUT", "/objects", json=[dict(one) for one in objects])

    # Subscribing.

    @checked
    def subscribe(
        self,
        filters: Filters = (),
        *,
        accept: Sequence[str] | str | None = None,
        screen: str | None = None,
        bandwidth_kbps: float | None = None,
        tolerance: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        id: str | None = None,
        keep: bool = False,
    ) -> Subscription:
        """Return a subscription, for `async for` and perhaps `async with` around it.

        Parameters
        ----------
        filters
            What to get: expressions of CESQL as texts, or filters of any dialect, all of which
            must hold. Without any, everything.
        accept, screen, bandwidth_kbps
            What the device can use: media types, best first or with q-values; `390x844`; the
            bandwidth of its connection. Without any, events come as they were published.
        tolerance
            How far a copy of a stream may be off, as in
            `{"value": "/price", "divergence": "absolute", "amount": 0.5}`.
        config
            `expires`, `queue_bytes`, `queue_s`.
        id
            A subscription that there is, to go on with; nothing else may be said then.
        keep
            Whether the subscription stays when it is left, so that `id` can go on with it. One
            that is not kept ends, and what it has not acknowledged ends with it.
        """
        gateway, _ = self._opened
        profile = _profile(accept, screen, bandwidth_kbps)
        request: dict[str, Any] = {"filters": _filters(filters)}
        for name, value in (("profile", profile), ("tolerance", tolerance), ("config", config)):
            if value is not None:
                request[name] = dict(value)
        for name, value in request.items():
            checked_json(value, name)
        if id is not None:
            if not id:
                raise BadInput("id", "must not be empty")
            if request != {"filters": []}:
                raise BadInput("id", "names a subscription that says already what it wants")
            made = Subscription(gateway, None, id=id, keep=True)
        else:
            made = Subscription(gateway, request, keep=keep)
        self._subscriptions.add(made)
        return made

    async def subscriptions(self) -> list[dict[str, Any]]:
        """Return the subscriptions that there are of ours, with how far they are."""
        return list(json.loads((await self._opened[0].ask("GET", "/subscriptions")).content))

    async def brokers(self) -> dict[str, dict[str, Any] | None]:
        """Return how each broker is, None of those who do not answer; for operators."""
        answer = json.loads((await self._opened[0].ask("GET", "/brokers")).content)
        return dict(answer["brokers"])

    @checked
    async def unsubscribe(self, id: str) -> None:
        """End a subscription, and forget what waits for it."""
        await self._opened[0].ask("DELETE", f"/subscriptions/{quote(id, safe='')}")


async def _each(items: Iterable[object] | AsyncIterable[object]) -> AsyncIterator[object]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


def _composed(
    item: object, said: Mapping[str, object], before: int
) -> tuple[Publication, Path | None]:
    try:
        return compose(item, said)
    except BadInput as error:
        raise error.within(f"item {before + 1:,}") from None


def _filters(filters: Filters) -> list[Mapping[str, Any]]:
    several = [filters] if isinstance(filters, str | Mapping) else filters
    check_type("filters", several, Sequence)
    made: list[Mapping[str, Any]] = []
    for at, one in enumerate(several):
        check_type(f"filters[{at}]", one, str, Mapping)
        made.append({"sql": one} if isinstance(one, str) else one)
    return made


def _profile(
    accept: Sequence[str] | str | None, screen: str | None, bandwidth_kbps: float | None
) -> dict[str, Any] | None:
    if accept is None and screen is None and bandwidth_kbps is None:
        return None
    said = {
        "accept": "*/*" if accept is None else accept if isinstance(accept, str) else list(accept),
        "screen": screen,
        "bandwidth_kbps": bandwidth_kbps,
    }
    return DeviceProfile.parse({k: v for k, v in said.items() if v is not None}).document()
