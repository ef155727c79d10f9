"""`distributary warm-up`: compile now what would otherwise be compiled on first use."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from distributary.cli.progress import progress

if TYPE_CHECKING:
    from distributary.wiring.problem import WiringProblem

__all__ = ["EXAMPLES", "warm_up"]

EXAMPLES = """\
\b
Examples:
  distributary warm-up
"""


def warm_up() -> None:
    """Compile the hot loops of planners, matching and the pipeline, and keep them.

    They are compiled on first use otherwise, which takes up to a minute once. Worth doing
    when an image is built, or before something is timed.
    """
    from distributary.fidelity.generate import generate_problem as stream_problem
    from distributary.fidelity.planner import METHODS as TREE_METHODS
    from distributary.fidelity.planner import build_trees
    from distributary.placement.generate import generate_problem
    from distributary.placement.planner import METHODS, place
    from distributary.placement.search import search
    from distributary.simulator.queueing import simulate as queue
    from distributary.wiring.flows import flows
    from distributary.wiring.generate import generate_problem as wiring_problem
    from distributary.wiring.planner import METHODS as WIRING_METHODS
    from distributary.wiring.planner import wire

    began = time.perf_counter()
    small = generate_problem("video", seed=1, brokers=24)
    tiny = generate_problem("map", seed=1, brokers=12)
    lone = generate_problem("steiner", seed=1, formats=30, wants=6)
    stream = stream_problem(seed=1, servers=12, routers=40)
    heavy = stream_problem(seed=1, servers=12, routers=40, rates=(20.0, 60.0))
    few = stream_problem(seed=1, servers=5, routers=40)
    users = wiring_problem(seed=1, users=16, brokers=12, channels=4)
    few_users = wiring_problem(seed=1, users=8, brokers=3, channels=4)
    plans = [method for method in METHODS if method != "optimal"]
    total = len(plans) + len(TREE_METHODS) + len(WIRING_METHODS) + 10
    done = 0
    with progress() as observe:

        def count(stage: str) -> None:
            nonlocal done
            done += 1
            if observe is not None:
                observe(stage, done, total)

        for method in plans:
            place(small, method=method, iterations=20)
            count(method)
        place(small, method="iterative", steiner="exact", iterations=5)
        count("iterative")
        place(tiny)
        place(small, objective="time")
        count("time")
        for problem in (small, lone):
            search(problem, rounds=6)
            count("search")
        for method in TREE_METHODS:
            build_trees(few if method == "exact" else stream, method=method)
            count(method)
        build_trees(stream, approach="tree-each")
        build_trees(heavy, method="adapt")
        count("tree-each")
        for method in WIRING_METHODS:
            wire(few_users if method == "exact" else users, method=method)
            count(method)
        wire(users, core="steiner")
        wired = wire(users, core="one-tree")
        for core in ("mst", "one-tree"):
            flows(users, wired.broker_of, core=core)
        wire(users, start=wired.broker_of, moves=2)
        count("re-wiring")
        _match_something()
        count("match")
        _measure_something(users)
        count("pipeline")
        _simulate_something()
        count("simulate")
        queue(stream, build_trees(stream, method="greedy").forest, seconds=100, seed=1)
        count("queueing")
    print(f"compiled in {time.perf_counter() - began:.1f} s", file=sys.stderr)


def _match_something() -> None:
    """Have an index match events by every kind of condition, and a stream filtered."""
    import numpy as np

    from distributary.content.publication import Publication
    from distributary.content.tolerance import EffectiveTolerance, Tolerance
    from distributary.content.trace import Trace, forwarded
    from distributary.filters import Filter, Index

    event = Publication.parse(
        {"specversion": "1.0", "id": "1", "source": "/", "type": "a", "data": {"x": 1.5}}
    )
    wishes: list[dict[str, object]] = [
        {"exact": {"type": "a"}},
        {"prefix": {"type": "a"}},
        {"suffix": {"type": "a"}},
        {"range": {"/x": {"min": 1, "max": 2}}},
        {"not": {"exact": {"type": "b"}}},
        {"any": [{"exact": {"type": "b"}}, {"range": {"/x": {"min": 1}}}]},
        {"sql": "type IN ('a', 'b') AND LENGTH(id) = 1"},
    ]
    index = Index()
    for place, wish in enumerate(wishes):
        index.add_filter(f"s{place}", Filter.parse([wish]))
    index.match(event)
    children = [EffectiveTolerance.of([Tolerance("/x", "absolute", 1.0)])]
    forwarded(Trace.of_numbers(np.arange(3.0)), children, parent=None)
    try:
        import pyarrow as pa
    except ImportError:
        return
    from distributary.content.content_space import ContentSpace
    from distributary.content.publication_table import to_arrow

    table = pa.table(
        {
            "subscription_id": [f"t{place}" for place in range(len(wishes))],
            "filters": [json.dumps([wish]) for wish in wishes],
        }
    )
    batch = to_arrow([event])
    Index.from_arrow(table).match_batch(batch)
    ContentSpace.default().cells_of_batch(batch)


def _simulate_something() -> None:
    """Have brokers plan maps, and adapt the trees of streams when there is more to do."""
    from distributary.simulator import Simulation
    from distributary.simulator.scenario_file import scenario_from

    scenario = scenario_from(
        {
            "size": "small",
            "overlay": {"brokers": 8, "filter_ms": 5, "send_ms": 1},
            "content": {"graph": "map"},
            "workload": {
                "publications": 4,
                "objects": 2,
                "rates": [0.5, 2.0],
                "duration_s": 40,
                "shift": {"at_s": 20, "load": 3},
            },
            "adaptation": {"window_s": 5, "round_s": 10},
        },
        Path("warm-up.toml"),
    )
    Simulation(scenario, seed=1).run()


def _measure_something(users: WiringProblem) -> None:
    """Count the updates of a stream, report a rate, rank partners and quote a price."""
    import numpy as np

    from distributary.content.tolerance import EffectiveTolerance, Tolerance
    from distributary.content.trace import LastSent, Trace, forwarded_counts, thresholds_of
    from distributary.pipeline.sample._quote_kernels import reverting_jumps
    from distributary.pipeline.transforms._partner_kernels import heaviest
    from distributary.pipeline.transforms.exchange import exchange_of
    from distributary.pipeline.transforms.reporting import TAU, reported

    followers = [EffectiveTolerance.of([Tolerance("/x", "absolute", 1.0)])]
    values = np.arange(3.0)
    thresholds = thresholds_of(followers, parent=None)
    forwarded_counts(Trace.of_numbers(values), thresholds, LastSent.nothing(1))
    reported(values, np.array([0, 3]), np.array([np.nan]), tau=TAU)
    heaviest(exchange_of(users), 0, users.user_count, 2)
    reverting_jumps(values > 1.0, values, 1.0, 0.05, np.empty(3))
