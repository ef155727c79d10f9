"""A ledger filled by hand, for tests of checkers."""

from __future__ import annotations

import json

from distributary.broker.dissemination.messages import ItemId
from distributary.broker.settings import Settings
from distributary.content import Publication, Subscription
from distributary.simulator.checkers.ledger import Ledger, wish_name

__all__ = ["GRAPH", "Book", "settings"]

GRAPH = json.dumps(
    {
        "formats": [
            {"name": "a/a", "size": {"fixed": 0, "per_mb": 1}},
            {"name": "b/b", "size": {"fixed": 0.1, "per_mb": 0}},
            {"name": "c/c", "size": {"fixed": 0.2, "per_mb": 0}},
            {"name": "d/d", "size": {"fixed": 0.3, "per_mb": 0}},
        ],
        "conversions": [
            {"from": "a/a", "to": "b/b", "cost": {"fixed": 1, "per_mb": 0}},
            {"from": "a/a", "to": "c/c", "cost": {"fixed": 1, "per_mb": 0}},
            {"from": "b/b", "to": "d/d", "cost": {"fixed": 1, "per_mb": 0}},
        ],
    }
)


def settings() -> Settings:
    return Settings(graph=GRAPH)


class Book:
    """Writes into a ledger as clients would, one nanosecond after the other."""

    def __init__(self) -> None:
        self.ledger = Ledger(settings().space.cell_of)
        self.now_ns = 0

    def subscribe(
        self, name: str, kind: str = "t", accept: list[str] | None = None, confirmed: bool = True
    ) -> None:
        document: dict[str, object] = {"id": name, "filters": [{"exact": {"type": kind}}]}
        if accept is not None:
            document["profile"] = {"accept": accept}
        self.now_ns += 1
        self.ledger.asked(Subscription.parse(document), f"@{name}", self.now_ns)
        if confirmed:
            self.ledger.registered(wish_name(f"@{name}", name), self.now_ns)

    def publish(
        self,
        identifier: str,
        kind: str = "t",
        *,
        accepted: bool = True,
        home: str = "h",
        tenant: str = "",
    ) -> None:
        event = Publication.parse(
            {
                "specversion": "1.0",
                "id": identifier,
                "source": "/p",
                "type": kind,
                "datacontenttype": "a/a",
            }
        )
        self.now_ns += 1
        self.ledger.sent(event, 1_000_000, home, self.now_ns, tenant=tenant)
        if accepted:
            self.ledger.accepted(ItemId(tenant, "/p", identifier), self.now_ns)

    def deliver(
        self,
        name: str,
        identifier: str,
        media_type: str | None = "a/a",
        *,
        event: Publication | None = None,
    ) -> None:
        self.now_ns += 1
        identity = ItemId("", "/p", identifier)
        self.ledger.delivered(
            wish_name(f"@{name}", name),
            identity,
            media_type=media_type,
            event=event,
            now_ns=self.now_ns,
        )
