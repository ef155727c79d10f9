"""Plan parts: the share of a placement plan that one broker and those below it carry out.

Nodes stand in preorder with their depth, so that the part of a child is a slice of its
parent's: a broker passes it on without rewriting it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from distributary.arrays import BoolArray
from distributary.content import AdaptationGraph
from distributary.placement import NOT_MADE, PlacementProblem, Plan
from distributary.topology import DisseminationTree

__all__ = [
    "NOTHING_BEFORE",
    "RELAY",
    "After",
    "Grant",
    "Home",
    "PlanNode",
    "PlanPart",
    "Route",
    "Step",
]

Step = tuple[str, float, float]
"""A broker on a way: its name, the cost of the link to it, the cost of converting there."""

Route = tuple[Step, ...]
"""The way to a home, without the broker at which it begins."""

After = tuple[int, int, int]
"""An item of the same publisher and cell that must be done before: its series, its number, and the
first attempt that was for everybody."""

NOTHING_BEFORE: After = (0, 0, 0)
RELAY: After = (-1, 0, 0)


class Grant(NamedTuple):
    """What a registration gets of an item, as the root of its cell has decided.

    Attributes
    ----------
    format
        The format; None when there is none that the device takes and that can be made.
    reason
        Why there is none.
    """

    registration: str
    format: str | None
    reason: str = ""


class Home(NamedTuple):
    """What a home needs to know about an item besides its content.

    Attributes
    ----------
    after
        What must be done before this item, if anything. An earlier attempt of it may have
        been for some of the registrations only.
    grants
        The registrations that the item is sent for, and what each of them gets.
    """

    after: After
    grants: tuple[Grant, ...]


class PlanNode(NamedTuple):
    """What one broker does.

    Attributes
    ----------
    broker, depth
        Which one, and how far it is from the root of the tree.
    link_cost, node_cost
        Factors on its incoming link and on its conversions.
    receives
        Indices of formats. What the root holds counts as received.
    made
        (from, to): its conversions.
    after
        As in `Home`; `RELAY` when nothing is for the broker itself.
    grants
        As in `Home`: the index of a format, or why there is none.
    wait_s
        How long it is busy with other conversions, as far as whoever planned knew.
    """

    broker: str
    depth: int
    link_cost: float
    node_cost: float
    receives: tuple[int, ...]
    made: tuple[tuple[int, int], ...]
    after: After
    grants: tuple[tuple[str, int | str], ...]
    wait_s: float = 0.0

    @property
    def wants(self) -> tuple[int, ...]:
        """The formats for its own clients, in ascending order."""
        grants = self.grants
        if len(grants) <= 1:
            # As nearly always.
            return tuple([what for _, what in grants if isinstance(what, int)])
        return tuple(sorted({what for _, what in grants if isinstance(what, int)}))

    def following(self, after: After) -> PlanNode:
        """Return the same for an item before which another one must be done."""
        # `_replace` does this as well, in twice the time.
        broker, depth, link_cost, node_cost, receives, made, _, grants, wait_s = self
        return PlanNode(broker, depth, link_cost, node_cost, receives, made, after, grants, wait_s)


@dataclass(frozen=True, slots=True)
class PlanPart:
    """The share of a plan that one broker, the first node, and those below it carry out.

    It says all that is needed to carry it out, and to plan it anew: brokers whose adaptation
    graphs differ do as whoever planned has decided.

    Attributes
    ----------
    formats, sizes
        The formats that the plan may use, which nodes name by index, and how large the item
        is in each of them, in megabytes.
    conversions
        (from, to, seconds): the conversions that it may use. A part without anybody below has
        only those that it makes.
    nodes
        In preorder.
    """

    formats: tuple[str, ...]
    sizes: tuple[float, ...]
    conversions: tuple[tuple[int, int, float], ...]
    nodes: tuple[PlanNode, ...]

    @classmethod
    def of(
        cls,
        problem: PlacementProblem,
        plan: Plan,
        homes: Mapping[str, Home],
        waits_s: Mapping[str, float] | None = None,
    ) -> PlanPart:
        """Return a whole plan.

        Parameters
        ----------
        problem, plan
            What was planned, and how.
        homes
            The brokers that get something for their own clients.
        waits_s
            By broker, how long it is busy with other conversions.
        """
        tree = problem.tree
        waits_s = waits_s or {}
        graph = problem.graph
        places = {name: k for k, name in enumerate(graph.names)}
        link_costs, node_costs = tree.link_costs.tolist(), tree.node_costs.tolist()
        receives = _columns(plan.receives)
        receives[0] = tuple(np.flatnonzero(problem.held).tolist())
        made: list[list[tuple[int, int]]] = [[] for _ in tree.names]
        for v, k in np.argwhere(plan.made_from != NOT_MADE).tolist():
            made[v].append((int(plan.made_from[v, k]), k))
        children: list[list[int]] = [[] for _ in tree.names]
        for v, parent in enumerate(tree.parents.tolist()):
            if parent >= 0:
                children[parent].append(v)
        nodes: list[PlanNode] = []
        stack = [(0, 0)]
        while stack:
            v, depth = stack.pop()
            home = homes.get(tree.names[v])
            nodes.append(
                PlanNode(
                    tree.names[v],
                    depth,
                    link_costs[v],
                    node_costs[v],
                    receives[v],
                    tuple(made[v]),
                    RELAY if home is None else home.after,
                    () if home is None else _indexed(home.grants, places),
                    waits_s.get(tree.names[v], 0.0),
                )
            )
            stack.extend((child, depth + 1) for child in reversed(children[v]))
        conversions = tuple(
            (origin, target, float(graph.costs[origin, target]))
            for origin, target in np.argwhere(np.isfinite(graph.costs)).tolist()
        )
        sizes = tuple(float(size) for size in graph.sizes)
        return cls(graph.names, sizes, conversions, tuple(nodes))

    @property
    def first(self) -> PlanNode:
        """What the broker does that carries this part out."""
        return self.nodes[0]

    @property
    def height(self) -> int:
        """How many brokers one after the other carry it out, at most."""
        nodes = self.nodes
        if len(nodes) == 1:
            return 1
        return 1 + max([node.depth for node in nodes]) - nodes[0].depth

    def children(self) -> list[PlanPart]:
        """Return the parts of the first node's children."""
        nodes = self.nodes
        below = nodes[0].depth + 1
        starts = [v for v, node in enumerate(nodes) if node.depth == below]
        cuts = [*starts, len(nodes)]
        return [self._of_nodes(nodes[start:end]) for start, end in pairwise(cuts)]

    def _of_nodes(self, nodes: tuple[PlanNode, ...]) -> PlanPart:
        conversions = self.conversions
        if conversions and len(nodes) == 1:
            made = set(nodes[0].made)
            conversions = tuple(one for one in conversions if one[:2] in made)
        return PlanPart(self.formats, self.sizes, conversions, nodes)

    def following(self, after: Mapping[str, After]) -> PlanPart:
        """Return the same for an item before which, by home, other items must be done."""
        following = tuple(
            [
                node
                if node.after == RELAY or node.after == after[node.broker]
                else node.following(after[node.broker])
                for node in self.nodes
            ]
        )
        return PlanPart(self.formats, self.sizes, self.conversions, following)

    def home_names(self) -> list[str]:
        """Return the names of the brokers that get something for their own clients."""
        return [node.broker for node in self.nodes if node.after != RELAY]

    def homes(self) -> dict[str, Home]:
        """Return the brokers of this part that get something for their own clients."""
        return {
            node.broker: Home(node.after, self.grants_of(node))
            for node in self.nodes
            if node.after != RELAY
        }

    def grants_of(self, node: PlanNode) -> tuple[Grant, ...]:
        """Return what the registrations of a node get, by the names of formats."""
        return tuple(
            Grant(registration, None, what)
            if isinstance(what, str)
            else Grant(registration, self.formats[what])
            for registration, what in node.grants
        )

    @property
    def graph(self) -> AdaptationGraph:
        """What the plan may use, as an adaptation graph."""
        return _graph(self.formats, self.sizes, self.conversions)

    def routes(self) -> dict[str, Route]:
        """Return the way from the first node to every home, the first node itself left out."""
        top = self.nodes[0].depth
        way: list[Step] = []
        routes: dict[str, Route] = {}
        for node in self.nodes:
            del way[max(0, node.depth - top - 1) :]
            if node.depth > top:
                way.append((node.broker, node.link_cost, node.node_cost))
            if node.after != RELAY:
                routes[node.broker] = tuple(way)
        return routes

    def as_data(self) -> list[dict[str, Any]]:
        """Return the nodes as plain data: who gets which formats from whom, and makes which."""
        names = self.formats
        above: list[str] = []
        found = []
        for node in self.nodes:
            del above[node.depth - self.nodes[0].depth :]
            found.append(
                {
                    "broker": node.broker,
                    "parent": above[-1] if above else None,
                    "link_cost": node.link_cost,
                    "node_cost": node.node_cost,
                    "receives": [names[k] for k in node.receives],
                    "converts": [[names[a], names[b]] for a, b in node.made],
                    "delivers": [names[k] for k in node.wants],
                    "subscriptions": [grant._asdict() for grant in self.grants_of(node)],
                }
            )
            above.append(node.broker)
        return found

    def problem(self, *, alpha: float = 1.0, beta: float = 1.0) -> PlacementProblem:
        """Return what this part solves: its first node holds what it receives.

        Parameters
        ----------
        alpha, beta
            What a unit of transmission and a unit of conversion are worth.
        """
        nodes = self.nodes
        top = nodes[0].depth
        last_at: dict[int, int] = {}
        parents = np.empty(len(nodes), dtype=np.int64)
        wants = np.zeros((len(nodes), len(self.formats)), dtype=np.bool_)
        for v, node in enumerate(nodes):
            parents[v] = last_at[node.depth - 1] if node.depth > top else -1
            last_at[node.depth] = v
            wants[v, list(node.wants)] = True
        held = np.zeros(len(self.formats), dtype=np.bool_)
        held[list(nodes[0].receives)] = True
        link_costs = np.array([node.link_cost for node in nodes])
        with np.errstate(divide="ignore"):
            bandwidths = 1.0 / link_costs
        tree = DisseminationTree(
            tuple(node.broker for node in nodes),
            parents,
            link_costs,
            np.array([node.node_cost for node in nodes]),
            bandwidths,
        )
        return PlacementProblem(self.graph, tree, wants, held, alpha, beta)

    def plan(self) -> Plan:
        """Return what is done, for `problem`."""
        shape = (len(self.nodes), len(self.formats))
        receives = np.zeros(shape, dtype=np.bool_)
        made_from = np.full(shape, NOT_MADE, dtype=np.int64)
        for v, node in enumerate(self.nodes):
            if v > 0:
                receives[v, list(node.receives)] = True
            for origin, target in node.made:
                made_from[v, target] = origin
        return Plan(receives, made_from)


def _indexed(
    grants: tuple[Grant, ...], places: Mapping[str, int]
) -> tuple[tuple[str, int | str], ...]:
    return tuple(
        (name, reason if format_ is None else places[format_]) for name, format_, reason in grants
    )


@lru_cache(maxsize=1024)
def _graph(
    formats: tuple[str, ...],
    sizes: tuple[float, ...],
    conversions: tuple[tuple[int, int, float], ...],
) -> AdaptationGraph:
    costs = np.full((len(formats), len(formats)), np.inf)
    for origin, target, seconds in conversions:
        costs[origin, target] = seconds
    return AdaptationGraph(formats, np.array(sizes, dtype=np.float64), costs)


def _columns(rows: BoolArray) -> list[tuple[int, ...]]:
    """Return the indices that are set in each row."""
    found: list[list[int]] = [[] for _ in range(len(rows))]
    for v, k in np.argwhere(rows).tolist():
        found[v].append(k)
    return [tuple(columns) for columns in found]
