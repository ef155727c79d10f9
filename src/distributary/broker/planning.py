"""Planning: a tree and what its brokers want, made into a plan part.

A root plans the whole tree of an item, a relay that finds other ways its own share of it.
Many of these problems are the same up to the names of brokers, and are solved once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from distributary.arrays import BoolArray
from distributary.broker.formats import Formats, useful
from distributary.broker.plan_part import Home, PlanPart
from distributary.broker.settings import ContentSettings
from distributary.content import AdaptationGraph
from distributary.placement import Cost, PlacementProblem, Plan, cost, place
from distributary.placement.baselines import all_in_leaves, all_in_root
from distributary.topology import DisseminationTree

__all__ = ["Planning", "longest_work", "plan_tree"]


@dataclass(frozen=True, eq=False)
class Planning:
    """A plan with what it is for.

    Attributes
    ----------
    problem, plan
        What was planned, and how.
    part
        The same as brokers carry it out.
    """

    problem: PlacementProblem
    plan: Plan
    part: PlanPart

    @property
    def cost(self) -> Cost:
        """What the plan costs."""
        return cost(self.problem, self.plan)

    def work_s(self) -> dict[str, float]:
        """Return how long conversions take each broker that has any.

        In seconds, as far as the adaptation graph is calibrated in them. The tree says how
        long a broker takes for what takes a second elsewhere.
        """
        tree = self.problem.tree
        speeds = dict(zip(tree.names, tree.node_costs.tolist(), strict=True))
        costs = self.problem.graph.costs
        return {
            node.broker: speeds[node.broker] * sum(float(costs[made]) for made in node.made)
            for node in self.part.nodes
            if node.made
        }

    def baselines(self) -> tuple[Cost, Cost]:
        """Return what converting everything at the root costs, and at the leaves."""
        problem = self.problem
        return cost(problem, all_in_root(problem)), cost(problem, all_in_leaves(problem))


class _Shape(NamedTuple):
    """A placement problem without the names of brokers."""

    formats: Formats
    held: tuple[int, ...]
    wants: tuple[tuple[int, ...], ...]
    parents: bytes
    link_costs: bytes
    node_costs: bytes
    method: str
    alpha: float
    beta: float


def plan_tree(
    formats: Formats,
    tree: DisseminationTree,
    *,
    held: tuple[int, ...],
    wants: Mapping[str, tuple[int, ...]],
    homes: Mapping[str, Home],
    settings: ContentSettings,
) -> Planning:
    """Return the plan for a tree.

    Parameters
    ----------
    formats
        Of the item.
    tree
        The brokers that it passes.
    held
        The formats in hand at the root of the tree, in ascending order.
    wants
        By broker, the formats that it wants for its clients.
    homes
        The brokers that get something, perhaps nothing but the event.
    settings
        How to plan.
    """
    shape = _Shape(
        formats,
        held,
        tuple(wants.get(name, ()) for name in tree.names),
        tree.parents.tobytes(),
        tree.link_costs.tobytes(),
        tree.node_costs.tobytes(),
        settings.method,
        settings.alpha,
        settings.beta,
    )
    graph, wanted, in_hand, plan = _solved(shape)
    problem = PlacementProblem(graph, tree, wanted, in_hand, settings.alpha, settings.beta)
    return Planning(problem, plan, PlanPart.of(problem, plan, homes))


def longest_work(planning: Planning, before_s: Mapping[str, float] | None = None) -> float:
    """Return how long conversions take, one after the other, on the way to any one broker.

    In seconds, as `Planning.work_s`.

    Parameters
    ----------
    planning
        The plan.
    before_s
        By broker, what it has to do before.
    """
    before_s = before_s or {}
    work_s = planning.work_s()
    longest = 0.0
    way: list[float] = []
    for node in planning.part.nodes:
        del way[node.depth :]
        own = 0.0
        if node.made:
            own = before_s.get(node.broker, 0.0) + work_s[node.broker]
        way.append(own + (way[-1] if way else 0.0))
        longest = max(longest, way[-1])
    return longest


@lru_cache(maxsize=1024)
def _solved(shape: _Shape) -> tuple[AdaptationGraph, BoolArray, BoolArray, Plan]:
    """Return the formats that can help, who wants which, which are in hand, and the plan."""
    wanted = tuple(sorted({k for wants in shape.wants for k in wants}))
    graph, kept = useful(shape.formats, shape.held, wanted)
    place_of = {k: at for at, k in enumerate(kept)}
    parents = np.frombuffer(shape.parents, dtype=np.int64).copy()
    link_costs = np.frombuffer(shape.link_costs).copy()
    with np.errstate(divide="ignore"):
        bandwidths = 1.0 / link_costs
    tree = DisseminationTree(
        tuple(str(v) for v in range(len(parents))),
        parents,
        link_costs,
        np.frombuffer(shape.node_costs).copy(),
        bandwidths,
    )
    wants = np.zeros((len(parents), len(kept)), dtype=np.bool_)
    for v, formats in enumerate(shape.wants):
        wants[v, [place_of[k] for k in formats]] = True
    held = np.zeros(len(kept), dtype=np.bool_)
    held[[place_of[k] for k in shape.held]] = True
    problem = PlacementProblem(graph, tree, wants, held, shape.alpha, shape.beta)
    return graph, wants, held, place(problem, method=shape.method).plan
