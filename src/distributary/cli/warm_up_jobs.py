"""Warm-up jobs: together they call every compiled loop once, so that it is compiled and kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from distributary.methods import own_methods

__all__ = ["JOBS"]


def plan_something() -> None:
    """Place conversions by every method that has compiled loops."""
    from distributary.placement.generate import generate_problem
    from distributary.placement.planner import METHODS, place

    few_formats = generate_problem("map", seed=1, brokers=12)
    many_formats = generate_problem("video", seed=1, brokers=24)
    for method in own_methods(METHODS):
        if method != "optimal":
            place(many_formats, method=method, iterations=20)
    place(many_formats, method="iterative", steiner="exact", iterations=5)
    place(few_formats)


def search_something() -> None:
    """Place conversions by search; what `objective="time"` needs waits until it is asked for."""
    from distributary.placement.generate import generate_problem
    from distributary.placement.search import search

    tree = generate_problem("video", seed=1, brokers=24)
    for problem in (tree, generate_problem("steiner", seed=1, formats=30, wants=6)):
        search(problem, rounds=6)


def build_something() -> None:
    """Build the trees of streams by every method, and run one through queues."""
    from distributary.fidelity.generate import generate_problem
    from distributary.fidelity.planner import METHODS, build_trees
    from distributary.simulator.queueing import simulate

    stream = generate_problem(seed=1, servers=12, routers=40)
    heavy = generate_problem(seed=1, servers=12, routers=40, rates=(20.0, 60.0))
    few = generate_problem(seed=1, servers=5, routers=40)
    for method in own_methods(METHODS):
        build_trees(few if method == "exact" else stream, method=method)
    build_trees(stream, approach="tree-each")
    build_trees(heavy, method="adapt")
    simulate(stream, build_trees(stream, method="greedy").forest, seconds=100, seed=1)


def wire_something() -> None:
    """Attach users to brokers by every method and over every kind of tree."""
    from distributary.wiring.flows import flows
    from distributary.wiring.generate import generate_problem
    from distributary.wiring.planner import METHODS, wire

    users = generate_problem(seed=1, users=16, brokers=12, channels=4)
    few_users = generate_problem(seed=1, users=8, brokers=3, channels=4)
    for method in own_methods(METHODS):
        wire(few_users if method == "exact" else users, method=method)
    wire(users, core="steiner")
    wired = wire(users, core="one-tree")
    for core in ("mst", "one-tree"):
        flows(users, wired.broker_of, core=core)
    wire(users, start=wired.broker_of, moves=2)


def match_something() -> None:
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


def simulate_something() -> None:
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


def measure_something() -> None:
    """Count the updates of a stream, report a rate, rank partners and quote a price."""
    import numpy as np

    from distributary.content.tolerance import EffectiveTolerance, Tolerance
    from distributary.content.trace import LastSent, Trace, forwarded_counts, thresholds_of
    from distributary.pipeline.sample._quote_kernels import reverting_jumps
    from distributary.pipeline.transforms._partner_kernels import heaviest
    from distributary.pipeline.transforms.exchange import exchange_of
    from distributary.pipeline.transforms.reporting import TAU, reported
    from distributary.wiring.generate import generate_problem

    users = generate_problem(seed=1, users=16, brokers=12, channels=4)
    followers = [EffectiveTolerance.of([Tolerance("/x", "absolute", 1.0)])]
    values = np.arange(3.0)
    thresholds = thresholds_of(followers, parent=None)
    forwarded_counts(Trace.of_numbers(values), thresholds, LastSent.nothing(1))
    reported(values, np.array([0, 3]), np.array([np.nan]), tau=TAU)
    heaviest(exchange_of(users), 0, users.user_count, 2)
    reverting_jumps(values > 1.0, values, 1.0, 0.05, np.empty(3))


JOBS: dict[str, Callable[[], None]] = {
    "wiring": wire_something,
    "searching": search_something,
    "matching": match_something,
    "trees": build_something,
    "placement": plan_something,
    "simulating": simulate_something,
    "pipeline": measure_something,
}
"""What to do, the longest first, so that the last to end ends early."""
