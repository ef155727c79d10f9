"""The demo of `distributary up --demo`: a flood, those who follow it, and prices beside it.

Everybody here goes through the front door, by the client library and with a token that permits
what a program of this kind needs: it is what anybody's program would be.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import random
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributary.cli.gateway_options import run_until_told
from distributary.errors import BadInput, MissingPackage

if TYPE_CHECKING:
    from distributary.client.connection import Connection
    from distributary.client.here import Address

__all__ = ["SETTINGS", "check_packages", "run_demo"]

SETTINGS = """\
[settings.streams]
fanout = 2

[settings.adaptation]
window_s = 5.0
round_s = 10.0
hold_s = 5.0
"""
"""What the brokers of a demo are told: trees that begin narrow, and adapt while one looks on."""

_PACKAGES = (
    ("httpx", "httpx", "client"),
    ("websockets", "websockets", "client"),
    ("pillow", "PIL", "media"),
    ("pypdfium2", "pypdfium2", "media"),
)
_TOKEN = "demo"  # noqa: S105, its name
_SURVEY, _MAP = "/demo/survey", "map.flood"
_EXCHANGE, _PRICE = "/demo/exchange", "price"
_OBJECTS = ("ACME", "GLOBEX", "INITECH")
_REGIONS = ("north", "south")
_PDF = "application/pdf"
_PERIOD_S = 5.0
_CHANGE_S = 0.25
# A machine that converts more slowly than this publishes gets fewer maps, not a queue of them.
_UNDER_WAY = 2
_SLOW_S = 60.0
_MISSING = 404


@dataclass(frozen=True)
class _Wish:
    """What somebody wants, and what their device can use; fields as in `Connection.subscribe`."""

    filters: str
    accept: tuple[str, ...] | None = None
    screen: str | None = None
    tolerance: Mapping[str, Any] | None = None


def _maps(more: str, *accept: str, screen: str | None = None) -> _Wish:
    return _Wish(f"type = '{_MAP}'{more}", accept, screen)


def _prices(more: str, divergence: str, amount: float) -> _Wish:
    tolerance = {"value": "/price", "divergence": divergence, "amount": amount}
    return _Wish(f"type = '{_PRICE}'{more}", tolerance=tolerance)


_WISHES = {
    "control room": _maps("", "image/jpeg", f"{_PDF};q=0.1", screen="1920x1080"),
    "archive": _maps("", _PDF),
    "office": _maps("", "image/png;q=0.9", "image/webp", screen="2560x1440"),
    "phone in the north": _maps(" AND region = 'north'", "image/webp", screen="390x844"),
    "phone in the south": _maps(" AND region = 'south'", "image/jpeg", screen="390x844"),
    "phone of a chief": _maps(" AND severity >= 2", "image/webp", screen="390x844"),
    "pager": _maps("", "text/plain;charset=utf-8"),
    "old pager": _maps(" AND severity >= 2", "text/plain;charset=us-ascii"),
    "radio in a boat": _maps(" AND severity = 3", "audio/mpeg", "audio/wav"),
    "dealer": _prices("", "absolute", 0.05),
    "another dealer": _prices(" AND subject = 'ACME'", "absolute", 0.05),
    "fund": _prices("", "relative", 0.01),
    "saver": _prices("", "absolute", 0.5),
    "newspaper": _prices("", "relative", 0.05),
    "ticker": _prices("", "absolute", 0.2),
}


def check_packages() -> None:
    """Raise `MissingPackage` unless all is there that the demo needs, before anything starts."""
    for package, module, extra in _PACKAGES:
        if find_spec(module) is None:
            raise MissingPackage(package, extra=extra, purpose="the demo")


def run_demo(state: Path) -> int:
    """Publish and subscribe at the overlay of a folder until told to stop; return the exit code."""
    # Every acknowledgement would be a line in the log.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    run_until_told(lambda: _run(state))
    return os.EX_OK


async def _run(state: Path) -> None:
    from distributary.client.connection import Connection
    from distributary.client.here import find_gateway

    address = await _own_token(find_gateway(state=state))
    async with Connection(address, patience_s=math.inf) as connection:
        # Of a demo that was killed.
        for left in await connection.subscriptions():
            await connection.unsubscribe(left["id"])
        room = asyncio.Semaphore(_UNDER_WAY)
        async with asyncio.TaskGroup() as group:
            wishes = [wish for wish in _WISHES.values() if _can_be_made(wish)]
            there = [asyncio.Event() for _ in wishes]
            for wish, registered in zip(wishes, there, strict=True):
                # The first gets every map, and says when there is room for the next.
                done = room if registered is there[0] else None
                group.create_task(_follow(connection, wish, registered, done))
            for registered in there:
                await registered.wait()
            group.create_task(_publish_maps(connection, room))
            group.create_task(_publish_prices(connection))


async def _own_token(address: Address) -> Address:
    """Return how a demo is let in: as itself, so that nobody's own subscriptions are mixed up."""
    from distributary.client.failure import RequestRefused
    from distributary.client.gateway import Gateway
    from distributary.client.here import Address

    operator = Gateway(address, patience_s=math.inf)
    try:
        try:
            await operator.ask("DELETE", f"/tokens/{_TOKEN}")
        except RequestRefused as refusal:
            if refusal.status != _MISSING:
                raise
        asked = {"name": _TOKEN, "scopes": ["publish", "subscribe"], "sources": ["/demo/"]}
        made = await operator.ask("POST", "/tokens", json=asked)
    finally:
        await operator.close()
    return Address(address.url, json.loads(made.content)["token"])


def _can_be_made(wish: _Wish) -> bool:
    """Whether there are converters here for what a device takes: speech is an extra of its own."""
    from distributary.content.media_type import MediaType
    from distributary.media.registry import installed

    for media_type in wish.accept or ():
        kind = media_type.partition(";q=")[0]
        if kind != _PDF:
            try:
                installed().route(MediaType.parse(_PDF), MediaType.parse(kind))
            except BadInput:
                return False
    return True


async def _follow(
    connection: Connection, wish: _Wish, registered: asyncio.Event, room: asyncio.Semaphore | None
) -> None:
    async with connection.subscribe(
        wish.filters, accept=wish.accept, screen=wish.screen, tolerance=wish.tolerance
    ) as events:
        registered.set()
        async for _ in events:
            if room is not None:
                room.release()


async def _publish_maps(connection: Connection, room: asyncio.Semaphore) -> None:
    from distributary.media.samples import map_pdf

    for number in count(1):
        with suppress(TimeoutError):
            async with asyncio.timeout(_SLOW_S):
                await room.acquire()
        await connection.publish(
            map_pdf(pages=2, seed=number),
            type=_MAP,
            source=_SURVEY,
            media_type=_PDF,
            subject=f"flood-{number}.pdf",
            region=_REGIONS[number % len(_REGIONS)],
            severity=1 + number % 3,
        )
        await asyncio.sleep(_PERIOD_S)


async def _publish_prices(connection: Connection) -> None:
    await connection.announce(*_OBJECTS, type=_PRICE, source=_EXCHANGE)
    rng = random.Random(0)
    prices = dict.fromkeys(_OBJECTS, 100.0)
    while True:
        for subject in _OBJECTS:
            prices[subject] *= math.exp(rng.gauss(0.0, 0.002))
            await connection.publish(
                {"price": round(prices[subject], 2)},
                type=_PRICE,
                source=_EXCHANGE,
                subject=subject,
                sequence=str(time.time_ns()),
            )
        await asyncio.sleep(_CHANGE_S)
