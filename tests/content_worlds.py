"""Overlays with clients that publish and subscribe, and checkers that watch from outside."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.broker_overlays import BRISK, Overlay

from distributary.broker.addresses import Blob
from distributary.broker.core import Part
from distributary.broker.dissemination.messages import Portion
from distributary.broker.host import Turn
from distributary.broker.plan_part import PlanPart
from distributary.broker.relays import Relays
from distributary.broker.settings import (
    ContentSettings,
    PublishingSettings,
    Settings,
    SubscriptionSettings,
)
from distributary.content import Publication, Subscription
from distributary.placement import check
from distributary.simulator.checkers.deliveries import ExactlyOnceCheck, OrderCheck, SelectionCheck
from distributary.simulator.checkers.ledger import Ledger
from distributary.simulator.workload.publisher import Publisher
from distributary.simulator.workload.subscriber import Subscriber

PDF, JPEG, TEXT, SPEECH = "application/pdf", "image/jpeg", "text/plain", "audio/wav"

MAP_GRAPH: dict[str, object] = {
    "formats": [
        {"name": PDF, "size": {"fixed": 0.0, "per_mb": 1.0}},
        {"name": JPEG, "size": {"fixed": 0.0, "per_mb": 0.4}},
        {"name": TEXT, "size": {"fixed": 0.01, "per_mb": 0.0}},
        {"name": SPEECH, "size": {"fixed": 0.0, "per_mb": 0.3}},
    ],
    "conversions": [
        {"from": PDF, "to": JPEG, "cost": {"fixed": 0.0, "per_mb": 0.4}},
        {"from": PDF, "to": TEXT, "cost": {"fixed": 0.0, "per_mb": 0.2}},
        {"from": TEXT, "to": SPEECH, "cost": {"fixed": 0.1, "per_mb": 0.1}},
    ],
}
"""An annotated map; speech can only be made from text."""

SETTINGS = replace(
    BRISK,
    graph=json.dumps(MAP_GRAPH),
    subscriptions=SubscriptionSettings(registration_s=10.0, interest_s=6.0),
    content=ContentSettings(repeat_s=2.0, retention_s=60.0, probe_s=0.5, compare=True),
    publishing=PublishingSettings(dedupe_s=80.0),
)


class CheckedRelays(Relays):
    """Relays that never carry out a plan that is not valid."""

    def _along_hops(self, portion: Portion, turn: Turn) -> PlanPart:
        part = super()._along_hops(portion, turn)
        for carried in (portion.plan, part):
            if carried.first.receives:
                check(carried.problem(), carried.plan())
        assert part.first.broker == self.core.identity
        assert set(part.homes()) <= set(portion.plan.homes())
        return part


class ContentWorld:
    """An overlay, its clients, and who watches them."""

    def __init__(
        self,
        count: int,
        *,
        seed: int = 1,
        settings: Settings = SETTINGS,
        parts: Mapping[str, type[Part]] | None = None,
        failing: Sequence[str] = (),
        spare: int = 0,
        settings_of: Mapping[int, Settings] | None = None,
    ) -> None:
        self.overlay = Overlay(
            count,
            seed=seed,
            settings=settings,
            spare=spare,
            settings_of=settings_of,
            parts={"relays": CheckedRelays, **(parts or {})},
        )
        self.world = self.overlay.world
        self.members = self.overlay.members
        self.reports: list[tuple[str, object]] = []
        self.world.watchers.append(lambda who, record, _: self.reports.append((who, record)))
        honest = self.world.convert
        if failing:
            self.world.convert = lambda broker, blob, target: (
                replace(honest(broker, blob, target), blob=None, reason="it is broken")
                if target in failing
                else honest(broker, blob, target)
            )
        self.ledger = Ledger(settings.space.cell_of)
        self.once = ExactlyOnceCheck(self.ledger)
        self.order = OrderCheck(self.ledger)
        self.selection = SelectionCheck(self.ledger, settings, lambda _: failing)
        self.subscribers: dict[str, Subscriber] = {}
        self.publishers: dict[str, Publisher] = {}

    def subscribe(
        self,
        name: str,
        home: str,
        filters: Sequence[object] = (),
        accept: Sequence[str] | None = None,
        client: str | None = None,
        tenant: str = "",
    ) -> Subscriber:
        """Have a client subscribe; without filters to everything."""
        client = client or name
        device = self.subscribers.get(client)
        if device is None:
            device = Subscriber(self.world, client, home, self.ledger, tenant=tenant)
            self.subscribers[client] = device
        document: dict[str, object] = {"id": name, "filters": list(filters)}
        if accept is not None:
            document["profile"] = {"accept": list(accept)}
        device.subscribe(Subscription.parse(document))
        return device

    def publish(
        self,
        name: str,
        home: str,
        *,
        kind: str = "map",
        media_type: str | None = PDF,
        megabytes: float = 1.0,
        source: str = "/maps",
        level: int = 0,
        tenant: str = "",
    ) -> None:
        """Have the client of a source publish something."""
        device = self.publishers.get(tenant + source)
        if device is None:
            client = f"publisher of {source}"
            device = Publisher(self.world, client, home, source, self.ledger, tenant=tenant)
            self.publishers[tenant + source] = device
        document: dict[str, object] = {
            "specversion": "1.0",
            "id": name,
            "source": source,
            "type": kind,
            "level": level,
        }
        blob = None
        if media_type is None:
            document["data"] = {"note": name}
        else:
            document["datacontenttype"] = media_type
            blob = Blob.imagined(media_type, round(megabytes * 1e6), name)
        device.publish(Publication.parse(document), blob)

    def root_of(self, kind: str = "map") -> str:
        """The rendezvous broker of what is published under a type."""
        document = {"specversion": "1.0", "id": "1", "source": "/", "type": kind}
        space = self.world.settings.space
        key = space.key(space.cell_of(Publication.parse(document))).hex()[:4]
        return self.overlay.membership(self.overlay.up()[0]).root_of(key)

    def run_s(self, seconds: float) -> None:
        """Let time pass."""
        self.overlay.run_s(seconds)

    def got(self, subscription: str) -> list[tuple[str, str | None]]:
        """What a subscription has got: ids and formats."""
        return [
            (identity.id, copy.media_type)
            for (wish, identity), copy in self.ledger.got.items()
            if wish.split(" of ")[0] == subscription
        ]

    def reported(self, kind: type) -> list[object]:
        """What brokers have reported of a kind."""
        return [record for _, record in self.reports if isinstance(record, kind)]

    def violations(self) -> list[str]:
        """What the checkers have to complain about, now that all should have come."""
        found: list[str] = []
        for checker in (self.once, self.order, self.selection):
            checker.finish(self.world.now_ns)
            found.extend(str(violation) for violation in checker.violations)
        return found
