"""A broker that is told to leave gives its clients to others, who miss nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.live.brokers import Brokers, started_brokers
from tests.live.overlays import eventually
from tests.live.traffic import Traffic

from distributary.network.connection import NatsConnection
from distributary.network.process import STOPPED
from distributary.network.requests import Drain, NotGiven, StatusTold
from distributary.network.transfers import ask

pytestmark = pytest.mark.slow

GOES, *STAY = NAMES = ("0a00", "5b00", "fc00")
SETTINGS = "[settings.migration]\nredirect_s = 0.5\n"


async def _run(brokers: Brokers) -> None:
    await asyncio.wait_for(brokers.wait(), 120)
    leaves = brokers.processes[GOES]
    async with brokers.gate(NAMES) as gate:
        traffic = Traffic(gate, NAMES)
        await traffic.subscribe(6)
        waiting = traffic.subscribers["s3"]
        await waiting.close()
        publishing = [asyncio.ensure_future(_publish(traffic, f"p{k}")) for k in range(3)]
        await eventually(lambda: sum(map(len, traffic.accepted.values())) > 100)
        subject = brokers.subjects.to_host(GOES, "gateway")
        assert isinstance(await _ordered_by_a_broker(brokers), NotGiven)
        answer = await ask(gate.connection, subject, Drain())
        assert isinstance(answer, StatusTold)
        assert answer.status["draining"] is True
        await eventually(lambda: traffic.subscribers["s0"].home in STAY)
        # One client has no connection, and cannot be asked.
        assert leaves.poll() is None
        await traffic.come_back("s3")
        await asyncio.to_thread(leaves.wait, 120)
        assert traffic.subscribers["s3"].home in STAY
        await asyncio.gather(*publishing)
        await traffic.settled()
    assert brokers.processes.pop(GOES).returncode == STOPPED
    brokers.start(GOES)
    await asyncio.wait_for(brokers.wait(), 120)


async def _ordered_by_a_broker(brokers: Brokers) -> object:
    name = STAY[0]
    inbox = brokers.subjects.inbox(name)
    connection = NatsConnection(brokers.server(name), name=name, inbox=inbox, handlers={})
    await connection.wait()
    try:
        return await ask(connection, brokers.subjects.to_host(GOES, name), Drain())
    finally:
        await connection.close()


async def _publish(traffic: Traffic, name: str) -> None:
    for _ in range(20):
        await traffic.publish(name, 10)
        await asyncio.sleep(0.1)


def test_clients_of_a_broker_that_leaves_miss_nothing(tmp_path: Path) -> None:
    with started_brokers(tmp_path, NAMES, settings=SETTINGS) as brokers:
        asyncio.run(_run(brokers))
