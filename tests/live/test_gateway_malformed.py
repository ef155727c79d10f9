"""Nothing that a client sends is the gateway's fault: no error of its own, no trace, no growth."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Iterator
from urllib.parse import urlsplit

import psutil
import pytest
from tests.live.gateways import Http
from tests.live.malformed import Malformed
from tests.live.overlays import RunningOverlay, running_overlay, wait_until

pytestmark = pytest.mark.slow

AT_ONCE = 48
# Of some there is more to come, as they say; the gateway waits for that, and we do not.
WAIT_S = 2.0


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningOverlay]:
    with running_overlay(tmp_path_factory.mktemp("malformed") / "state", brokers=1) as overlay:
        yield overlay


@pytest.fixture(scope="module")
def http(overlay: RunningOverlay) -> Iterator[Http]:
    with Http(overlay.line["gateway"], overlay.line["token"]) as http:
        yield http


async def sent(port: int, data: bytes, manner: random.Random) -> tuple[int | None, bytes]:
    """The status of an answer and what it begins with; None when there is none."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(WAIT_S):
            how = manner.randrange(8)
            if how == 0:
                # Byte by byte at first, as from far away.
                for place in range(min(len(data), 40)):
                    writer.write(data[place : place + 1])
                    await writer.drain()
                writer.write(data[40:])
            elif how == 1:
                writer.write(data[: manner.randrange(len(data) + 1)])
                # It may have been refused and let go of already.
                with contextlib.suppress(OSError):
                    writer.write_eof()
            elif how == 2:
                writer.write(data[: manner.randrange(len(data) + 1)])
                await writer.drain()
                writer.transport.abort()
                return None, b""
            else:
                writer.write(data)
            # The rest may be an answer without end.
            begin = await reader.read(2**16)
            is_http = begin.startswith(b"HTTP/1.1 ")
            return int(begin.split()[1]) if is_http else None, begin
    except (TimeoutError, ConnectionError, IndexError, ValueError):
        return None, b""
    finally:
        writer.close()


async def send_all(
    port: int, drawn: Iterator[bytes], manner: random.Random
) -> tuple[Counter[int | None], list[bytes]]:
    """What was answered, and what was answered with an error of the gateway's own."""
    statuses: Counter[int | None] = Counter()
    wrong: list[bytes] = []

    async def work() -> None:
        for data in drawn:
            status, begin = await sent(port, data, manner)
            statuses[status] += 1
            if (status is not None and status >= 500) or b"root:" in begin:
                wrong.append(data)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return statuses, wrong


@pytest.mark.parametrize(
    "count", [800, pytest.param(100_000, marks=pytest.mark.full)], ids=["some", "many"]
)
def test_requests_that_are_wrong_do_no_harm(
    overlay: RunningOverlay, http: Http, count: int
) -> None:
    asked = {"name": f"fuzz-{count}", "tenant": "fuzz", "scopes": ["publish", "subscribe", "admin"]}
    token = http.post("/tokens", json=asked).json()["token"]
    port = urlsplit(http.url).port
    assert port is not None
    host = urlsplit(http.url).netloc
    subscription = http.post("/subscriptions", json={"types": ["never"]}, token=token).json()["id"]
    malformed = Malformed(count, host, token, subscription)
    manner = random.Random(count)
    gateway = psutil.Process(overlay.pids()["gateway"])
    files = gateway.num_fds()
    memory: list[int] = []
    total: Counter[int | None] = Counter()
    for _ in range(4):
        drawn = (malformed.draw() for _ in range(count // 4))
        statuses, wrong = asyncio.run(send_all(port, drawn, manner))
        assert wrong == [], statuses
        total += statuses
        memory.append(gateway.memory_info().rss)
    assert http.get("/ready").status_code == 200
    assert gateway.is_running()
    assert overlay.pids()["gateway"] == gateway.pid
    said = overlay.log("gateway")
    assert "Traceback" not in said, said[-5000:]
    assert "something is wrong" not in said
    # What strangers send must not fill the disk either.
    assert len(said) < 10_000, said[-5000:]
    # What is kept once is there after the first quarter.
    assert memory[-1] - memory[0] < 16 * 2**20, memory
    # Of those who wait, none is waited for in the end.
    wait_until(lambda: gateway.num_fds() <= files + AT_ONCE // 4)
    assert total[400] > count // 10
    # The token has not ended on the way.
    assert http.get(f"/subscriptions/{subscription}", token=token).status_code == 200
    assert total[101] > count // 100
    assert sum(total.values()) == 4 * (count // 4)
    http.delete("/tenants/fuzz")
