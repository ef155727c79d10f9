"""Random placement problems by name: the papers' two, and larger ones to stretch planners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from distributary.arguments import check_choice, check_count, check_within, checked
from distributary.content import AdaptationGraph
from distributary.errors import BadInput
from distributary.placement.dissemination import dissemination_problem
from distributary.placement.problem import PlacementProblem
from distributary.placement.scenarios import (
    MAP_SOURCE,
    VIDEO_SOURCE,
    annotated_map_graph,
    random_graph,
    video_graph,
)
from distributary.topology.sites import Sites

__all__ = ["KINDS", "generate_problem"]


@dataclass(frozen=True)
class _Defaults:
    """What a kind of problem is like when nobody says otherwise."""

    brokers: int
    formats: int
    matching: float


_DEFAULTS = {
    "map": _Defaults(brokers=1024, formats=4, matching=0.5),
    "video": _Defaults(brokers=1024, formats=16, matching=0.5),
    "dense": _Defaults(brokers=1024, formats=64, matching=1.0),
    "sparse": _Defaults(brokers=1024, formats=64, matching=1.0),
    "few-wants": _Defaults(brokers=1024, formats=64, matching=1.0),
    "steiner": _Defaults(brokers=1, formats=200, matching=1.0),
}

KINDS = tuple(_DEFAULTS)

_SCENARIOS = ("map", "video")

_FORMATS_MAX = 2_000

# What share of the others a format converts into, or how many.
_DENSE_SHARE = 0.95
_FEW_WANTS_SHARE = 0.5
_SPARSE_DEGREE = 4

# With `few-wants` one format in this many is popular.
_POPULAR_ONE_IN = 8


@checked
def generate_problem(
    kind: str,
    *,
    seed: int,
    brokers: int | None = None,
    formats: int | None = None,
    matching: float | None = None,
    wants: int | None = None,
    heterogeneity: str = "none",
    tree: str = "routes",
    alpha: float = 1.0,
    beta: float = 1.0,
    sites: Sites | None = None,
    at: Sequence[str] = (),
) -> PlacementProblem:
    """Return a random problem of a named kind; the same arguments give the same problem.

    ``map`` and ``video`` are the papers' scenarios. ``dense``, ``sparse`` and
    ``few-wants`` have 64 formats and 1,024 brokers, all of which match: nearly every
    conversion is possible; about four per format; every second one, but each broker wants
    a single format out of a popular eighth. ``steiner`` is one broker that wants many
    formats out of a sparse graph with whole costs: the directed Steiner tree problem.

    Parameters
    ----------
    kind
        One of `KINDS`.
    seed
        Not negative. The adaptation graph depends on it, on the kind and on the number of
        formats alone.
    formats
        How many formats there are; ``map`` and ``video`` always have 4 and 16.
    wants
        The most formats that one broker wants, by default a quarter of all, and one for
        ``few-wants``. For ``steiner`` exactly how many are wanted.
    brokers, matching, heterogeneity, tree, alpha, beta, sites, at
        As in `dissemination_problem`. A ``steiner`` problem always has one broker. With `sites`
        there is a broker at each unless `brokers` or `at` says otherwise.
    """
    check_choice("kind", kind, KINDS)
    defaults = _DEFAULTS[kind]
    if at:
        if brokers is not None:
            raise BadInput("brokers", "cannot be combined with 'at', which names them")
        brokers = len(at)
    elif sites is not None and brokers is None and kind != "steiner":
        brokers = len(sites.names)
    brokers = defaults.brokers if brokers is None else brokers
    formats = defaults.formats if formats is None else formats
    matching = defaults.matching if matching is None else matching
    check_count("seed", seed)
    if kind in _SCENARIOS and formats != defaults.formats:
        raise BadInput("formats", f"is {formats}, but a {kind} has {defaults.formats} formats")
    check_within("formats", formats, 2, _FORMATS_MAX)
    graph_rng, rng = np.random.default_rng(seed).spawn(2)
    graph, source = _graph_of(kind, formats, graph_rng)

    wants_min, popular = 1, None
    if kind == "few-wants":
        popular = max(1, formats // _POPULAR_ONE_IN)
        wants = 1 if wants is None else wants
    if kind == "steiner":
        if brokers != 1:
            raise BadInput("brokers", f"is {brokers}, but a steiner problem has one broker")
        # Everything but the source can be wanted; a wish for the source costs nothing.
        popular = formats - 1
        wants = max(1, formats // 4) if wants is None else wants
        wants_min = wants
    return dissemination_problem(
        graph,
        source=source,
        rng=rng,
        brokers=brokers,
        matching=matching,
        wants=wants,
        wants_min=wants_min,
        popular=popular,
        heterogeneity=heterogeneity,
        tree=tree,
        alpha=alpha,
        beta=beta,
        sites=sites,
        at=at,
    )


def _graph_of(
    kind: str, format_count: int, rng: np.random.Generator
) -> tuple[AdaptationGraph, str]:
    """Return the adaptation graph of a kind of problem, and its source format."""
    if kind == "map":
        return annotated_map_graph(), MAP_SOURCE
    if kind == "video":
        return video_graph(rng), VIDEO_SOURCE
    others = format_count - 1
    out_degree = {
        "dense": max(1.0, _DENSE_SHARE * others),
        "few-wants": max(1.0, _FEW_WANTS_SHARE * others),
        "sparse": min(_SPARSE_DEGREE, others),
        "steiner": min(_SPARSE_DEGREE, others),
    }[kind]
    graph = random_graph(
        format_count, out_degree=out_degree, rng=rng, integer_costs=kind == "steiner"
    )
    return graph, graph.names[0]
