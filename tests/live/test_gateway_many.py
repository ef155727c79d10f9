"""Many clients at one gateway, of which one does not read what it is sent."""

from __future__ import annotations

import asyncio
import json
import socket
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets
from tests.live.gateways import event
from tests.live.overlays import RunningOverlay, eventually, running_overlay

pytestmark = pytest.mark.slow

EVENTS = 20
AT_ONCE = 40
_STUCK = 1


class Many:
    """Listeners of both kinds, as many of each."""

    def __init__(self, overlay: RunningOverlay, count: int, size: int) -> None:
        self.count = count
        self._size = size
        self.connected = 0
        self.got: Counter[int] = Counter()
        self._url: str = overlay.line["gateway"]
        self._headers = {"authorization": f"Bearer {overlay.line['token']}"}
        self._room = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        limits = httpx.Limits(max_connections=AT_ONCE)
        # All ask at once, and most of them wait for a connection for long.
        timeout = httpx.Timeout(120, pool=None)
        async with httpx.AsyncClient(
            base_url=self._url, headers=self._headers, timeout=timeout, limits=limits
        ) as http:
            wish = {"types": ["many"]}
            made = await asyncio.gather(
                *(http.post("/subscriptions", json=wish) for _ in range(2 * self.count))
            )
            names = [one.json()["id"] for one in made]
            tasks = [
                asyncio.ensure_future((self._sse if place % 2 else self._socket)(place, name))
                for place, name in enumerate(names)
            ]
            try:
                await eventually(lambda: self.connected == 2 * self.count, 300)
                for number in range(EVENTS):
                    one = event("/many", number, "many", data="x" * self._size)
                    answer = await http.post(
                        "/events",
                        content=json.dumps(one),
                        headers={"content-type": "application/cloudevents+json"},
                    )
                    assert answer.status_code == 202, answer.text
                # All but the one that is stuck.
                full = 2 * self.count - 1
                await eventually(
                    lambda: sum(got == EVENTS for got in self.got.values()) == full, 300
                )
                assert max(self.got.values()) == EVENTS
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _sse(self, place: int, name: str) -> None:
        host, port = self._url.removeprefix("http://").split(":")
        async with self._room:
            one = socket.create_connection((host, int(port)))
            if place == _STUCK:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            limit = 4096 if place == _STUCK else 2**20
            reader, writer = await asyncio.open_connection(sock=one, limit=limit)
            writer.write(
                f"GET /subscriptions/{name}/events HTTP/1.1\r\nHost: {host}:{port}\r\n"
                f"Authorization: {self._headers['authorization']}\r\n\r\n".encode()
            )
            assert b" 200 " in await reader.readline()
            self.connected += 1
        try:
            if place == _STUCK:
                await asyncio.Event().wait()
            while line := await reader.readline():
                self.got[place] += line.startswith(b"data:")
        finally:
            writer.close()

    async def _socket(self, place: int, name: str) -> None:
        async with self._room:
            connected: Any = await websockets.connect(
                f"{self._url.replace('http', 'ws')}/subscriptions/{name}/events",
                additional_headers=self._headers,
                subprotocols=[websockets.Subprotocol("cloudevents.json")],
                open_timeout=120,
            )
            self.connected += 1
        async with connected:
            async for text in connected:
                self.got[place] += 1
                await connected.send(json.dumps({"ack": json.loads(text)["sequence"]}))


@pytest.mark.parametrize(
    ("count", "size"), [(30, 60_000), pytest.param(1_000, 3_000, marks=pytest.mark.full)]
)
def test_one_that_is_stuck_slows_nobody(tmp_path: Path, count: int, size: int) -> None:
    async def run(overlay: RunningOverlay) -> None:
        await Many(overlay, count, size).run()

    with running_overlay(tmp_path / "state", brokers=2) as overlay:
        asyncio.run(run(overlay))
        assert "Traceback" not in overlay.log("gateway")
