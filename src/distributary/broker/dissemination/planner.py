"""How a root plans an item: formats, tree, load, and who is to get what.

Workloads: how much there is to convert at other brokers, as far as a root has caused it.

Probes: how a root finds the ways on which content will go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from distributary.broker.addresses import Address
from distributary.broker.dissemination.messages import ItemId, NextHops, Probe, ProbeAnswer
from distributary.broker.dissemination.plans import (
    KnownHops,
    KnownPlans,
    Prepared,
    TypicalSizes,
    order_of_sizes,
    worth_of,
)
from distributary.broker.dissemination.task import Pending, Task
from distributary.broker.host import Turn
from distributary.broker.plan_part import After, Grant, Home, Route
from distributary.broker.planning import (
    Formats,
    Planning,
    PlanningProblem,
    around,
    choice,
    formats_of,
    tree_along,
)
from distributary.broker.settings import ns
from distributary.broker.telemetry import Planned
from distributary.broker.timers import Timer
from distributary.content.format_choice import NoFormat
from distributary.errors import PeerMisbehaved

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Planner", "Probes", "Workloads"]


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
