"""Random disseminations: a tree through an overlay, who wants what, and what links cost.

The setting is that of CCD (section 6) and its supplement (section E): a rendezvous broker, a
share of the brokers that match, and the union of the routes from the one to the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from distributary.arguments import check_choice, check_within
from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.content import AdaptationGraph
from distributary.errors import BadInput, quoted
from distributary.placement.problem import PlacementProblem
from distributary.topology import DisseminationTree, Overlay, TreeNode
from distributary.topology.quickest_tree import quickest_parents
from distributary.topology.sites import Sites

__all__ = [
    "BANDWIDTH_BASELINE",
    "HETEROGENEITIES",
    "TREES",
    "dissemination_problem",
    "factors",
    "network_tree",
]

HETEROGENEITIES = ("none", "weak", "strong")
TREES = ("routes", "recursive")

# An overlay keeps the delay of every pair of brokers: half a gigabyte for this many.
_OVERLAY_BROKERS_MAX = 8_192
_RECURSIVE_BROKERS_MAX = 100_000

# Paper 001, section E.2.
BANDWIDTH_BASELINE = 10.0
"""The bandwidth in Mbit/s of a link that costs 1."""
_FAST_SHARE = 0.6
_BANDWIDTH_MAX = 100.0
# The paper's slow links go down to 0, where the cost 10 / x has no bound. Ours stop here,
# at a cost of 100, which is also the most that the paper's strong model gives a link.
_BANDWIDTH_MIN = 0.1

# Percent of a processor; 100 costs 1.
_AVAILABILITY_MIN = 80.0
_AVAILABILITY_MAX = 100.0

_STRONG_FACTOR_MIN = 1.0
_STRONG_FACTOR_MAX = 100.0


def dissemination_problem(
    graph: AdaptationGraph,
    *,
    source: str,
    rng: np.random.Generator,
    brokers: int = 1024,
    matching: float = 0.5,
    wants: int | None = None,
    wants_min: int = 1,
    popular: int | None = None,
    heterogeneity: str = "none",
    tree: str = "routes",
    alpha: float = 1.0,
    beta: float = 1.0,
    sites: Sites | None = None,
    at: Sequence[str] = (),
) -> PlacementProblem:
    """Return the problem of one publication in a random overlay, or in a network.

    Tree, wishes and costs are drawn from separate streams. Problems from equal seeds that
    differ in heterogeneity therefore share tree and wishes, and with a larger matching
    ratio the brokers that matched before still match and want the same.

    Parameters
    ----------
    source
        The format of the publication, held at the rendezvous broker.
    brokers
        Brokers in the overlay (``routes``), or in the tree itself (``recursive``, or `sites`).
    matching
        The share of brokers that want something, above 0 and up to 1; at least one does.
        The rendezvous broker may be among them. All others are pure relays.
    wants, wants_min
        The most formats that one matching broker wants, by default a quarter of all, and
        the fewest. How many is uniform between them, which ones is uniform among all.
    popular
        Draw wishes only from this many formats, chosen at random; never the source.
    heterogeneity
        ``none``: every link and processor costs 1. ``weak``: six in ten links have 10 to
        100 Mbit/s and the others 0.1 to 10, and x Mbit/s cost 10 / x; processors are
        80 to 100 percent available, and x percent cost 100 / x. ``strong``: links and
        processors cost 1 to 100. All uniform.
    tree
        ``routes``: the union of the routes to the matching brokers in an overlay with
        prefix routing, shallow and broad; with a matching ratio of 1 it has all brokers.
        ``recursive``: every broker is put below a random earlier one, which is deeper.
        Here all leaves match, as they do in a union of routes, so that the share that
        matches is never less than theirs, about a half.
    alpha, beta
        What a unit of transmission and a unit of conversion are worth.
    sites
        Where brokers can stand. The tree is then that of the quickest ways from the rendezvous
        broker, see `quickest_parents`, and the factors of its links are in proportion to their
        delays, with mean 1, times those of `heterogeneity`.
    at
        At which of the sites, by name; the first is the rendezvous broker.
    """
    check_choice("heterogeneity", heterogeneity, HETEROGENEITIES)
    check_choice("tree", tree, TREES)
    brokers_max = _OVERLAY_BROKERS_MAX if tree == "routes" else _RECURSIVE_BROKERS_MAX
    check_within("brokers", brokers, 1, brokers_max)
    if not 0.0 < matching <= 1.0:
        raise BadInput("matching", f"is {matching:g}, and must be above 0 and at most 1")
    for option, weight in (("alpha", alpha), ("beta", beta)):
        if not (math.isfinite(weight) and weight >= 0.0):
            raise BadInput(option, f"is {weight:g}, and must be finite and not negative")
    if source not in graph.names:
        raise BadInput("source", f"{quoted(source)} is not a format")
    held = np.array([name == source for name in graph.names], dtype=np.bool_)
    tree_rng, wish_rng, cost_rng = rng.spawn(3)

    choices = np.arange(graph.format_count)
    if popular is not None:
        check_within("popular", popular, 1, graph.format_count - 1)
        choices = np.sort(wish_rng.choice(choices[~held], popular, replace=False))
    if wants is None:
        wants = min(max(1, graph.format_count // 4), len(choices))
    check_within("wants", wants, 1, len(choices))
    check_within("wants_min", wants_min, 1, wants)

    lengths: dict[str, float] = {}
    if sites is not None:
        chosen = sites.chosen(brokers, at, tree_rng, noun="brokers")
        parents, lengths = network_tree(sites, chosen)
        shuffled = chosen[tree_rng.permutation(len(chosen))]
        matched = [sites.names[v] for v in shuffled[: _matching_count(len(chosen), matching)]]
    else:
        grow = _routes_tree if tree == "routes" else _recursive_tree
        parents, matched = grow(brokers, matching, tree_rng)
    shape = _with_costs(parents, lengths, heterogeneity, cost_rng)
    wishes: dict[str, IntArray] = {}
    for broker in matched:
        count = wish_rng.integers(wants_min, wants + 1)
        wishes[broker] = wish_rng.choice(choices, count, replace=False)
    return PlacementProblem(
        graph, shape, _wants_array(shape, wishes, graph.format_count), held, alpha, beta
    )


def network_tree(sites: Sites, chosen: IntArray) -> tuple[dict[str, str | None], dict[str, float]]:
    """Return the parents of brokers at some sites, the first of them the root, by name.

    And the factors of their links, in proportion to delays, with mean 1. Which of two ways is taken
    that are equally quick depends on the network, not on the order of the others.
    """
    chosen = np.concatenate([chosen[:1], np.sort(chosen[1:])])
    delays = sites.delays_between(chosen)
    above = quickest_parents(delays, root=0)
    below = np.flatnonzero(above >= 0)
    lengths = delays[above[below], below]
    mean = float(lengths.mean()) if len(lengths) else 0.0
    factors = lengths / mean if mean > 0.0 else np.ones(len(lengths))
    names = [sites.names[v] for v in chosen.tolist()]
    parents = {
        name: None if parent < 0 else names[parent]
        for name, parent in zip(names, above.tolist(), strict=True)
    }
    return parents, {
        names[v]: factor for v, factor in zip(below.tolist(), factors.tolist(), strict=True)
    }


def _routes_tree(
    broker_count: int, matching: float, rng: np.random.Generator
) -> tuple[dict[str, str | None], list[str]]:
    """Return the parents in a union of routes, and the brokers that match."""
    overlay = Overlay.in_unit_square(broker_count, rng)
    rendezvous = overlay.identifiers[rng.integers(broker_count)]
    count = _matching_count(broker_count, matching)
    matched = [overlay.identifiers[v] for v in rng.permutation(broker_count)[:count]]
    return overlay.tables.tree_of(rendezvous, matched), matched


def _recursive_tree(
    broker_count: int, matching: float, rng: np.random.Generator
) -> tuple[dict[str, str | None], list[str]]:
    """Return the parents in a random recursive tree, and the brokers that match."""
    width = len(str(broker_count - 1))
    names = [f"b{v:0{width}}" for v in range(broker_count)]
    above = rng.integers(0, np.arange(1, broker_count))
    parents: dict[str, str | None] = {names[0]: None}
    parents.update((names[v], names[above[v - 1]]) for v in range(1, broker_count))
    is_leaf = np.ones(broker_count, dtype=np.bool_)
    is_leaf[above] = False
    # Leaves first, then the others, each in random order.
    order = rng.permutation(broker_count)
    order = order[np.argsort(~is_leaf[order], kind="stable")]
    count = max(_matching_count(broker_count, matching), int(is_leaf.sum()))
    return parents, [names[v] for v in order[:count]]


def _matching_count(broker_count: int, matching: float) -> int:
    return max(1, round(matching * broker_count))


def _with_costs(
    parents: dict[str, str | None],
    lengths: dict[str, float],
    heterogeneity: str,
    rng: np.random.Generator,
) -> DisseminationTree:
    """Return the tree with a factor for every link and processor; longer links cost more."""
    root_first = sorted(parents.items(), key=lambda item: item[1] is not None)
    link_costs, node_costs = factors(len(parents), heterogeneity, rng)
    return DisseminationTree.from_nodes(
        TreeNode(broker, parent, link_cost * lengths.get(broker, 1.0), node_cost)
        for (broker, parent), link_cost, node_cost in zip(
            root_first, link_costs.tolist(), node_costs.tolist(), strict=True
        )
    )


def factors(
    node_count: int, heterogeneity: str, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return factors for links and processors, shape (nodes,) each, the root first."""
    link_count = node_count - 1
    links, nodes = np.ones(link_count), np.ones(node_count)
    if heterogeneity == "weak":
        is_fast = rng.permutation(link_count) < round(_FAST_SHARE * link_count)
        bandwidths = np.where(
            is_fast,
            rng.uniform(BANDWIDTH_BASELINE, _BANDWIDTH_MAX, size=link_count),
            rng.uniform(_BANDWIDTH_MIN, BANDWIDTH_BASELINE, size=link_count),
        )
        links = BANDWIDTH_BASELINE / bandwidths
        nodes = _AVAILABILITY_MAX / rng.uniform(
            _AVAILABILITY_MIN, _AVAILABILITY_MAX, size=node_count
        )
    elif heterogeneity == "strong":
        links = rng.uniform(_STRONG_FACTOR_MIN, _STRONG_FACTOR_MAX, size=link_count)
        nodes = rng.uniform(_STRONG_FACTOR_MIN, _STRONG_FACTOR_MAX, size=node_count)
    # Nothing travels to the root.
    return np.concatenate([[1.0], links]), nodes


def _wants_array(
    tree: DisseminationTree, wishes: dict[str, IntArray], format_count: int
) -> BoolArray:
    wants = np.zeros((tree.node_count, format_count), dtype=np.bool_)
    for v, broker in enumerate(tree.names):
        if broker in wishes:
            wants[v, wishes[broker]] = True
    return wants
