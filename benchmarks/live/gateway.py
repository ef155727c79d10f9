"""The gateway against clients that speak NATS themselves: what all processes use for an event."""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from benchmarks.live.overlay import RunningOverlay, running_overlay
from benchmarks.study import Claim, Column, Findings, Progress, Size, Study, Table, result_hash
from distributary.broker.client import Delivery
from distributary.network.client import ClientGate, Numbered

__all__ = ["STUDY"]

_BROKERS = 3
_EVENT_BYTES = 1024
_BATCH = 20
_BATCH_MAX = 1.5
_SINGLE_MAX = 3.0
_KIND = "load"
_DIRECT, _GATEWAY = "direct", "gateway"
_ARRIVE_S = 120.0
_LINE_BYTES_MAX = 2**20

_Publish: TypeAlias = Callable[[list[str]], Awaitable[None]]
"""Publishes some events; returns when they are stored."""


@dataclass(frozen=True)
class _Parameters:
    """How many events in a run, in batches and one by one, and how many runs of each."""

    events: int
    singles: int
    runs: int


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(100, 40, 1),
    "large": _Parameters(4_000, 1_000, 5),
}


class _Arrivals:
    """Counts what has arrived."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._news = asyncio.Event()

    def add(self, event: str | bytes) -> None:
        self._numbers.append(int(json.loads(event)["id"]))
        self._news.set()

    async def wait(self, first: int, count: int) -> None:
        """Wait until some more have arrived; they must be these, in order."""
        async with asyncio.timeout(_ARRIVE_S):
            while len(self._numbers) < count:
                self._news.clear()
                await self._news.wait()
        assert self._numbers == list(range(first, first + count))
        self._numbers.clear()


def _filters(side: str) -> list[object]:
    """Return what the subscriber of one side wants; both sides share their cells."""
    return [{"exact": {"type": _KIND, "side": side}}]


@dataclass(frozen=True)
class _Side:
    """One of the two ways: how it publishes, and what has arrived by it."""

    name: str
    publish: _Publish
    arrivals: _Arrivals
    overlay: RunningOverlay

    def _event(self, number: int) -> str:
        event = {
            "specversion": "1.0",
            "id": str(number),
            "source": "/study",
            "type": _KIND,
            "side": self.name,
            "data": "x" * _EVENT_BYTES,
        }
        return json.dumps(event)

    async def cpu_us(self, first: int, count: int, batch: int) -> float:
        """Return what all processes use for an event, in microseconds."""
        texts = [self._event(number) for number in range(first, first + count)]
        before = self.overlay.cpu_s()
        for begin in range(0, count, batch):
            await self.publish(texts[begin : begin + batch])
        await self.arrivals.wait(first, count)
        return (self.overlay.cpu_s() - before) / count * 1e6


class _Http:
    """A client of the gateway that does no more than it must."""

    def __init__(self, overlay: RunningOverlay) -> None:
        address = urlsplit(overlay.url)
        self._place = address.hostname, address.port
        self._headers = f"Host: {address.netloc}\r\nAuthorization: Bearer {overlay.token}\r\n"
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, kind: str, body: bytes) -> bytes:
        """Return the body of an answer; connections are kept."""
        if self._open is None:
            self._open = await asyncio.open_connection(*self._place)
        reader, writer = self._open
        head = f"{method} {path} HTTP/1.1\r\n{self._headers}Content-Type: {kind}\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert answer.split()[1].startswith(b"20"), answer
        length = int(answer.partition(b"content-length:")[2].split()[0])
        return await reader.readexactly(length)

    async def publish(self, texts: list[str]) -> None:
        """Publish a batch, or one event."""
        if len(texts) == 1:
            kind, body = "application/cloudevents+json", texts[0]
        else:
            kind, body = "application/cloudevents-batch+json", f"[{','.join(texts)}]"
        await self.ask("POST", "/events", kind, body.encode())

    async def listen(self, subscription: str, arrivals: _Arrivals) -> None:
        """Take server-sent events for as long as anybody wants."""
        reader, writer = await asyncio.open_connection(*self._place, limit=_LINE_BYTES_MAX)
        try:
            path = f"/subscriptions/{subscription}/events"
            writer.write(f"GET {path} HTTP/1.1\r\n{self._headers}\r\n".encode())
            while line := await reader.readline():
                if line.startswith(b"data: "):
                    arrivals.add(line[6:])
        finally:
            writer.close()

    def close(self) -> None:
        """End the connection."""
        if self._open is not None:
            self._open[1].close()


async def _direct(
    gate: ClientGate, overlay: RunningOverlay, publishes_at: str, subscribes_at: str
) -> _Side:
    """Return a publisher and a subscriber over NATS, at home where the gateway's are."""
    arrivals = _Arrivals()

    def take(message: Numbered) -> None:
        assert isinstance(message, Delivery)
        arrivals.add(message.event)
        subscriber.acknowledge(message.subscription, message.number)

    subscriber = gate.client("study/subscriber", subscribes_at, take)
    publisher = gate.client("study/publisher", publishes_at)
    await subscriber.subscribe({"id": "all", "filters": _filters(_DIRECT)})

    async def publish(texts: list[str]) -> None:
        await asyncio.gather(*(publisher.publish(text) for text in texts))

    return _Side(_DIRECT, publish, arrivals, overlay)


async def _compare(size: Size, progress: Progress, overlay: RunningOverlay) -> Findings:
    parameters = _SIZES[size]
    http, arrivals = _Http(overlay), _Arrivals()
    wanted = json.dumps({"filters": _filters(_GATEWAY)}).encode()
    made = json.loads(await http.ask("POST", "/subscriptions", "application/json", wanted))
    listening = asyncio.ensure_future(http.listen(made["id"], arrivals))
    through = _Side(_GATEWAY, http.publish, arrivals, overlay)
    # What is opened at first is no part of it; and from then on it is known where that is.
    await through.cpu_us(0, _BATCH, _BATCH)
    rows: list[tuple[str, int, float, float, float]] = []
    try:
        async with overlay.gate() as gate:
            direct = await _direct(gate, overlay, *await overlay.homes(made["id"]))
            first = await _warm(parameters.events // 4, direct, through)
            for run in range(1, parameters.runs + 1):
                progress(f"run {run} of {parameters.runs}")
                for kind, count, batch in (
                    (f"batches of {_BATCH}", parameters.events, _BATCH),
                    ("one by one", parameters.singles, 1),
                ):
                    theirs = await direct.cpu_us(first, count, batch)
                    ours = await through.cpu_us(first + count, count, batch)
                    first += 2 * count
                    rows.append((kind, run, ours, theirs, ours / theirs))
    finally:
        listening.cancel()
        http.close()
    rows.sort(key=lambda row: row[:2])
    return _findings(rows, parameters)


async def _warm(count: int, *sides: _Side) -> int:
    """Have all of it run once; return the next number."""
    first = _BATCH
    for side in sides:
        await side.cpu_us(first, count, _BATCH)
        first += count
    return first


def _findings(
    rows: list[tuple[str, int, float, float, float]], parameters: _Parameters
) -> Findings:
    table = Table(
        "CPU for an event through the gateway, against clients that speak NATS",
        "speed",
        (
            Column("published"),
            Column("run"),
            Column("gateway, µs"),
            Column("direct, µs"),
            Column("ratio", 2),
        ),
        tuple(rows),
        notes=(
            f"Of all processes together, with the clients: one publisher, one subscriber, "
            f"{_BROKERS} brokers, events of 1 KB, the next request after the answer to the last. "
            "The direct clients have the same homes and cells as those of the gateway, and the two "
            f"take turns: {parameters.events:,} events a run in batches, {parameters.singles:,} "
            "one by one."
        ),
    )

    def ratio(kind: str) -> float:
        return statistics.median(row[4] for row in rows if row[0].startswith(kind))

    claims = (
        Claim(
            f"CPU for an event in batches of {_BATCH}, against direct clients, median",
            ratio("batches"),
            "<=",
            _BATCH_MAX,
            "times the CPU",
        ),
        Claim(
            "CPU for an event by itself, against direct clients, median",
            ratio("one"),
            "<=",
            _SINGLE_MAX,
            "times the CPU",
        ),
    )
    found = [parameters.events, parameters.singles, parameters.runs]
    return Findings((table,), claims, result_hash(found))


def _run(size: Size, progress: Progress) -> Findings:
    with (
        tempfile.TemporaryDirectory(prefix="gateway-") as folder,
        running_overlay(Path(folder) / "state", brokers=_BROKERS) as overlay,
    ):
        return asyncio.run(_compare(size, progress, overlay))


STUDY = Study(
    "live-gateway",
    "An overlay of `distributary up`: events by HTTP and server-sent events, against the same "
    "events from and to clients that speak NATS to the brokers themselves.",
    3.0,
    _run,
)
