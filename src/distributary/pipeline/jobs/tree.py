"""`pipeline tree`: which trees streams should follow, from measured rates and delays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from distributary.errors import BadInput, quoted
from distributary.fidelity.planner import StreamTrees, build_trees
from distributary.fidelity.problem import FidelityProblem
from distributary.pipeline.failures import explained
from distributary.pipeline.overlay import BrokerOverlay, read_overlay
from distributary.pipeline.report import Figure, JobReport, Stopwatch
from distributary.pipeline.runs import recorded
from distributary.pipeline.stream_problems import (
    RateTable,
    ServerTimes,
    rate_table,
    stream_problem,
    tree_rows,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from distributary.pipeline.progress import Observe
    from distributary.pipeline.store import Store

__all__ = ["frames", "tree"]

_BASELINES = ("source", "random", "dita")


def frames(source: Store) -> dict[str, DataFrame]:
    """Return the tables that the job reads, by name; it plans on the driver."""
    return {name: source.frame(name) for name in ("rates", "overlay")}


@recorded("tree")
def tree(
    source: Store,
    target: Store,
    *,
    root: str | None = None,
    method: str = "auto",
    objects: str = "one-tree",
    times: ServerTimes | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    baselines: bool = True,
    observe: Observe | None = None,
) -> JobReport:
    """Decide from whom every broker receives updates, at the least loss of fidelity.

    Reads `rates` and `overlay`; writes `trees`. Unless a `root` is given, objects come from
    the home brokers of their publishers, which `publications` names by `subject`: those of
    one broker are planned together, and objects without a known home are left out. `objects`
    is "one-tree" for all objects of a source, or "tree-each"; what else there is,
    `fidelity.planner.build_trees` has too.
    """
    import pyarrow as pa

    stopwatch = Stopwatch()
    with explained("tree", source.path("rates")):
        brokers = read_overlay(source)
        rates = rate_table(source, brokers)
        groups = _by_source(source, rates, brokers, root)
    problems = [
        stream_problem(rates, brokers, at, things, times or ServerTimes())
        for at, things in groups.items()
    ]
    built = [
        build_trees(
            problem,
            method=method,
            approach=objects,
            seed=seed,
            time_limit=None if time_limit is None else time_limit / len(problems),
            observe=observe,
        )
        for problem in problems
    ]
    figures: dict[str, Figure] = {
        "method": method,
        "sources": len(problems),
        "objects_without_source": len(rates.objects) - sum(map(len, groups.values())),
        "average_loss": _average(problems, built),
        "overloaded": len({name for trees in built for name in trees.loss.overloaded}),
    }
    if baselines:
        for name in _BASELINES:
            others = [
                build_trees(problem, method=name, approach=objects, seed=seed)
                for problem in problems
            ]
            figures[name] = _average(problems, others)
    rows = pa.concat_tables(
        tree_rows(problem, trees.forest) for problem, trees in zip(problems, built, strict=True)
    )
    with explained("tree", target.path("trees")):
        target.write("trees", source.spark.createDataFrame(rows))
    return JobReport(
        "tree",
        {"rates": rates.row_count, "overlay": len(brokers.brokers)},
        {"trees": rows.num_rows},
        stopwatch.seconds,
        figures | {"seed": seed},
    )


def _average(problems: Sequence[FidelityProblem], built: Sequence[StreamTrees]) -> float | None:
    """Return the loss over all sources, each weighed by its servers; None if overloaded."""
    servers = [int(problem.served.sum()) for problem in problems]
    total = math.fsum(
        trees.loss.average * count for trees, count in zip(built, servers, strict=True) if count
    )
    return total / max(sum(servers), 1) if math.isfinite(total) else None


def _by_source(
    source: Store, rates: RateTable, brokers: BrokerOverlay, root: str | None
) -> Mapping[str, Sequence[int]]:
    """Return the objects, as indices, by the broker that they come from."""
    if root is not None:
        if root not in brokers.brokers:
            raise BadInput("--source", f"broker {quoted(root)} is not in the overlay")
        return {root: range(len(rates.objects))}
    homes = _publisher_homes(source, rates.objects)
    known = set(brokers.brokers)
    groups: dict[str, list[int]] = {}
    for x, name in enumerate(rates.objects):
        home = homes.get(name)
        if home in known:
            groups.setdefault(str(home), []).append(x)
    if not groups:
        raise BadInput(
            source.path("rates"),
            "no object has a publisher with a home broker",
            hint="name the broker that all objects come from with --source",
        )
    return dict(sorted(groups.items()))


def _publisher_homes(source: Store, objects: Sequence[str]) -> dict[str, str | None]:
    """Return the home broker of the publisher of each object that has publications."""
    from pyspark.sql import functions as f

    if not (source.has("publications") and source.has("users")):
        raise BadInput(
            "--source",
            "is needed where there are no tables publications and users",
            hint="name the broker that all objects come from",
        )
    subject = f.col("attributes")["subject"]["text"]
    # At most two publishers of an object travel here: one, and one that there must not be.
    found = (
        source.frame("publications")
        .select(subject.alias("object"), "publisher")
        .where(f.col("object").isin(list(objects)) & f.col("publisher").isNotNull())
        .groupBy("object")
        .agg(f.min("publisher").alias("first"), f.max("publisher").alias("last"))
        .toArrow()
    )
    users = source.read("users")
    home_of = dict(zip(users["user"].to_pylist(), users["broker"].to_pylist(), strict=True))
    homes: dict[str, str | None] = {}
    for name, first, last in zip(*(found[c].to_pylist() for c in found.column_names), strict=True):
        if first != last:
            raise BadInput(
                source.path("publications"),
                f"object {quoted(name)} has two publishers, {quoted(first)} and {quoted(last)}",
                hint="name the broker that all objects come from with --source",
            )
        homes[name] = home_of.get(first)
    return homes
