"""Draining: a broker gives its clients to others, and leaves the overlay in good order.

Clients go the way of every migration, so that they miss nothing. One that has no connection
cannot be asked, and is waited for: what is published for it would otherwise be lost.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from distributary.broker.host import Leave, OrderMove

if TYPE_CHECKING:
    from distributary.network.host import NetworkHost

__all__ = ["drain"]

_LOOK_S = 0.5
# A client that has left is still told where it should go, if it asks; nothing comes for it.
_GONE = "left"


async def drain(host: NetworkHost) -> None:
    """Order the clients of a broker to move until none is left, and the broker to leave then."""
    orders = 0
    while True:
        broker = host.driver.broker
        if broker is not None:
            seen = broker.snapshot(parts=("membership", "subscriptions", "migration"))
            others = [
                one["broker"] for one in seen["membership"]["members"] if one["status"] == "alive"
            ]
            clients = {one["client"] for one in seen["subscriptions"]["subscriptions"]}
            leaving = {one["client"]: one["state"] for one in seen["migration"]["leaving"]}
            arriving = seen["migration"]["arriving"]
            if not clients and not arriving and all(one == _GONE for one in leaving.values()):
                host.tell(Leave())
                return
            for client in sorted(clients - leaving.keys()):
                if others:
                    orders += 1
                    host.tell(OrderMove(client, others[orders % len(others)]))
        await asyncio.sleep(_LOOK_S)
