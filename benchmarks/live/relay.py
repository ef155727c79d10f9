"""A plain relay: takes from one stream, stores in the next, and only then acknowledges.

`python -m benchmarks.live.relay URL PLACE` relays from the stream at a place to the one after it.
"""

from __future__ import annotations

import asyncio
import sys

import nats
from nats.js.errors import FetchTimeoutError

from benchmarks.live.measured import BATCH, WAIT_S, subject

__all__: list[str] = []

_PENDING_MAX = 1024


async def _relay(url: str, place: int) -> None:
    connection = await nats.connect(url)
    stream = connection.jetstream(timeout=30, publish_async_max_pending=_PENDING_MAX)
    source = await stream.pull_subscribe(subject(place), durable=f"relay-{place}")
    print("ready", flush=True)
    while True:
        try:
            messages = await source.fetch(BATCH, timeout=WAIT_S)
        except (TimeoutError, FetchTimeoutError):
            continue
        stored = [await stream.publish_async(subject(place + 1), one.data) for one in messages]
        await asyncio.gather(*stored)
        for one in messages:
            await one.ack()


if __name__ == "__main__":
    asyncio.run(_relay(sys.argv[1], int(sys.argv[2])))
