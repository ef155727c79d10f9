"""Prices: stream objects over NATS, with followers whose tolerance is narrow."""

from __future__ import annotations

import json
import time
from collections import Counter

from distributary.broker.addresses import client_address
from distributary.broker.client import Announce, Changed
from distributary.broker.encoding import encode
from distributary.network.client import ClientGate

__all__ = ["Prices"]


class Prices:
    """A publisher of objects, and clients that follow all of them."""

    def __init__(self, gate: ClientGate, home: str, *, tenant: str = "") -> None:
        self._gate = gate
        self._tenant = tenant
        self._sequences: Counter[tuple[str, str]] = Counter()
        address = client_address(f"{gate.name}/prices", tenant)
        self._subject = gate.subjects.to_home(home, address)

    async def follow(self, home: str) -> None:
        """Have somebody at a broker who wants every change."""
        wish = {
            "id": "prices",
            "filters": [{"exact": {"type": "price"}}],
            "tolerance": {"value": "/value", "divergence": "absolute", "amount": 0.5},
        }
        await self._gate.client(f"of prices at {home}", home, tenant=self._tenant).subscribe(wish)

    def announce(self, source: str, subject: str) -> None:
        """Open an object."""
        common = {"specversion": "1.0", "id": "0", "source": source, "type": "price"}
        self._send(Announce(json.dumps({**common, "subject": subject})))

    def change(self, source: str, subject: str) -> None:
        """Change the price by more than anybody tolerates."""
        self._sequences[source, subject] += 1
        number = self._sequences[source, subject]
        self._send(Changed(source, subject, number, time.time_ns(), (("/value", float(number)),)))

    def _send(self, message: object) -> None:
        self._gate.connection.send(self._subject, encode(message))
