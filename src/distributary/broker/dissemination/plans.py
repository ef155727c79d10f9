"""Plans: what a root has planned, knows of ways, uses again, and shows to those who look at it."""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from distributary.broker.addresses import Blob
from distributary.broker.dissemination.messages import Item, ItemId, NextHops
from distributary.broker.plan_part import NOTHING_BEFORE, PlanPart, Route, Step
from distributary.broker.planning import Planning, PlanningProblem, conditions_of, longest_work
from distributary.broker.settings import ContentSettings
from distributary.broker.telemetry import Planned, Worth
from distributary.placement.baselines import BASELINES
from distributary.placement.conversions import Converter
from distributary.placement.objective import Objective, objective
from distributary.topology import shared_prefix_length

__all__ = [
    "KnownHops",
    "KnownPlans",
    "Prepared",
    "RecentPlans",
    "TypicalSizes",
    "order_of_sizes",
    "worth_of",
]

# Known plans: what a root has planned, used again as long as it would plan the same.
#
# Most publications go to those to whom the one before went. To plan anew for each of them would
# take a root most of its time, and give the same plan. A plan follows from the formats of an item,
# from who is to get it, from routes, and from what brokers have to convert already. The last of
# these changes all the time, so a plan with conversions is made anew while a broker on its tree is
# busy.

# A plan takes as much memory as its tree has brokers.
_PLANS_MAX = 256
_KINDS_MAX = 1_000


class TypicalSizes:
    """Sizes that stand for all those within a tenth of them.

    A broker's own, not shared by those of a process: which sizes are typical depends on which
    came first.

    Parameters
    ----------
    kinds_max
        Of how many kinds sizes are known; the oldest is forgotten first.
    """

    def __init__(self, *, kinds_max: int = _KINDS_MAX) -> None:
        self._kinds_max = kinds_max
        self._sizes: dict[Hashable, list[int]] = {}

    def of(self, kind: Hashable, size: int) -> int:
        """Return the size that stands for one; from now on the same, if there was none."""
        sizes = self._sizes.get(kind)
        if sizes is None:
            if len(self._sizes) == self._kinds_max:
                del self._sizes[next(iter(self._sizes))]
            sizes = self._sizes[kind] = []
        at = bisect_left(sizes, size)
        for near in sizes[max(at - 1, 0) : at + 1]:
            if abs(size - near) * 10 <= near:
                return near
        insort(sizes, size)
        return size


@lru_cache(maxsize=16)
def _lines(graph: str) -> tuple[tuple[float, float], ...]:
    formats = sorted(json.loads(graph)["formats"], key=lambda entry: str(entry["name"]))
    return tuple((entry["size"]["fixed"], entry["size"]["per_mb"]) for entry in formats)


def order_of_sizes(graph: str, size_bytes: int) -> tuple[int, ...]:
    """Return the formats of a calibrated graph, the largest first, for content of some size.

    A device gets the largest format that it can show. So no size stands for another at which
    that would be another format.
    """
    lines = _lines(graph)
    if not lines:
        return ()
    megabytes = size_bytes / 1e6
    sizes = [fixed + per_mb * megabytes for fixed, per_mb in lines]
    return tuple(sorted(range(len(sizes)), key=lambda k: -sizes[k]))


class Prepared:
    """A problem, its plan once it is made, and what follows from that.

    Attributes
    ----------
    key
        What it follows from, apart from routes and load.
    above
        By home, the brokers between the root and it.
    planning
        The plan; None before it is made.
    """

    def __init__(
        self, key: Hashable, problem: PlanningProblem, above: Mapping[str, frozenset[str]]
    ) -> None:
        self.key = key
        self.problem = problem
        self.above = above
        self.planning: Planning | None = None

    @cached_property
    def plan(self) -> Planning:
        """The plan, which is made."""
        assert self.planning is not None
        return self.planning

    @cached_property
    def part(self) -> PlanPart:
        """The plan as brokers carry it out, when nothing must be done before."""
        return self.plan.part.following(dict.fromkeys(self.problem.homes, NOTHING_BEFORE))

    @cached_property
    def work_s(self) -> float:
        """How long conversions and links should take on the way to any home."""
        # Links may take longer than conversions, and brokers longer than predicted.
        longest_s = longest_work(self.plan, self.problem.waits_s)
        return max(longest_s, self.plan.objective.latest_s)

    @cached_property
    def converts(self) -> bool:
        """Whether there is anything to convert, so that it matters who is busy."""
        return self.plan.problem.format_count > 1


class KnownPlans:
    """The plans of one root, for as long as routes stay as they are.

    Attributes
    ----------
    made, reused
        How many were made, and how often one was used again.
    """

    def __init__(self) -> None:
        self.made = 0
        self.reused = 0
        self._plans: dict[Hashable, Prepared] = {}
        self._routes: object = None

    def get(self, key: Hashable, routes: object) -> Prepared | None:
        """Return a plan, if it was made with the routes that there are now."""
        if routes is not self._routes:
            self._plans.clear()
            self._routes = routes
        return self._plans.get(key)

    def clear(self) -> None:
        """Forget all plans, as the next ones would be others."""
        self._plans.clear()

    def add(self, prepared: Prepared, routes: object) -> None:
        """Note a plan that was made."""
        self.made += 1
        if routes is not self._routes or any(prepared.problem.waits_s.values()):
            return
        if len(self._plans) == _PLANS_MAX:
            del self._plans[next(iter(self._plans))]
        self._plans[prepared.key] = prepared


# Known hops: where other brokers pass messages on to, as they have told a root.
#
# A root estimates the way to a home: as its registration came, in reverse. But brokers pass a
# message to the nearest one that has a further digit of its goal right, and on the way back that
# is hardly ever the one on which it came. A relay that finds a plan wrong for this reason plans its
# own subtree anew, and tells the root the row of its routing table that the plan should have
# followed. So the next plan is right, for all homes behind that row and not only for those of
# the first.

# So many are known. In a large overlay a root hears of as many as there are brokers, or some more.
_HOPS_MAX = 65_536


class KnownHops:
    """The next hops of other brokers, as far as one root knows them.

    What a broker has told is true until its routes change. Then it finds the next plan wrong,
    and tells anew.
    """

    def __init__(self) -> None:
        self._hops: dict[tuple[str, str], tuple[str, float]] = {}
        self._node_costs: dict[str, float] = {}

    def learn(self, broker: str, told: NextHops) -> bool:
        """Take what a broker tells; return whether any of it is new."""
        if len(self._hops) + len(told.row) > _HOPS_MAX:
            self._hops.clear()
            self._node_costs.clear()
        row = {(broker, prefix): (hop, link_cost) for prefix, hop, link_cost in told.row}
        is_new = (
            self._node_costs.get(broker) != told.node_cost or not row.items() <= self._hops.items()
        )
        self._node_costs[broker] = told.node_cost
        self._hops.update(row)
        return is_new

    def way(
        self,
        estimate: Route,
        first: Step,
        node_costs: Mapping[str, float],
        is_alive: Callable[[str], bool],
    ) -> Route:
        """Return the way to a home: as brokers have told, and from there on as it is estimated.

        Parameters
        ----------
        estimate
            The way as far as nothing else is known, which ends at the home.
        first
            Where it begins.
        node_costs
            What converting costs where it is known from estimates.
        is_alive
            Whether a broker is there.
        """
        home = estimate[-1][0]
        found = [first]
        passed = {first[0]}
        at = first[0]
        while at != home:
            known = self._hops.get((at, home[: shared_prefix_length(at, home) + 1]))
            if known is None or known[0] in passed or not is_alive(known[0]):
                # Behind a broker that is not on the estimated way nothing but its end is known.
                after = [k + 1 for k, step in enumerate(estimate) if step[0] == at]
                return (*found, *estimate[after[0] if after else -1 :])
            at, link_cost = known
            node_cost = self._node_costs.get(at, node_costs.get(at, 1.0))
            found.append((at, link_cost, node_cost))
            passed.add(at)
        return tuple(found)


_RECENT_MAX = 100
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
        while len(self._plans) > _RECENT_MAX or self._nodes > _NODES_MAX:
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


def baselines_of(part: PlanPart, settings: ContentSettings) -> dict[str, Worth]:
    """Return what the simple plans would come to, by name, where a plan was carried out."""
    problem = part.problem(alpha=settings.alpha, beta=settings.beta)
    converter = Converter(problem.graph.costs)
    conditions = conditions_of(
        [node.wait_s for node in part.nodes], [len(node.grants) for node in part.nodes], settings
    )
    return {
        name: worth_of(objective(problem, made(problem, converter), conditions))
        for name, made in BASELINES.items()
    }


def worth_of(found: Objective) -> Worth:
    """Return what a plan comes to, as it is told."""
    return Worth(found.cost.transmission, found.cost.conversion, found.delay_s)
