"""Traffic: publishers and subscribers over NATS, and what became of everything."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

from tests.live.overlays import eventually

from distributary.broker.client import Delivery
from distributary.network.client import Client, ClientGate, Numbered

__all__ = ["Traffic", "event"]


def event(source: str, number: int, kind: str = "t", **data: Any) -> str:
    """The text of an event."""
    return json.dumps(
        {
            "specversion": "1.0",
            "id": str(number),
            "source": source,
            "type": kind,
            "data": {"n": number, **data},
        }
    )


class Traffic:
    """Publishers that number what they publish, and subscribers to all of it."""

    def __init__(self, gate: ClientGate, homes: Sequence[str]) -> None:
        self._gate = gate
        self._homes = homes
        self.published: defaultdict[str, int] = defaultdict(int)
        self.accepted: defaultdict[str, list[int]] = defaultdict(list)
        self.received: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        self.subscribers: dict[str, Client] = {}
        self._publishers: dict[str, Client] = {}

    async def subscribe(self, count: int, kind: str = "t") -> None:
        """Have some subscribers, at one home after the other."""
        for place in range(count):
            name = f"s{place}"
            home = self._homes[place % len(self._homes)]
            self.received[name] = []
            self.subscribers[name] = self._gate.client(name, home, partial(self._got, name))
        wanted = {"id": "all", "filters": [{"exact": {"type": kind}}]}
        await asyncio.gather(*(one.subscribe(wanted) for one in self.subscribers.values()))

    async def come_back(self, name: str) -> None:
        """Have a subscriber that was closed go on with what it has not got."""
        home = self.subscribers[name].home
        client = self._gate.client(name, home, partial(self._got, name))
        client.resume("all", len(self.received[name]))
        self.subscribers[name] = client
        assert await client.status("all") is not None

    def _got(self, name: str, message: Numbered) -> None:
        assert isinstance(message, Delivery)
        read = json.loads(message.event)
        self.received[name].append((read["source"], int(read["id"])))
        self.subscribers[name].acknowledge(message.subscription, message.number)

    async def publish(self, publisher: str, count: int, size: int = 200) -> None:
        """Publish events one behind the other, many under way."""
        client = self._publishers.get(publisher)
        if client is None:
            home = self._homes[len(self._publishers) % len(self._homes)]
            client = self._publishers[publisher] = self._gate.client(publisher, home)
        source = f"/{publisher}"
        begin = self.published[source]
        self.published[source] += count

        async def one(number: int) -> None:
            accepted = await client.publish(event(source, number, text="x" * size))
            assert (accepted.source, accepted.id) == (source, str(number))
            self.accepted[source].append(number)

        await asyncio.gather(*(one(begin + k) for k in range(count)))

    @property
    def accepted_count(self) -> int:
        """How many have been accepted so far, of all publishers."""
        return sum(map(len, self.accepted.values()))

    async def settled(self, seconds: float = 90.0) -> None:
        """Wait until everybody has everything that was accepted, and check order and count."""
        total = self.accepted_count
        await eventually(
            lambda: all(len(got) >= total for got in self.received.values()),
            seconds,
            progress=lambda: sum(map(len, self.received.values())),
        )
        self.check()

    def check(self) -> None:
        for source, count in self.published.items():
            assert sorted(self.accepted[source]) == list(range(count))
            for name, got in self.received.items():
                mine = [number for one, number in got if one == source]
                assert mine == list(range(count)), f"{name} from {source} got {mine}"
