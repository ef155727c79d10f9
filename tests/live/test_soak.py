"""Minutes of load with one subscriber that is stuck: memory stays flat, nobody else is slower."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import quantiles

import pytest
from tests.live.brokers import Brokers, started_brokers
from tests.live.traffic import event

from distributary.broker.client import Delivery
from distributary.network.client import Client, ClientGate, Numbered
from distributary.network.status import ask

pytestmark = [pytest.mark.slow, pytest.mark.full]

_NAMES = ("0a00", "5b00", "9c00", "fc00")
_SUBSCRIBERS, _PUBLISHERS = 8, 2
# What is remembered for a time is no leak; after two minutes as much is forgotten as comes.
_SETTINGS = "[settings.publishing]\ndedupe_s = 60\n[settings.content]\nretention_s = 30\n"
_PAUSE_S = 0.05
_EVENT_BYTES = 500
# By turns with the stuck one and without it, so that both see the same machine.
_TURNS, _TURN_S = 10, 60.0
_SLOWER_MAX = 1.2
_SETTLED = 3
# A queue of what the stuck one is owed grows, on disk and in memory, and is no leak.
_KEPT_BYTES_PER_ITEM = 8_000
_GROWN_BYTES_MAX = 24 * 2**20


class Load:
    """Publishers at a steady pace, and what their events take to each subscriber."""

    def __init__(self, gate: ClientGate, homes: Sequence[str]) -> None:
        self._gate = gate
        self._homes = homes
        self.delays: list[float] = []
        self.published = 0
        self._clients: dict[str, Client] = {}

    async def subscribe(self) -> None:
        for place in range(_SUBSCRIBERS):
            name, home = f"s{place}", self._homes[place % len(self._homes)]
            self._clients[name] = self._gate.client(name, home, partial(self._got, name))
            await self._clients[name].subscribe(_wish("t"))
        stuck = self._gate.client("stuck", self._homes[0])
        # It gets its window, and never says so.
        await stuck.subscribe(_wish("u"))

    def _got(self, name: str, message: Numbered) -> None:
        assert isinstance(message, Delivery)
        self.delays.append(time.monotonic() - json.loads(message.event)["data"]["at"])
        self._clients[name].acknowledge(message.subscription, message.number)

    async def publish(self, publisher: str, home: str, kinds: Sequence[str]) -> None:
        client = self._gate.client(publisher, home)
        for turn in range(_TURNS):
            end = time.monotonic() + _TURN_S
            while time.monotonic() < end:
                self.published += 1
                text = "x" * _EVENT_BYTES
                # What is for the stuck one as well comes to all others too.
                kind = kinds[turn % len(kinds)]
                number = self.published
                now = time.monotonic()
                await client.publish(event(f"/{publisher}", number, kind, at=now, text=text))
                await asyncio.sleep(_PAUSE_S)


def _wish(kind: str) -> dict[str, object]:
    kinds = ["t", "u"] if kind == "t" else ["u"]
    return {"id": "all", "filters": [{"any": [{"exact": {"type": one}} for one in kinds]}]}


async def _memory(brokers: Brokers) -> dict[str, int]:
    told = await ask(brokers.subjects, brokers.server("operator"), "operator", _NAMES)
    return {name: one["memory_bytes"] for name, one in told.items() if one is not None}


async def _soak(brokers: Brokers) -> None:
    await asyncio.wait_for(brokers.wait(), 120)
    async with brokers.gate() as gate:
        load = Load(gate, _NAMES)
        await load.subscribe()
        publishing = [
            asyncio.ensure_future(load.publish(f"p{k}", _NAMES[1 + k], ("t", "u")))
            for k in range(_PUBLISHERS)
        ]
        without: list[float] = []
        beside: list[float] = []
        memory: list[dict[str, int]] = []
        for turn in range(_TURNS):
            await asyncio.sleep(_TURN_S)
            (without, beside)[turn % 2].extend(load.delays)
            load.delays = []
            memory.append(await _memory(brokers))
        await asyncio.gather(*publishing)
    p99, p99_beside = (quantiles(delays, n=100)[98] for delays in (without, beside))
    print(f"{load.published} published; p99 {p99:.4f} s without, {p99_beside:.4f} s beside")
    kept = _KEPT_BYTES_PER_ITEM * load.published // 2
    for name in _NAMES:
        begin, end = memory[_SETTLED][name], memory[-1][name]
        print(f"{name}: {[one[name] >> 20 for one in memory]} MiB")
        allowed = _GROWN_BYTES_MAX + (kept if name == _NAMES[0] else 0)
        assert end - begin < allowed, name
    assert p99_beside < _SLOWER_MAX * p99


def test_a_stuck_subscriber_slows_nobody_and_memory_stays_flat(tmp_path: Path) -> None:
    with started_brokers(tmp_path, _NAMES, settings=_SETTINGS) as brokers:
        asyncio.run(_soak(brokers))
