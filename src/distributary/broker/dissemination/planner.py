"""How a root plans an item: formats, tree, load, and who is to get what.

Workloads: how much there is to convert at other brokers, as far as a root has caused it.

Probes: how a root finds the ways on which content will go.
"""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from distributary.broker.addresses import Address, Blob
from distributary.broker.core import Core
from distributary.broker.dissemination.messages import Item, ItemId, NextHops, Probe, ProbeAnswer
from distributary.broker.dissemination.task import Pending, Task
from distributary.broker.host import Turn
from distributary.broker.plan_part import NOTHING_BEFORE, After, Grant, Home, PlanPart, Route, Step
from distributary.broker.planning import (
    Formats,
    Planning,
    PlanningProblem,
    around,
    choice,
    conditions_of,
    formats_of,
    longest_work,
    tree_along,
)
from distributary.broker.settings import ContentSettings, ns
from distributary.broker.telemetry import Planned, Worth
from distributary.broker.timers import Timer
from distributary.content.format_choice import NoFormat
from distributary.errors import PeerMisbehaved
from distributary.placement.baselines import BASELINES
from distributary.placement.conversions import ConversionPlanner
from distributary.placement.objective import Objective, objective
from distributary.topology import shared_prefix_length

__all__ = ["KnownHops", "Planner", "Prepared", "Probes", "RecentPlans", "TypicalSizes", "Workloads"]


# Plans: what a root has planned, knows of ways, uses again, and shows to those who look at it.


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
    conversion_planner = ConversionPlanner(problem.graph.costs)
    conditions = conditions_of(
        [node.wait_s for node in part.nodes], [len(node.grants) for node in part.nodes], settings
    )
    return {
        name: worth_of(objective(problem, made(problem, conversion_planner), conditions))
        for name, made in BASELINES.items()
    }


def worth_of(found: Objective) -> Worth:
    """Return what a plan comes to, as it is told."""
    return Worth(found.cost.transmission, found.cost.conversion, found.delay_s)


class Planner:
    """The plans of one root, and the work that they give to brokers."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._workloads = Workloads()
        self._sizes = TypicalSizes()
        self._hops = KnownHops()
        self.plans = KnownPlans()

    def prepare(
        self, task: Task, after: Mapping[str, After], routes: Mapping[str, Route], now_ns: int
    ) -> Prepared:
        """Return what is to be planned for some homes of an item, with its plan if it is known.

        Parameters
        ----------
        task
            The item; its pending homes are told who is above them.
        after
            By home, the item that must be done before.
        routes
            The ways that are known; others are estimated from registrations.
        """
        pending = task.pending
        formats = self.formats(task)
        key = (
            formats,
            tuple(task.lost.items()),
            tuple(
                [
                    (
                        home,
                        routes.get(home),
                        pending[home].without,
                        *pending[home].registrations.items(),
                    )
                    for home in after
                ]
            ),
        )
        known = self.plans.get(key, self._core.membership.routes)
        if known is None or (known.converts and self._is_busy(known, now_ns)):
            known = Prepared(key, *self._problem(task, formats, after, routes, now_ns))
        else:
            self.plans.reused += 1
        for home in after:
            pending[home].above = known.above[home]
        return known

    def told_hops(self, message: NextHops, sender: Address, turn: Turn) -> None:
        """Learn how a relay passes on what was planned otherwise."""
        if self._hops.learn(sender, message):
            self.plans.clear()

    def formats(self, task: Task) -> Formats:
        """Return the formats of an item, with the sizes of one that is about as large."""
        settings, item = self._core.settings, task.item
        kind = (item.media_type, order_of_sizes(settings.graph, item.size_bytes))
        size_bytes = self._sizes.of(kind, item.size_bytes)
        return formats_of(settings, item, task.lost_formats, size_bytes=size_bytes)

    def adopt(self, task: Task, prepared: Prepared, planning: Planning, now_ns: int) -> None:
        """Count on a plan that is carried out."""
        if prepared.planning is None:
            prepared.planning = planning
            self.plans.add(prepared, self._core.membership.routes)
        task.work_s = prepared.work_s
        self._workloads.add(planning, now_ns)

    def _is_busy(self, known: Prepared, now_ns: int) -> bool:
        """Whether a broker on the tree of a plan has something to convert by now."""
        left_s = self._workloads.left_s
        return self._core.relays.left_s > 0.0 or any(
            left_s(name, now_ns) for name in known.problem.tree.names
        )

    def _problem(
        self,
        task: Task,
        formats: Formats,
        after: Mapping[str, After],
        routes: Mapping[str, Route],
        now_ns: int,
    ) -> tuple[PlanningProblem, dict[str, frozenset[str]]]:
        core = self._core
        homes: dict[str, Home] = {}
        ways: dict[str, Route] = {}
        for home, before in after.items():
            pending = task.pending[home]
            homes[home] = Home(before, _grants(formats, task, pending))
            ways[home] = self._way(home, routes.get(home), pending.registrations)
        self._along_hops(ways)
        above = {
            home: frozenset(broker for broker, _, _ in way if broker != home)
            for home, way in ways.items()
        }
        tree = tree_along(core.identity, core.membership.node_cost, ways)
        waits_s = {name: self._workloads.left_s(name, now_ns) for name in tree.names}
        # Of itself the root knows all that it has to do, for others too.
        waits_s[core.identity] = core.relays.left_s
        problem = PlanningProblem(
            formats, tree, (formats.held,), homes, waits_s, core.settings.content
        )
        return problem, above

    def report(self, task: Task, planning: Planning) -> Planned:
        """Return what there is to tell about a plan."""
        compared = self._core.settings.content.compare
        return Planned(
            task.item.source,
            task.item.id,
            planning.problem.node_count,
            planning.chosen,
            worth_of(planning.objective),
            worth_of(planning.compared["all-in-root"]) if compared else None,
            worth_of(planning.compared["all-in-leaves"]) if compared else None,
            task.item.tenant,
        )

    def _way(
        self,
        home: str,
        known: Route | None,
        registrations: Mapping[str, tuple[str | None, Route]],
    ) -> Route:
        """Return the way to a home around those that are away."""
        if home == self._core.identity:
            return ()
        if known is None:
            known = next((route for _, route in registrations.values() if route), ())
        membership = self._core.membership
        dead = {broker for broker, _, _ in known if not membership.is_alive(broker)}
        way = around(known, dead) if dead else known
        return way or ((home, membership.link_cost_to(home), 1.0),)

    def _along_hops(self, ways: dict[str, Route]) -> None:
        """Let ways go as brokers send, this one and those that have told: that is no estimate."""
        membership = self._core.membership
        node_costs = {broker: cost for way in ways.values() for broker, _, cost in way}
        for home, way in ways.items():
            hop = membership.next_hop(home)
            if way and hop is not None:
                first = (hop, membership.link_cost_to(hop), node_costs.get(hop, 1.0))
                ways[home] = self._hops.way(way, first, node_costs, membership.is_alive)


def _grants(formats: Formats, task: Task, pending: Pending) -> tuple[Grant, ...]:
    """Return what the devices behind some registrations get."""
    missing = task.lost.get(formats.own, pending.without)
    if missing:
        reason = f"its content could not be fetched: {missing}"
        return tuple(Grant(name, None, reason) for name in sorted(pending.registrations))
    grants: list[Grant] = []
    for name, (profile, _) in sorted(pending.registrations.items()):
        chosen = choice(formats, profile)
        if isinstance(chosen, int):
            grants.append(Grant(name, formats.graph.names[chosen]))
        else:
            grants.append(Grant(name, None, _reason(task, chosen)))
    return tuple(grants)


def _reason(task: Task, nothing: NoFormat) -> str:
    if task.lost:
        name, reason = min(task.lost.items())
        return f"{name} could not be made: {reason}"
    return nothing.reason


_NS_PER_SECOND = 1e9


class Workloads:
    """What a root thinks is still to be done by whom.

    Nobody reports that a conversion is done. A broker is taken to work without a break
    on what it was given, so that what the root has given it shrinks as time passes.
    """

    def __init__(self) -> None:
        self._busy_until_ns: dict[str, int] = {}

    def left_s(self, broker: str, now_ns: int) -> float:
        """Return the seconds of work that a broker should have left."""
        left_ns = self._busy_until_ns.get(broker, now_ns) - now_ns
        return left_ns / _NS_PER_SECOND if left_ns > 0 else 0.0

    def add(self, planning: Planning, now_ns: int) -> None:
        """Count the work that a plan gives to brokers other than its root."""
        until = self._busy_until_ns
        for broker in [broker for broker, end_ns in until.items() if end_ns <= now_ns]:
            del until[broker]
        for broker, work_s in planning.work_s().items():
            if broker != planning.part.first.broker:
                until[broker] = until.get(broker, now_ns) + ns(work_s)


Found = Callable[[Task, tuple[str, ...], Mapping[str, Route], Turn], None]
"""Told the item, the homes whose ways were looked for, and the ways that were found."""


class _Probing:
    """One probe: for whom, what was found, and when the root does without the rest."""

    __slots__ = ("homes", "routes", "task", "timer")

    def __init__(self, task: Task, homes: tuple[str, ...]) -> None:
        self.task = task
        self.homes = homes
        self.routes: dict[str, Route] = {}
        self.timer: Timer | None = None


class Probes:
    """The probes that one root has sent out.

    Parameters
    ----------
    found
        Called when all homes have answered, or the time is up.
    """

    def __init__(self, core: Core, found: Found) -> None:
        self._core = core
        self._found = found
        self._wait_ns = ns(core.settings.content.probe_s)
        self._probing: dict[tuple[ItemId, int], _Probing] = {}

    def find(self, task: Task, homes: tuple[str, ...], turn: Turn) -> None:
        """Look for the ways to some homes."""
        item, own = task.item, self._core.identity
        key = (item.identity, task.attempt)
        probing = self._probing[key] = _Probing(task, homes)
        probing.timer = self._core.timers.at(turn.now_ns + self._wait_ns, self._end, key)
        if own in homes:
            probing.routes[own] = ()
        others = tuple(home for home in homes if home != own)
        probe = Probe(item.identity, task.attempt, own, others, (), b"")
        self._core.relays.pass_on_probe(probe, turn)

    def answered(self, message: ProbeAnswer, sender: Address, turn: Turn) -> None:
        """Enter the way to a home."""
        key = (message.identity, message.attempt)
        probing = self._probing.get(key)
        if probing is None or sender not in probing.homes:
            return
        if message.steps[-1][0] != sender:
            raise PeerMisbehaved(f"the way of a probe to {message.steps[-1][0]} from {sender}")
        probing.routes[sender] = message.steps
        if len(probing.routes) == len(probing.homes):
            self._end(turn, key)

    def _end(self, turn: Turn, key: tuple[ItemId, int]) -> None:
        probing = self._probing.pop(key)
        if probing.timer is not None:
            probing.timer.cancel()
        self._found(probing.task, probing.homes, probing.routes, turn)
