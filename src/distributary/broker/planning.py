"""Planning: a tree and what its brokers want, made into a plan part.

A root plans the whole tree of an item, a relay that finds other ways its own share of it.
Many of these problems are the same up to the names of brokers, and are solved once.

Trees for content: the union of ways to homes, estimated or discovered.

A registration tells the way from its home to the root; the way back is estimated to be the
same in reverse. A probe tells the way from the root. Either way, brokers need not have agreed
on who is there while these ways were found, so that their union need not be a tree: the first
way to a broker counts.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from distributary.arrays import BoolArray, FloatArray
from distributary.broker.addresses import Blob
from distributary.broker.encoding import cached_by_text
from distributary.broker.links import messages as messages
from distributary.broker.plan_part import Home, PlanPart, Route, Step
from distributary.broker.settings import ContentSettings, Settings, graph_of
from distributary.content import AdaptationGraph, DeviceProfile, Publication, parse_event
from distributary.content.documents import parse_document
from distributary.content.format_choice import (
    NoFormat,
    choices,
    choose_format,
    format_index,
    with_format,
)
from distributary.content.publication import delivered
from distributary.errors import BadInput
from distributary.placement import PlacementProblem, Plan, place
from distributary.placement.baselines import BASELINES
from distributary.placement.conversions import ConversionPlanner
from distributary.placement.objective import Conditions, Objective, least, objective
from distributary.placement.useful import useful_formats
from distributary.topology import DisseminationTree, TreeNode

if TYPE_CHECKING:
    from distributary.broker.dissemination.messages import Item

__all__ = [
    "PLANNED",
    "PUBLICATION_BYTES_MAX",
    "UNDER_LOAD",
    "Formats",
    "Planning",
    "PlanningProblem",
    "along_hop",
    "around",
    "choice",
    "conditions_of",
    "delivered_event",
    "formats_in",
    "formats_of",
    "inline_blob",
    "longest_work",
    "plan_tree",
    "profile_of",
    "publication_of",
    "reversed_route",
    "tree_along",
]


# The formats of an item: what it can be made into, and what a device gets of it.
#
# The root of a cell decides that, by its adaptation graph. Everybody else finds in the plan what
# it has decided. What follows from the same texts is worked out once in a process.


PUBLICATION_BYTES_MAX = 256 * 2**10
"""How large a published event may be, so that it fits into every message about it."""

_BYTES_PER_MEGABYTE = 1e6
_ALONE = DisseminationTree.from_nodes([TreeNode("", None)])


@dataclass(frozen=True, eq=False)
class Formats:
    """What an item can be made into.

    Attributes
    ----------
    graph
        The formats; a single one where the adaptation graph has none of the item's type.
    whole
        The same with formats that turned out not to be makeable: what a device gets next
        depends on what it would have got.
    held
        The index of the item's own.
    universal
        Whether everybody takes the item as it is: an event without any content.
    """

    graph: AdaptationGraph
    whole: AdaptationGraph
    held: int
    universal: bool

    @cached_property
    def places(self) -> dict[str, int]:
        """The index of every format by name."""
        return {name: k for k, name in enumerate(self.graph.names)}

    @property
    def own(self) -> str:
        """The name of the item's own format."""
        return self.graph.names[self.held]


def formats_of(
    settings: Settings, item: Item, lost: tuple[str, ...] = (), *, size_bytes: int | None = None
) -> Formats:
    """Return the formats of an item.

    Parameters
    ----------
    settings
        With the adaptation graph.
    lost
        Formats that turned out not to be makeable, in ascending order.
    size_bytes
        As if its content were of this size; of the size that it is, unless given.
    """
    size_bytes = item.size_bytes if size_bytes is None else size_bytes
    return _formats(settings.graph, item.media_type, size_bytes, item.inline, lost)


def formats_in(part: PlanPart) -> Formats:
    """Return the formats that a plan may use; any of them may be the item's own."""
    return _planned(part.formats, part.sizes, part.conversions)


def choice(formats: Formats, profile: str | None) -> int | NoFormat:
    """Return the index of the format that a device gets, or why there is none.

    Parameters
    ----------
    formats
        What there is.
    profile
        JSON of the device's profile; without one it gets the original.
    """
    if profile is None or formats.universal:
        return formats.held
    return _choice(formats, profile)


@lru_cache(maxsize=4096)
def useful(
    formats: Formats, held: tuple[int, ...], wanted: tuple[int, ...]
) -> tuple[AdaptationGraph, tuple[int, ...]]:
    """Return the graph of those formats that can help, and their indices.

    Parameters
    ----------
    formats
        All there are.
    held, wanted
        What is in hand and what is to be made, in ascending order.
    """
    graph = formats.graph
    problem = PlacementProblem(
        graph,
        _ALONE,
        _flags(wanted, graph.format_count)[None, :],
        _flags(held, graph.format_count),
    )
    kept = useful_formats(problem)[0] | problem.held
    indices = tuple(np.flatnonzero(kept).tolist())
    return graph.restricted_to(indices), indices


@cached_by_text(8192)
def publication_of(event: str) -> Publication:
    """Return the event in a text.

    Raises
    ------
    BadInput
        When there is none in it.
    """
    # Characters are counted first: encoding what is far too long would be work for nothing.
    if len(event) > PUBLICATION_BYTES_MAX or (
        not event.isascii() and len(event.encode("utf-8", "surrogatepass")) > PUBLICATION_BYTES_MAX
    ):
        raise BadInput(
            "event",
            f"is larger than {PUBLICATION_BYTES_MAX:,} bytes",
            hint="publish larger data as content beside the event",
        )
    return parse_event(event)


@cached_by_text(4096)
def profile_of(text: str) -> DeviceProfile:
    """Return the device profile in a text.

    Raises
    ------
    BadInput
        When there is none in it.
    """
    return DeviceProfile.parse(parse_document(text))


@cached_by_text(8192)
def delivered_event(event: str, media_type: str) -> str:
    """Return an event as it is delivered beside content that was converted."""
    converted = delivered(publication_of(event), media_type, None)
    return json.dumps(converted.document(), ensure_ascii=False, separators=(",", ":"))


@cached_by_text(256)
def inline_blob(event: str, media_type: str) -> tuple[Blob, bytes]:
    """Return what refers to the content that is in an event, and that itself."""
    data = publication_of(event).content
    return Blob.of(media_type, data), data


@lru_cache(maxsize=4096)
def _formats(
    text: str, media_type: str, size_bytes: int, inline: bool, lost: tuple[str, ...]
) -> Formats:
    graph = graph_of(text, size_bytes)
    held, guessed = format_index(graph, media_type), False
    if held is None:
        size = size_bytes / _BYTES_PER_MEGABYTE
        found = with_format(graph, media_type, size)
        if found is None:
            alone = AdaptationGraph((media_type,), np.array([size]), np.full((1, 1), np.inf))
            return Formats(alone, alone, 0, universal=inline and size_bytes == 0)
        graph, held = found
        guessed = True
    if not lost:
        return Formats(graph, graph, held, universal=False)
    kept = [k for k, name in enumerate(graph.names) if name not in lost or k == held]
    left = graph.restricted_to(kept)
    # A picture of which nobody knew how large it is may be too small for one format of a type,
    # and not for the next one of the same type.
    return Formats(left, left if guessed else graph, kept.index(held), universal=False)


@lru_cache(maxsize=1024)
def _planned(
    names: tuple[str, ...],
    sizes: tuple[float, ...],
    conversions: tuple[tuple[int, int, float], ...],
) -> Formats:
    graph = PlanPart(names, sizes, conversions, ()).graph
    return Formats(graph, graph, 0, universal=False)


@lru_cache(maxsize=16_384)
def _choice(formats: Formats, profile: str) -> int | NoFormat:
    device = profile_of(profile)
    for wish in choices(device, formats.whole, formats.own):
        place = formats.held if wish.index is None else formats.places.get(wish.name)
        if place is not None and formats.graph.makeable[formats.held, place]:
            return place
    nothing = choose_format(device, formats.graph, formats.own)
    return nothing if isinstance(nothing, NoFormat) else NoFormat("no entry is left to try")


def _flags(indices: tuple[int, ...], count: int) -> BoolArray:
    flags = np.zeros(count, dtype=np.bool_)
    flags[list(indices)] = True
    return flags


_MEGABITS_PER_MEGABYTE = 8.0


PLANNED, UNDER_LOAD = "planned", "planned under load"


@dataclass(frozen=True, eq=False)
class Planning:
    """A plan with what it is for.

    Attributes
    ----------
    problem, plan
        What was planned, and how.
    part
        The same as brokers carry it out.
    chosen
        The name of the plan: a method's if that is a simple one, `PLANNED` or `UNDER_LOAD`.
    compared
        What each plan would come to that was to be had, by name.
    """

    problem: PlacementProblem
    plan: Plan
    part: PlanPart
    chosen: str
    compared: Mapping[str, Objective]

    @property
    def objective(self) -> Objective:
        """What the plan comes to."""
        return self.compared[self.chosen]

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


@dataclass(frozen=True, eq=False)
class PlanningProblem:
    """All that a plan follows from, so that a host can have it made beside the broker.

    Attributes
    ----------
    formats, tree, held, homes, waits_s, settings
        As in `plan_tree`.
    """

    formats: Formats
    tree: DisseminationTree
    held: tuple[int, ...]
    homes: Mapping[str, Home]
    waits_s: Mapping[str, float]
    settings: ContentSettings

    @property
    def size(self) -> int:
        """How many brokers it is about, times how many formats."""
        return len(self.tree.names) * len(self.formats.graph.names)

    def solve(self) -> Planning:
        """Return the plan; in any thread."""
        return plan_tree(
            self.formats,
            self.tree,
            held=self.held,
            homes=self.homes,
            waits_s=self.waits_s,
            settings=self.settings,
        )


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
    homes: Mapping[str, Home],
    waits_s: Mapping[str, float],
    settings: ContentSettings,
) -> Planning:
    """Return the plan for a tree that has the least objective, of those that are to be had.

    These are the plan of the method, the same with brokers as much dearer as they are busy,
    and the three simple plans: so no broker is ever worse off, by its own prediction, than
    without a planner. Where the method is a simple one, its plan is taken as it is.

    Parameters
    ----------
    formats
        Of the item.
    tree
        The brokers that it passes.
    held
        The formats in hand at the root of the tree, in ascending order.
    homes
        The brokers that get something, perhaps nothing but the event.
    waits_s
        By broker, how long it is busy with other conversions, as far as that is known.
    """
    shape = _Shape(
        formats,
        held,
        tuple(_wanted(formats, homes.get(name)) for name in tree.names),
        tree.parents.tobytes(),
        tree.link_costs.tobytes(),
        tree.node_costs.tobytes(),
        settings.method,
        settings.alpha,
        settings.beta,
    )
    waits = np.array([waits_s.get(name, 0.0) for name in tree.names])
    alike, plans = _candidates(shape)
    problem = replace(alike, tree=tree)
    # Without a conversion to place all plans are the same.
    if PLANNED in plans and settings.load_growth > 0.0 and waits.any() and alike.format_count > 1:
        node_costs = tree.node_costs * (1.0 + settings.load_growth * waits)
        loaded = replace(problem, tree=replace(tree, node_costs=node_costs))
        plans = {**plans, UNDER_LOAD: place(loaded, method=settings.method).plan}
    deliveries = [len(homes[name].grants) if name in homes else 0 for name in tree.names]
    conditions = conditions_of(waits, deliveries, settings)
    if alike.format_count == 1 and PLANNED in plans and not settings.compare:
        plans = {PLANNED: plans[PLANNED]}
    compared = {name: objective(problem, plan, conditions) for name, plan in plans.items()}
    chosen = settings.method if settings.method in BASELINES else least(compared)
    part = PlanPart.of(problem, plans[chosen], homes, waits_s)
    return Planning(problem, plans[chosen], part, chosen, compared)


def conditions_of(
    waits_s: Sequence[float] | FloatArray, deliveries: Sequence[int], settings: ContentSettings
) -> Conditions:
    """Return what a plan meets when it is carried out.

    Parameters
    ----------
    waits_s, deliveries
        By broker, how long it is busy with other conversions, and how many deliveries it makes.
    """
    return Conditions(
        np.asarray(waits_s, dtype=np.float64),
        np.array(deliveries, dtype=np.float64),
        _MEGABITS_PER_MEGABYTE / settings.link_mbps if settings.link_mbps > 0.0 else 0.0,
        settings.delay_weight,
    )


def _wanted(formats: Formats, home: Home | None) -> tuple[int, ...]:
    """Return the formats that the devices behind a home's registrations get, in order."""
    if home is None:
        return ()
    granted = {grant.format for grant in home.grants if grant.format is not None}
    return tuple(sorted(formats.places[name] for name in granted))


def longest_work(planning: Planning, before_s: Mapping[str, float] | None = None) -> float:
    """Return how long conversions take, one after the other, on the way to any one broker.

    In seconds, as `Planning.work_s`.

    Parameters
    ----------
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
def _conversion_planner(graph: AdaptationGraph) -> ConversionPlanner:
    """Return what finds conversions in a graph, of which there are few: `useful` has them all."""
    return ConversionPlanner(graph.costs)


@lru_cache(maxsize=8192)
def _candidates(shape: _Shape) -> tuple[PlacementProblem, Mapping[str, Plan]]:
    """Return a problem without names, and the plans for it that do not depend on load."""
    problem = _problem(shape)
    conversion_planner = _conversion_planner(problem.graph)
    simple = {name: made(problem, conversion_planner) for name, made in BASELINES.items()}
    if shape.method in BASELINES:
        return problem, simple
    return problem, {PLANNED: place(problem, method=shape.method).plan, **simple}


def _problem(shape: _Shape) -> PlacementProblem:
    """Return a problem with the formats that can help and without names."""
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
    return PlacementProblem(graph, tree, wants, held, shape.alpha, shape.beta)


def reversed_route(path: Sequence[messages.Step]) -> Route:
    """Return the way from a root to a home, as a registration's path has it.

    Parameters
    ----------
    path
        The brokers that the registration passed, from the home to the root, each with the
        cost of the link on which it came.
    """
    return tuple(
        (path[at].broker, path[at + 1].link_cost, path[at].node_cost)
        for at in range(len(path) - 2, -1, -1)
    )


def around(route: Route, dead: Container[str]) -> Route:
    """Return a way that leaves out some brokers on it, as if their links were one."""
    found: list[Step] = []
    skipped = 0.0
    for broker, link_cost, node_cost in route:
        if broker in dead:
            skipped = max(skipped, link_cost)
        else:
            found.append((broker, max(skipped, link_cost), node_cost))
            skipped = 0.0
    return tuple(found)


def along_hop(route: Route, step: Step) -> Route:
    """Return a way that begins with another step, after which nothing but its end is known."""
    home = route[-1]
    return (step,) if step[0] == home[0] else (step, home)


def tree_along(root: str, root_cost: float, routes: Mapping[str, Route]) -> DisseminationTree:
    """Return the union of ways as a tree.

    Parameters
    ----------
    root, root_cost
        Where all ways begin, and the cost of converting there.
    routes
        The way to each home; those whose homes come first in order count first.
    """
    nodes = {root: TreeNode(root, None, 1.0, root_cost)}
    for home in sorted(routes):
        above = root
        for broker, link_cost, node_cost in routes[home]:
            if broker not in nodes:
                nodes[broker] = TreeNode(broker, above, link_cost, node_cost)
            above = broker
    return DisseminationTree.from_nodes(nodes.values())
