"""What hosts measure, their brokers know and tell: on real processes, with real converters."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from tests.live.brokers import Brokers, started_brokers
from tests.live.prices import Prices
from tests.live.traffic import Traffic

from distributary.media.samples import map_pdf
from distributary.network.client import ClientGate
from distributary.network.views import look

pytestmark = pytest.mark.slow

NAMES = ("0a00", "5b00", "fc00")
SETTINGS = "[settings.adaptation]\nwindow_s = 2.0\n"
PDF, TEXT = "application/pdf", "text/plain;charset=utf-8"
CHANGES_S = 0.02
_WAIT_S = 90.0
LARGE = random.Random(1).randbytes(3_000_000)


def _event(number: int, kind: str, media_type: str) -> str:
    common = {"specversion": "1.0", "id": str(number), "source": "/m", "type": kind}
    return json.dumps({**common, "datacontenttype": media_type})


async def _everything(gate: ClientGate) -> None:
    """Have a bit of each: events, content that crosses links, a conversion."""
    traffic = Traffic(gate, NAMES)
    await traffic.subscribe(3)
    await traffic.publish("p", 30)
    for name in NAMES:
        reader = gate.client(f"reader {name}", name)
        wish = {"id": "w", "filters": [{"exact": {"type": "map"}}], "profile": {"accept": [TEXT]}}
        await reader.subscribe(wish)
        await reader.subscribe({"id": "l", "filters": [{"exact": {"type": "large"}}]})
    publisher = gate.client("publisher", NAMES[0])
    await publisher.publish(_event(1, "map", PDF), map_pdf(), PDF)
    octets = "application/octet-stream"
    await publisher.publish(_event(2, "large", octets), LARGE, octets)
    await traffic.settled()


async def _change(prices: Prices) -> None:
    while True:
        prices.change("/prices", "one")
        await asyncio.sleep(CHANGES_S)


async def _measured(brokers: Brokers, gate: ClientGate) -> dict[str, list[dict[str, Any]]]:
    """Collect windows of telemetry until there is one of every kind of figure."""
    seen: set[str] = set()
    figures: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    wanted = {"hops", "conversions", "published", "delivered", "transfers", "rates", "service"}
    end = time.monotonic() + _WAIT_S
    while (missing := wanted - figures.keys()) or _came_bytes(figures["transfers"]) < len(LARGE):
        assert time.monotonic() < end, f"nobody tells of {missing}"
        for name in NAMES:
            subject = brokers.subjects.to_host(name, "gateway")
            rows = await look(gate.connection, subject, "measured")
            window = json.dumps(rows)
            if window not in seen:
                seen.add(window)
                for row in rows:
                    figures[row.pop("what")].append({"broker": name, **row})
        await asyncio.sleep(0.5)
    return figures


def _came_bytes(transfers: list[dict[str, Any]]) -> int:
    return sum(one["bytes"] for one in transfers)


async def _run(brokers: Brokers) -> None:
    await asyncio.wait_for(brokers.wait(), 120)
    async with brokers.gate() as gate:
        prices = Prices(gate, NAMES[0])
        for name in NAMES[1:]:
            await prices.follow(name)
        prices.announce("/prices", "one")
        changing = asyncio.ensure_future(_change(prices))
        doing = asyncio.ensure_future(_everything(gate))
        figures = await _measured(brokers, gate)
        changing.cancel()
        await doing
    (converted,) = (one for one in figures["conversions"] if one["target"] == TEXT)
    assert converted["origin"] == PDF
    assert converted["origin_bytes"] == len(map_pdf())
    assert 0 < converted["bytes"] < converted["origin_bytes"]
    assert 0.0 < converted["work_s"] < converted["seconds"]
    for one in figures["transfers"]:
        assert one["peer"] in NAMES
        assert one["seconds"] > 0.0
    assert {one["subject"] for one in figures["rates"]} == {"one"}
    assert 0.0 < max(one["rate"] for one in figures["rates"]) <= 1.2 / CHANGES_S
    service = {one["name"]: one["value"] for one in figures["service"]}
    assert {*service} == {"filter", "send"}
    assert all(0.0 < seconds < 1.0 for seconds in service.values())
    shares = [one for one in figures["published"] if one["client"] == "@gateway/p"]
    assert sum(one["publications"] for one in shares) == 30
    formats = {one["name"] for one in figures["delivered"]}
    assert formats >= {"application/json", TEXT, "application/octet-stream"}
    assert all(one["mean_s"] > 0.0 for one in figures["hops"])


def test_hosts_measure_and_brokers_tell(tmp_path: Path) -> None:
    with started_brokers(tmp_path, NAMES, settings=SETTINGS) as brokers:
        asyncio.run(_run(brokers))
