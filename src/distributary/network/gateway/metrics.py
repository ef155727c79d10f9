"""Metrics of a gateway and of brokers, as Prometheus reads them.

Brokers have no HTTP of their own: whoever asks a gateway has it ask all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from distributary.network.host_metrics import METRICS
from distributary.network.transfers import TransferFailed
from distributary.network.views import look

if TYPE_CHECKING:
    from distributary.network.gateway.gateway import Gateway

__all__ = ["Metrics"]

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_OF_BROKERS = {
    "subscriptions": "Subscriptions whose home it is",
    "queued": "Deliveries that subscribers have not acknowledged",
    "queued_bytes": "Their bytes",
    "queue_age_s": "For how many seconds the oldest of them has waited",
    "outbox": "Messages that other brokers have not acknowledged",
    "owed": "What it knows to be owed to homes, as a root",
    "publications": "Publications that it keeps until they are settled",
    "converting": "Conversions under way",
    "fidelity_loss": "Mean share of time in which its copies of streams were outside tolerances",
    "memory_bytes": "Memory of the process that is its own",
    "cpu_s": "Seconds of processor that the process has used",
}


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
                f"{meaning}.",
                ["broker"],
                registry=registry,
            )
            for name, meaning in _OF_BROKERS.items()
        }

        self._told = _Told()
        registry.register(self._told)

    async def text(self) -> bytes:
        """Return all of them as they are now."""
        gate, names = self._gateway.gate, self._gateway.members.alive

        async def of_one(name: str) -> list[dict[str, Any]]:
            try:
                return await look(
                    gate.connection, gate.subjects.to_host(name, gate.name), "figures"
                )
            except TransferFailed:
                return []

        found = await asyncio.gather(*(of_one(name) for name in names))
        self._told.rows = dict(zip(names, found, strict=True))
        for gauge in self._brokers.values():
            gauge.clear()
        for broker, status in self._gateway.members.status.items():
            for name, gauge in self._brokers.items():
                if status is not None and name in status:
                    gauge.labels(broker).set(status[name])
        return generate_latest(self._registry)


class _Told(Collector):
    """What brokers have told of their figures just now."""

    def __init__(self) -> None:
        self.rows: Mapping[str, Sequence[dict[str, Any]]] = {}

    def collect(self) -> Iterable[Metric]:
        """Yield each metric of all brokers."""
        for name, metric in METRICS.items():
            kind = CounterMetricFamily if metric.is_sum else GaugeMetricFamily
            family = kind(
                f"distributary_broker_{name}",
                f"{metric.meaning}.",
                labels=["broker", *metric.labels],
            )
            for broker, rows in self.rows.items():
                for row in rows:
                    # Brokers of another version may have others.
                    if row["figure"] == name and len(row["labels"]) == len(metric.labels):
                        family.add_metric([broker, *row["labels"]], row["value"])
            yield family
