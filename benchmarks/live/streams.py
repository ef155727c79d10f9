"""Plain NATS: publish to a stream, pull from one, with as many relays between as one wants."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import nats
from nats.js.client import JetStreamContext
from nats.js.errors import FetchTimeoutError

from benchmarks.live.measured import BATCH, WAIT_S, Run, paced, subject

__all__ = ["Streams", "running_streams"]

_PENDING_MAX = 256
_STALL_S = 30.0
_STAMP = 20


class Streams:
    """A chain of streams with relays between them."""

    def __init__(self, streams: JetStreamContext, last: JetStreamContext.PullSubscription) -> None:
        self._streams = streams
        self._last = last

    async def run(self, count: int, size: int, rate: float | None = None) -> Run:
        """Publish messages, many under way, and pull all of them at the end of the chain."""
        delays: list[float] = []
        order: list[int] = []
        began = time.perf_counter()

        async def publish() -> None:
            stored = []
            async for number in paced(count, rate):
                data = b"%020d %08d " % (time.time_ns(), number)
                stored.append(
                    await self._streams.publish_async(
                        subject(0), data.ljust(size, b"x"), wait_stall=_STALL_S
                    )
                )
            await asyncio.gather(*stored)

        async def pull() -> None:
            while len(order) < count:
                try:
                    messages = await self._last.fetch(BATCH, timeout=WAIT_S)
                except (TimeoutError, FetchTimeoutError):
                    continue
                for one in messages:
                    delays.append(time.time() - int(one.data[:_STAMP]) / 1e9)
                    order.append(int(one.data.split()[1]))
                    await one.ack()

        await asyncio.gather(publish(), pull())
        seconds = time.perf_counter() - began
        assert sorted(order) == list(range(count))
        return Run(count / seconds, delays)


@asynccontextmanager
async def running_streams(url: str, relays: int) -> AsyncIterator[Streams]:
    """Have a chain of some relays, each a process; with none there is one stream."""
    connection = await nats.connect(url)
    streams = connection.jetstream(timeout=30, publish_async_max_pending=_PENDING_MAX)
    for place in range(relays + 1):
        await streams.add_stream(name=f"chain-{place}", subjects=[subject(place)])
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.live.relay", url, str(place)],
            stdout=subprocess.PIPE,
        )
        for place in range(relays)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert await asyncio.to_thread(process.stdout.readline)
        last = await streams.pull_subscribe(subject(relays), durable="last")
        yield Streams(streams, last)
    finally:
        for process in processes:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
        await connection.close()
