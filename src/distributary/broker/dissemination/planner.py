"""How a root plans an item: formats, tree, load, and who is to get what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from distributary.broker.dissemination.task import Task
from distributary.broker.formats import Formats, choice, formats_of
from distributary.broker.plan_part import Home, Route
from distributary.broker.planning import Planning, plan_tree
from distributary.broker.telemetry import Planned
from distributary.broker.trees import around, tree_along
from distributary.topology import DisseminationTree

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Planner"]


class Planner:
    """The plans of one root, and the work that they give to brokers."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._loading: dict[tuple[str, str], Task] = {}

    def plan(self, task: Task, after: Mapping[str, int], routes: Mapping[str, Route]) -> Planning:
        """Return a plan for some homes of an item.

        Parameters
        ----------
        task
            The item; its pending homes are told who is above them.
        after
            By home, the item that must be done before.
        routes
            The ways that are known; others are estimated from registrations.
        """
        core = self._core
        settings = core.settings.content
        formats = formats_of(core.settings, task.item, task.lost_formats)
        homes: dict[str, Home] = {}
        wants: dict[str, tuple[int, ...]] = {}
        ways: dict[str, Route] = {}
        for home, number in after.items():
            pending = task.pending[home]
            homes[home] = Home(number, tuple(sorted(pending.registrations)))
            wants[home] = _wanted(formats, pending.registrations.values())
            ways[home] = self._way(home, routes.get(home), pending.registrations)
            pending.above = frozenset(broker for broker, _, _ in ways[home] if broker != home)
        tree = tree_along(core.identity, core.relays.node_cost, ways)
        if settings.load_growth > 0.0:
            tree = self._loaded(tree, settings.load_growth)
        planning = plan_tree(
            formats, tree, held=(formats.held,), wants=wants, homes=homes, settings=settings
        )
        if settings.load_growth > 0.0:
            self._add(task, planning)
        return planning

    def report(self, task: Task, planning: Planning) -> Planned:
        """Return what there is to tell about a plan."""
        price = planning.cost
        compared: list[tuple[float, float]] | None = None
        if self._core.settings.content.compare:
            compared = [(c.transmission, c.conversion) for c in planning.baselines()]
        return Planned(
            task.item.source,
            task.item.id,
            planning.problem.node_count,
            price.transmission,
            price.conversion,
            compared[0] if compared else None,
            compared[1] if compared else None,
        )

    def settled(self, task: Task) -> None:
        """Forget the work that the plans of an item have given to brokers."""
        task.load = {}
        self._loading.pop(task.item.identity, None)

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

    def _loaded(self, tree: DisseminationTree, growth: float) -> DisseminationTree:
        """Return a tree whose brokers are dearer by the work that this root gave them.

        What the root itself has to do, for others too, is in its own cost already.
        """
        load = dict.fromkeys(tree.names[1:], 0.0)
        for task in self._loading.values():
            for broker, work in task.load.items():
                if broker in load:
                    load[broker] += work
        dearer = np.array([1.0, *(1.0 + growth * load[name] for name in tree.names[1:])])
        return replace(tree, node_costs=tree.node_costs * dearer)

    def _add(self, task: Task, planning: Planning) -> None:
        costs = planning.problem.graph.costs
        self._loading[task.item.identity] = task
        for node in planning.part.nodes:
            work = sum(float(costs[origin, target]) for origin, target in node.made)
            if work > 0.0:
                task.load[node.broker] = task.load.get(node.broker, 0.0) + work


def _wanted(formats: Formats, registrations: Iterable[tuple[str | None, Route]]) -> tuple[int, ...]:
    """Return the formats that the devices behind some registrations get."""
    wanted: set[int] = set()
    for profile, _ in registrations:
        chosen = choice(formats, profile)
        if isinstance(chosen, int):
            wanted.add(chosen)
    return tuple(sorted(wanted))
