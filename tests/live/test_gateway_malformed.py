"""Nothing that a client sends is the gateway's fault: no error of its own, no trace, no growth."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from urllib.parse import urlsplit

import psutil
import pytest
from tests.live.gateways import Http
from tests.live.malformed import Malformed
from tests.live.overlays import RunningOverlay, running_overlay

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


async def sent(port: int, data: bytes) -> int | None:
    """The status of an answer; None when there is none."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(WAIT_S):
            writer.write(data)
            line = await reader.readline()
            # The rest may be an answer without end.
            return int(line.split()[1]) if line.startswith(b"HTTP/1.1 ") else None
    except (TimeoutError, ConnectionError, IndexError, ValueError):
        return None
    finally:
        writer.close()


async def send_all(port: int, drawn: Iterator[bytes]) -> tuple[Counter[int | None], list[bytes]]:
    """What was answered, and what was answered with an error of the gateway's own."""
    statuses: Counter[int | None] = Counter()
    wrong: list[bytes] = []

    async def work() -> None:
        for data in drawn:
            status = await sent(port, data)
            statuses[status] += 1
            if status is not None and status >= 500:
                wrong.append(data)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return statuses, wrong


@pytest.mark.parametrize(
    "count", [2_000, pytest.param(100_000, marks=pytest.mark.full)], ids=["some", "many"]
)
def test_requests_that_are_wrong_do_no_harm(
    overlay: RunningOverlay, http: Http, count: int
) -> None:
    asked = {"name": f"fuzz-{count}", "tenant": "fuzz", "scopes": ["publish", "subscribe", "admin"]}
    token = http.post("/tokens", json=asked).json()["token"]
    port = urlsplit(http.url).port
    assert port is not None
    host = urlsplit(http.url).netloc
    malformed = Malformed(count, host, token)
    gateway = psutil.Process(overlay.pids()["gateway"])
    memory: list[int] = []
    total: Counter[int | None] = Counter()
    for _ in range(4):
        drawn = (malformed.draw() for _ in range(count // 4))
        statuses, wrong = asyncio.run(send_all(port, drawn))
        assert wrong == [], statuses
        total += statuses
        # It may have revoked itself, or erased its tenant.
        http.delete("/tokens/again?tenant=fuzz")
        memory.append(gateway.memory_info().rss)
    assert http.get("/ready").status_code == 200
    assert gateway.is_running()
    assert overlay.pids()["gateway"] == gateway.pid
    said = overlay.log("gateway")
    assert "Traceback" not in said, said[-5000:]
    assert "something is wrong" not in said
    # What is kept once is there after the first quarter.
    assert memory[-1] - memory[0] < 16 * 2**20, memory
    assert total[400] > count // 10
    assert sum(total.values()) == 4 * (count // 4)
    http.delete("/tenants/fuzz")
