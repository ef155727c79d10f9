"""Two brokers stand still at once; the server goes while content is put: nothing is lost."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from collections.abc import Iterator
from hashlib import sha256

import pytest
from tests.live.overlays import RunningOverlay, eventually, running_overlay
from tests.live.traffic import Traffic

from distributary.broker.client import Delivery
from distributary.network.client import Numbered

pytestmark = pytest.mark.slow

# Longer than a suspect has to deny that it is down.
_PAUSE_S = 8.0
_OCTETS = "application/octet-stream"


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningOverlay]:
    with running_overlay(tmp_path_factory.mktemp("live") / "state", brokers=4) as overlay:
        yield overlay


def test_nothing_is_lost_while_two_brokers_stand_still(overlay: RunningOverlay) -> None:
    """Nobody publishes there, or it would wait; the roots of half of all cells may be there."""
    first, second, *still = overlay.brokers

    async def run() -> None:
        async with overlay.gate() as gate:
            traffic = Traffic(gate, [first, second])
            everywhere = Traffic(gate, overlay.brokers)
            await everywhere.subscribe(8)
            pids = [overlay.pids()[one] for one in still]
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            try:
                publishing = asyncio.gather(*(traffic.publish(f"p{k}", 100) for k in range(4)))
                await asyncio.sleep(_PAUSE_S)
            finally:
                for pid in pids:
                    os.kill(pid, signal.SIGCONT)
            await publishing
            everywhere.published, everywhere.accepted = traffic.published, traffic.accepted
            await everywhere.settled()
        assert [overlay.pids()[one] for one in still] == pids

    asyncio.run(run())


def test_content_is_put_to_the_end_although_the_server_is_killed(overlay: RunningOverlay) -> None:
    data = random.Random(9).randbytes(20_000_000)
    got: list[Delivery] = []

    def take(message: Numbered) -> None:
        assert isinstance(message, Delivery)
        got.append(message)

    async def run() -> bytes:
        async with overlay.gate() as gate:
            taker = gate.client("taker", overlay.brokers[0], take)
            await taker.subscribe({"id": "w", "filters": [{"exact": {"type": "put"}}]})
            publisher = gate.client("giver", overlay.brokers[1])
            common = {"specversion": "1.0", "id": "1", "source": "/put", "type": "put"}
            text = json.dumps({**common, "datacontenttype": _OCTETS})
            under_way = asyncio.ensure_future(publisher.publish(text, data, _OCTETS))
            contents = overlay.state / "brokers" / overlay.brokers[1] / "content"
            await eventually(lambda: any(contents.glob("*.part")))
            assert not under_way.done()
            await asyncio.to_thread(overlay.kill, "nats")
            await under_way
            await eventually(lambda: got)
            blob = got[0].blob
            assert blob is not None
            return b"".join([chunk async for chunk in taker.content(blob)])

    assert sha256(asyncio.run(run())).digest() == sha256(data).digest()
    assert len(got) == 1
