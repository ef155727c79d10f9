"""The client library: publish and subscribe by way of a gateway.

`distributary.connect` and `distributary.connect_sync` are where to begin. It needs neither
NumPy nor Numba nor NATS. Its names are loaded when they are first asked for: a command that only
wants to know where a gateway is should start at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributary.exports import on_demand

if TYPE_CHECKING:
    from distributary.client.blocking import (
        SyncConnection,
        SyncDelivery,
        SyncSubscription,
        connect_sync,
    )
    from distributary.client.connection import Connection, connect
    from distributary.client.delivery import Delivery
    from distributary.client.failure import (
        GatewayAway,
        RequestRefused,
        SubscriptionEnded,
        SubscriptionTaken,
    )
    from distributary.client.subscription import Subscription

__all__ = [
    "Connection",
    "Delivery",
    "GatewayAway",
    "RequestRefused",
    "Subscription",
    "SubscriptionEnded",
    "SubscriptionTaken",
    "SyncConnection",
    "SyncDelivery",
    "SyncSubscription",
    "connect",
    "connect_sync",
]

__getattr__, __dir__ = on_demand(
    __name__,
    {
        "blocking": ("SyncConnection", "SyncDelivery", "SyncSubscription", "connect_sync"),
        "connection": ("Connection", "connect"),
        "delivery": ("Delivery",),
        "failure": ("GatewayAway", "RequestRefused", "SubscriptionEnded", "SubscriptionTaken"),
        "subscription": ("Subscription",),
    },
)
