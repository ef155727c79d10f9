"""Compiled loops, loaded before a broker's first turn.

What plans, matches and finds cells is compiled, and kept on disk from one process to the next.
To load it takes a tenth of a second, in which a broker that has begun would be deaf to everybody.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from distributary.broker.formats import Formats
from distributary.broker.plan_part import NOTHING_BEFORE, Grant, Home
from distributary.broker.planning import plan_tree, tree_along
from distributary.broker.settings import ContentSettings, Settings
from distributary.content import AdaptationGraph, Publication
from distributary.filters import Filter, Index

__all__ = ["load_compiled"]


_EVENT = Publication.parse({"specversion": "1.0", "id": "-", "source": "-", "type": "-"})


def load_compiled(settings: Settings) -> None:
    """Load all that brokers with these settings need, once in a process."""
    settings.space.cell_of(_EVENT)
    _load_planner(settings.content.method)
    _load_index()


@cache
def _load_planner(method: str) -> None:
    """Plan for a home that wants something converted, while the root is busy."""
    graph = AdaptationGraph(
        ("a", "b"), np.array([1.0, 0.5]), np.array([[np.inf, 1.0], [np.inf, np.inf]])
    )
    plan_tree(
        Formats(graph, graph, 0, universal=False),
        tree_along("root", 1.0, {"home": (("home", 1.0, 1.0),)}),
        held=(0,),
        homes={"home": Home(NOTHING_BEFORE, (Grant("", "b"),))},
        waits_s={"root": 1.0},
        settings=ContentSettings(method=method),
    )


@cache
def _load_index() -> None:
    """Match one event with an index of one filter."""
    index = Index()
    index.add_all([("-", Filter.parse([{"exact": {"type": "-"}}]))])
    assert index.match(_EVENT) == ["-"]
