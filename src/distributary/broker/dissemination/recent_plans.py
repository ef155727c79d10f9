"""Recent plans: what was planned last, for those who look at a broker."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from distributary.broker.blob import Blob
from distributary.broker.dissemination.messages import Item, ItemId
from distributary.broker.dissemination.planner import baselines_of
from distributary.broker.plan_part import PlanPart
from distributary.broker.settings import ContentSettings
from distributary.broker.telemetry import Planned

__all__ = ["RecentPlans"]

_PLANS_MAX = 100
_NODES_MAX = 10_000
_EVENT_CHARACTERS_MAX = 4096


@dataclass(frozen=True)
class _Made:
    """A plan, when it was made, and for what content.

    Attributes
    ----------
    digest
        Of the content; None when it is in the event.
    event
        As it was published, if that is short.
    """

    at_ns: int
    report: Planned
    part: PlanPart
    published_ns: int
    media_type: str
    size_bytes: int
    digest: str | None
    event: str | None

    @cached_property
    def heading(self) -> dict[str, Any]:
        """What there is to say in a line; made once, as those who watch ask every second."""
        report, part = self.report, self.part
        return {
            "at_ns": self.at_ns,
            "tenant": report.tenant,
            "source": report.source,
            "id": report.id,
            "brokers": report.broker_count,
            "chosen": report.chosen,
            "cost": report.worth._asdict(),
            "published_ns": self.published_ns,
            "media_type": self.media_type,
            "size_bytes": self.size_bytes,
            "digest": self.digest,
            "formats": sorted({part.formats[k] for node in part.nodes for k in node.wants}),
        }


class RecentPlans:
    """The plans that were made last, limited in number and in what they say altogether."""

    def __init__(self, settings: ContentSettings) -> None:
        self._settings = settings
        self._plans: deque[_Made] = deque()
        self._nodes = 0

    def add(
        self, at_ns: int, report: Planned, part: PlanPart, item: Item, blob: Blob | None
    ) -> None:
        """Keep a plan, in the place of the oldest if there are many."""
        digest = None if item.inline or blob is None else blob.digest
        event = item.event if len(item.event) <= _EVENT_CHARACTERS_MAX else None
        content = (item.published_ns, item.media_type, item.size_bytes, digest, event)
        self._plans.append(_Made(at_ns, report, part, *content))
        self._nodes += len(part.nodes)
        while len(self._plans) > _PLANS_MAX or self._nodes > _NODES_MAX:
            self._nodes -= len(self._plans.popleft().part.nodes)

    def __iter__(self) -> Iterator[tuple[int, Planned, PlanPart]]:
        return ((one.at_ns, one.report, one.part) for one in self._plans)

    def headings(self) -> list[dict[str, Any]]:
        """Return all plans, the newest first, without what each broker does."""
        return [one.heading for one in reversed(self._plans)]

    def newest(self, *, baselines: bool) -> list[dict[str, Any]]:
        """Return some plans, the newest first, beside the simple ones if that is wanted."""
        return [self._shown(one, baselines=baselines) for one in reversed(self._plans)]

    def find(self, item: ItemId) -> dict[str, Any] | None:
        """Return the last plan of an item beside the simple ones, if it is kept."""
        for one in reversed(self._plans):
            if (one.report.tenant, one.report.source, one.report.id) == item:
                return self._shown(one, baselines=True)
        return None

    def _shown(self, one: _Made, *, baselines: bool) -> dict[str, Any]:
        shown = {**one.heading, "event": one.event, "plan": one.part.as_data()}
        if baselines:
            worth = baselines_of(one.part, self._settings)
            shown["baselines"] = {name: cost._asdict() for name, cost in sorted(worth.items())}
        return shown
