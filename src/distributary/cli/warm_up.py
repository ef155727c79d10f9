"""`distributary warm-up`: compile now what would otherwise be compiled on first use."""

from __future__ import annotations

import sys
import time

from distributary.cli.progress import progress

__all__ = ["EXAMPLES", "warm_up"]

EXAMPLES = """\
\b
Examples:
  distributary warm-up
"""


def warm_up() -> None:
    """Compile the hot loops of every planner and keep them for later runs.

    They are compiled on first use otherwise, which takes up to a minute once. Worth doing
    when an image is built, or before something is timed.
    """
    from distributary.fidelity.generate import generate_problem as stream_problem
    from distributary.fidelity.planner import METHODS as TREE_METHODS
    from distributary.fidelity.planner import build_trees
    from distributary.placement.generate import generate_problem
    from distributary.placement.planner import METHODS, place
    from distributary.placement.search import search

    began = time.perf_counter()
    small = generate_problem("video", seed=1, brokers=24)
    lone = generate_problem("steiner", seed=1, formats=30, wants=6)
    stream = stream_problem(seed=1, servers=12, routers=40)
    heavy = stream_problem(seed=1, servers=12, routers=40, rates=(20.0, 60.0))
    few = stream_problem(seed=1, servers=5, routers=40)
    plans = [method for method in METHODS if method != "optimal"]
    total = len(plans) + len(TREE_METHODS) + 5
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
    print(f"compiled in {time.perf_counter() - began:.1f} s", file=sys.stderr)
