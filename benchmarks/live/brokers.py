"""Brokers in a row: a publisher at the first, a subscriber at the last."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import psutil

from benchmarks.live.measured import Run, paced
from distributary.broker.client import Delivery
from distributary.broker.settings import Settings
from distributary.content import Publication
from distributary.network.client import Client, ClientGate, Numbered
from distributary.network.connection import Server
from distributary.network.status import ask
from distributary.network.subjects import Subjects

__all__ = ["Chain", "one_hop", "running_chain", "three_hops"]

_SUBJECTS = Subjects("study")
_DIGITS = 16
_HEXADECIMAL = "0123456789abcdef"
_NEAR_MS, _FAR_MS = 1.0, 5.0
_READY_S = 120.0
_KIND = "load"
_UNDER_WAY_MAX = 256


def _event(number: int, size: int) -> str:
    document = {
        "specversion": "1.0",
        "id": str(number),
        "source": "/study",
        "type": _KIND,
        "data": {"at": time.time_ns(), "text": ""},
    }
    text = json.dumps(document)
    return text.replace('""', f'"{"x" * max(size - len(text), 0)}"')


def _key() -> str:
    space = Settings().space
    cell = space.cell_of(Publication.parse(json.loads(_event(0, 0))))
    return space.key(cell).hex()[:_DIGITS]


def _other(*digits: str) -> str:
    return next(one for one in _HEXADECIMAL if one not in digits)


def one_hop() -> tuple[str, ...]:
    """Return the root, where the publisher is, and the subscriber's home."""
    key = _key()
    return key[:-1] + _other(key[-1]), _other(key[0]) * _DIGITS


def three_hops() -> tuple[str, ...]:
    """Return the publisher's home, the root, one that only hands on, and the subscriber's home."""
    key = _key()
    last = _other(key[0])
    return (
        _other(key[0], last) * _DIGITS,
        key[:-1] + _other(key[-1]),
        last + "1" * (_DIGITS - 1),
        last + "b" * (_DIGITS - 1),
    )


class Chain:
    """Clients at both ends of some brokers.

    Attributes
    ----------
    gate
        By which they, and others, speak.
    """

    def __init__(
        self, gate: ClientGate, way: Sequence[str], server: Server, pids: Sequence[int]
    ) -> None:
        self.gate = gate
        self._way = way
        self._server = server
        self._pids = pids
        self._got: list[tuple[int, float]] = []
        self._enough = asyncio.Event()
        self._wanted = 0
        self._numbered = 0
        self._publisher: Client = gate.client("publisher", way[0])
        self._subscriber: Client = gate.client("subscriber", way[-1], self._take)

    def _take(self, message: Numbered) -> None:
        assert isinstance(message, Delivery)
        event = json.loads(message.event)
        self._got.append((int(event["id"]), time.time() - event["data"]["at"] / 1e9))
        self._subscriber.acknowledge(message.subscription, message.number)
        if len(self._got) == self._wanted:
            self._enough.set()

    async def subscribe(self) -> None:
        """Have the subscriber want everything."""
        wanted = {"id": "all", "filters": [{"exact": {"type": _KIND}}]}
        await self._subscriber.subscribe(wanted)

    async def run(self, count: int, size: int, rate: float | None = None) -> Run:
        """Publish events, many under way, and wait until the subscriber has all of them."""
        self._got.clear()
        self._enough.clear()
        self._wanted = count
        first, self._numbered = self._numbered, self._numbered + count
        began = time.perf_counter()
        under_way: set[asyncio.Future[object]] = set()
        async for number in paced(count, rate):
            if len(under_way) >= _UNDER_WAY_MAX:
                _, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            event = _event(first + number, size)
            under_way.add(asyncio.ensure_future(self._publisher.publish(event)))
        await asyncio.gather(*under_way)
        await self._enough.wait()
        seconds = time.perf_counter() - began
        assert [number for number, _ in self._got] == list(range(first, first + count))
        return Run(count / seconds, [delay for _, delay in self._got])

    def private_bytes(self) -> list[int]:
        """Return the memory that each broker shares with nobody, in order of the way."""
        return [psutil.Process(pid).memory_full_info().uss for pid in self._pids]

    async def told(self, name: str) -> list[float]:
        """Return what each broker says of itself under a name, in order of the way."""
        told = await ask(_SUBJECTS, self._server, "asking", self._way)
        return [one[name] if one else 0.0 for one in told.values()]


@asynccontextmanager
async def running_chain(
    folder: Path,
    url: str,
    way: Sequence[str],
    *,
    graph: str = "none",
    settings: str = "",
    witnessed: bool = False,
) -> AsyncIterator[Chain]:
    """Run brokers such that a message to the last one goes the whole way.

    Parameters
    ----------
    graph, settings
        Which conversions there are, and further tables of the configuration.
    witnessed
        Whether each writes into `BROKER.witnessed.json` what its witness has cost.
    """
    processes = [_start(folder, url, way, name, graph, settings, witnessed) for name in way]
    server = Server((url,))
    gate = ClientGate(_SUBJECTS, server, "study")
    try:
        async with asyncio.timeout(_READY_S):
            await gate.connection.wait()
            counts: list[int] = []
            while counts != [len(way)] * len(way):
                told = await ask(_SUBJECTS, server, "waiting", way)
                counts = [one.get("members_up", 0) if one else 0 for one in told.values()]
            chain = Chain(gate, way, server, [process.pid for process in processes])
            await chain.subscribe()
        yield chain
    finally:
        await gate.close()
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait()


def _start(
    folder: Path,
    url: str,
    way: Sequence[str],
    name: str,
    graph: str,
    settings: str,
    witnessed: bool,
) -> subprocess.Popen[bytes]:
    config, delays = folder / f"{name}.toml", folder / f"{name}.json"
    config.write_text(
        f'[broker]\nidentity = "{name}"\noverlay = "study"\nstate = "{name}"\n'
        f'members = {json.dumps(list(way))}\ngraph = "{graph}"\n'
        f"[nats]\nurls = {json.dumps([url])}\n"
        # Nobody measures, so that the ways stay as they are told.
        f"[settings.membership]\nperiod_s = 3600.0\n{settings}",
        encoding="utf-8",
    )
    place = way.index(name)
    told = {
        other: _NEAR_MS if abs(way.index(other) - place) == 1 else _FAR_MS
        for other in way
        if other != name
    }
    delays.write_text(json.dumps(told), encoding="utf-8")
    command = [sys.executable, "-m", "benchmarks.live.broker", str(config), str(delays)]
    if witnessed:
        command.append(str(folder / f"{name}.witnessed.json"))
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(command, stderr=log)
