"""Compiled loops, loaded before a broker's first turn.

What plans, matches, finds cells and weighs moves is compiled, and kept on disk from one process to
the next. To load it takes a tenth of a second, in which a broker that has begun would be deaf to
everybody.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from distributary.broker.formats import Formats
from distributary.broker.migration.choice import Summary, best_home
from distributary.broker.plan_part import NOTHING_BEFORE, Grant, Home
from distributary.broker.planning import plan_tree, tree_along
from distributary.broker.settings import ContentSettings, Settings
from distributary.content import AdaptationGraph, Publication
from distributary.fidelity.local import LocalView, best_move
from distributary.filters import Filter, Index

__all__ = ["load_compiled"]


_EVENT = Publication.parse({"specversion": "1.0", "id": "-", "source": "-", "type": "-"})


def load_compiled(settings: Settings) -> None:
    """Load all that brokers with these settings need, once in a process."""
    settings.space.cell_of(_EVENT)
    _load_planner(settings.content.method)
    _load_index()
    _load_moves()


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


@cache
def _load_moves() -> None:
    """Weigh the moves in a tree of three brokers, and those of a client between two."""
    ones, zeros = np.ones(3), np.zeros(3)
    none = np.zeros(3, dtype=np.int64)
    best_move(
        LocalView(
            names=("a", "b", "c"),
            parents=np.array([-1, 0, 1]),
            rates=ones[:, None],
            weights=ones,
            filter_times=1e-3 * ones,
            send_times=1e-3 * ones,
            delays=np.ones((3, 3)),
            elsewhere=np.zeros((3, 3)),
            below_count=none,
            below_receivers=none[:, None],
            below_passed=zeros[:, None],
            below_weight=zeros,
        )
    )
    client = Summary({0: 1.0}, frozenset({0}), {"a": 1.0, "b": 1.0})
    best_home(client, "a", {"a": client, "b": client}, ("a", "b"))
