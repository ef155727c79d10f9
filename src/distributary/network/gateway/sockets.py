"""WebSockets: events in both directions, with acknowledgements on the way.

Subprotocol `cloudevents.json`: every message is an event in JSON. Events that are delivered have
the extension `sequence`, the number of the delivery, by which `{"ack": N}` acknowledges them. Those
that are published are answered in their order: `{"accepted": {"source": ..., "id": ...}}`, or what
is wrong as a problem with the `id` of the event.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Coroutine
from http import HTTPStatus
from typing import Any, TypeAlias

import msgspec
from litestar import websocket
from litestar.exceptions import WebSocketDisconnect

from distributary.broker.client import Accepted, Ended, Updated, named_in
from distributary.content.publication import parse_event
from distributary.errors import BadInput
from distributary.network.gateway.authentication import Here, Socket, needs, owner_of
from distributary.network.gateway.deliveries import event_of, notice, number_of, version_of
from distributary.network.gateway.directory import Owner
from distributary.network.gateway.feeds import FeedConnection, Ousted
from distributary.network.gateway.gateway import Gateway
from distributary.network.gateway.messages import Outbound, outbound
from distributary.network.gateway.problems import Problem, of
from distributary.network.gateway.publishing import check_sizes, check_sources
from distributary.network.gateway.subscribing import Name, held_of

__all__ = ["SOCKET_ROUTES"]

_SUBPROTOCOL = "cloudevents.json"
_LOOK_S = 1.0
_UNDER_WAY_MAX = 1_024
_OUSTED = 4000
_ENDED = 4001
_PROBLEM = 4400
_LATER = 1013
_REASON_BYTES_MAX = 120


_Answer: TypeAlias = asyncio.Future[Accepted] | Accepted | Problem


class Ack(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Up to which number everything has arrived."""

    ack: int


def _is_spoken(socket: Socket) -> bool:
    wanted = socket.headers.get("sec-websocket-protocol", "")
    return _SUBPROTOCOL in [one.strip() for one in wanted.split(",")]


async def _accept(socket: Socket) -> None:
    if not _is_spoken(socket):
        raise Problem(HTTPStatus.BAD_REQUEST, f"Sec-WebSocket-Protocol: offer {_SUBPROTOCOL}")
    await socket.accept(subprotocols=_SUBPROTOCOL)


async def _close(socket: Socket, code: int, reason: str = "") -> None:
    short = reason.encode()[:_REASON_BYTES_MAX].decode(errors="ignore")
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        await socket.close(code=code, reason=short)


@websocket("/subscriptions/{name:str}/events", guards=[needs("subscribe")])
async def deliver(socket: Socket, gateway: Here, name: Name) -> None:
    """Deliver events for as long as somebody listens; they are acknowledged by messages."""
    # Browsers cannot send a header here.
    after = number_of(socket.headers.get("last-event-id") or socket.query_params.get("after"))
    owner = owner_of(socket.user)
    held = await held_of(gateway, owner, name)
    if held.ended:
        raise Problem(HTTPStatus.NOT_FOUND, f"subscription {name} has ended: {held.ended}")
    await _accept(socket)
    peer = f"{socket.client.host if socket.client else ''} {socket.headers.get('user-agent')}"
    async with gateway.feeds.using(owner, name, held.home) as feed:
        connection = await feed.connect(after, explicit=True, peer=peer)
    if connection is None:
        await _close(socket, _ENDED, "the subscription has ended")
        return
    try:
        await _both(_read_acks(socket, connection), _write(socket, gateway, connection))
    finally:
        await connection.close()


async def _both(*work: Coroutine[Any, Any, None]) -> None:
    """Read and write at the same time, until either ends."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, WebSocketDisconnect, RuntimeError):
                await task


async def _write(socket: Socket, gateway: Gateway, connection: FeedConnection) -> None:
    try:
        while True:
            message = await connection.next(_LOOK_S)
            if message is None:
                continue
            if isinstance(message, Ended):
                await _close(socket, _ENDED, notice(message))
                return
            if isinstance(message, Updated):
                event = await version_of(gateway, connection, message)
            else:
                event = await event_of(gateway, connection, message)
                event["sequence"] = message.number
            await socket.send_text(json.dumps(event, ensure_ascii=False, separators=(",", ":")))
            connection.wrote(message)
    except Ousted:
        await _close(socket, _OUSTED, "another connection has taken over")
    except OSError:
        await _close(socket, _LATER, "there is no connection to NATS")


async def _read_acks(socket: Socket, connection: FeedConnection) -> None:
    while True:
        data = await socket.receive_data(mode="text")
        try:
            connection.acknowledge(msgspec.json.decode(data, type=Ack).ack)
        except (msgspec.DecodeError, UnicodeDecodeError):
            await _close(socket, _PROBLEM, 'a message must be {"ack": N}')
            return


@websocket("/publish", guards=[needs("publish")])
async def publish(socket: Socket, gateway: Here) -> None:
    """Publish events as they come, many under way; answers come in their order."""
    await _accept(socket)
    answers: asyncio.Queue[tuple[str, _Answer]] = asyncio.Queue(_UNDER_WAY_MAX)
    await _both(_read_events(socket, gateway, answers), _answer(socket, gateway, answers))


async def _read_events(
    socket: Socket,
    gateway: Gateway,
    answers: asyncio.Queue[tuple[str, _Answer]],
) -> None:
    host = socket.headers.get("host", "")
    owner = owner_of(socket.user)
    while True:
        data = await socket.receive_data(mode="text")
        name = ""
        try:
            publication = parse_event(data, bytes_max=2 * gateway.content_bytes_max)
            name = publication.id
            event = outbound(publication, host)
            check_sources(socket.user, [event])
            check_sizes([event], gateway.content_bytes_max)
            await gateway.limits.wait_for_events(owner.tenant, 1)
            gateway.limits.take_bytes(owner.tenant, len(data))
            gateway.audit.published(socket.user, 1)
            # With so many under way whoever sends has to wait, and so does the sender behind it.
            await answers.put((name, await _published(gateway, owner, event)))
        except (BadInput, Problem, OSError) as error:
            # Also what is no event may say which one it was to be.
            await answers.put((name or named_in(data)[1], of(error)))


async def _published(gateway: Gateway, owner: Owner, event: Outbound) -> _Answer:
    """Publish an event; return what says that it is stored, or that it is a version of an object.

    It is looked for each time who publishes: between two events its home may have changed.
    """
    version = await gateway.objects.version(owner, event.publication)
    async with gateway.publishers.using_for(owner, [version]) as client:
        if version is not None:
            client.change(version)
            return Accepted(*event.publication.identity)
        references = await gateway.publishers.references(owner, [event])
        (answer,) = gateway.publishers.submit(client, [event], references)
        return answer


async def _answer(
    socket: Socket, gateway: Gateway, answers: asyncio.Queue[tuple[str, _Answer]]
) -> None:
    while True:
        name, answer = await answers.get()
        told: dict[str, Any]
        try:
            if isinstance(answer, Problem):
                raise answer
            accepted = answer if isinstance(answer, Accepted) else await answer
            gateway.metrics.accepted.inc()
            told = {"accepted": {"source": accepted.source, "id": accepted.id}}
        except Exception as error:
            problem = of(error)
            told = {"problem": {"status": problem.status, "detail": problem.detail, "id": name}}
        await socket.send_text(json.dumps(told, ensure_ascii=False, separators=(",", ":")))


SOCKET_ROUTES = [deliver, publish]
"""All of these routes."""
