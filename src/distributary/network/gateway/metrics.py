"""Metrics of a gateway, as Prometheus reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

if TYPE_CHECKING:
    from distributary.network.gateway.gateway import Gateway

__all__ = ["Metrics"]

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_OF_BROKERS = (
    "subscriptions",
    "queued",
    "queued_bytes",
    "outbox",
    "owed",
    "publications",
    "converting",
    "memory_bytes",
    "cpu_s",
)


class Metrics:
    """What one gateway counts, and what brokers have told it."""

    def __init__(self, gateway: Gateway) -> None:
        # When something was first counted is of no use to anybody.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._gateway = gateway
        registry = self._registry = CollectorRegistry()
        self.accepted = Counter(
            "distributary_events_accepted", "Events that are stored.", registry=registry
        )
        self.delivered = Counter(
            "distributary_events_delivered", "Events that were written.", registry=registry
        )
        self.publishing = Histogram(
            "distributary_publish_seconds",
            "From a body that was read to all its events being stored.",
            buckets=_SECONDS,
            registry=registry,
        )
        feeds = Gauge("distributary_connections", "Connected subscriptions.", registry=registry)
        feeds.set_function(lambda: len(gateway.feeds))
        publishers = Gauge(
            "distributary_publishers", "Tokens that have published of late.", registry=registry
        )
        publishers.set_function(lambda: len(gateway.publishers))
        connected = Gauge("distributary_nats_connected", "Whether NATS is.", registry=registry)
        connected.set_function(lambda: gateway.gate.connection.connected)
        up = Gauge("distributary_brokers_up", "Brokers that answer.", registry=registry)
        up.set_function(lambda: len(gateway.members.alive))
        self._brokers = {
            name: Gauge(
                f"distributary_broker_{name}",
                f"{name} of a broker, as it says itself.",
                ["broker"],
                registry=registry,
            )
            for name in _OF_BROKERS
        }

    def text(self) -> bytes:
        """Return all of them as they are now."""
        for gauge in self._brokers.values():
            gauge.clear()
        for broker, status in self._gateway.members.status.items():
            for name, gauge in self._brokers.items():
                if status is not None and name in status:
                    gauge.labels(broker).set(status[name])
        return generate_latest(self._registry)
