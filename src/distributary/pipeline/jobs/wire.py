"""`pipeline wire`: which broker every user should attach to, from the tables of traffic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np

from distributary.arrays import IntArray
from distributary.errors import BadInput, InfeasiblePlan, quoted
from distributary.pipeline.failures import explained
from distributary.pipeline.report import Figure, JobReport, Stopwatch
from distributary.pipeline.runs import recorded
from distributary.wiring.clustering import clustering_wiring
from distributary.wiring.cost import cost
from distributary.wiring.mixing import mixing_wiring
from distributary.wiring.packing import packing_wiring
from distributary.wiring.planner import wire as plan
from distributary.wiring.problem_tables import read_problem_tables
from distributary.wiring.tables import find_table
from distributary.wiring.wiring_file import NO_BROKER, resolved

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from distributary.pipeline.progress import Observe
    from distributary.pipeline.store import Store
    from distributary.wiring.problem import WiringProblem

__all__ = ["TABLES", "check", "frames", "wire"]

TABLES = ("users", "brokers", "access_costs", "core_costs", "rates_published", "interests")
"""What a wiring problem is made of."""

_BASELINES = {
    "packing": packing_wiring,
    "clustering": clustering_wiring,
    "mixing": mixing_wiring,
}


def frames(source: Store) -> dict[str, DataFrame]:
    """Return the tables that the job reads, by name; it plans on the driver."""
    return {name: source.frame(name) for name in TABLES}


def check(source: Store, *, names: bool) -> None:
    """Raise `BadInput` for what `wire` will not take: before others have worked for hours.

    `names` are looked at as well, when `channels` is still to come: everybody who publishes
    or subscribes has to be one of the users.
    """
    for name in TABLES[:4]:
        source.check(name)
    if not names:
        return
    users = source.frame("users").select("user").distinct()
    for name, column, hint in (
        ("publications", "publisher", "ingest publications again, see its option --publisher"),
        ("subscriptions", "user", "ingest users again, with everybody who subscribes"),
    ):
        with explained("wire", source.path(name)):
            found = source.frame(name).select(column).dropna().distinct()
            unknown = found.join(users, found[column] == users["user"], "left_anti").orderBy(column)
            first, count = unknown.first(), unknown.count()
        if first is not None:
            others = f" (and {count - 1:,} more like it)" if count > 1 else ""
            raise BadInput(
                source.path(name), f"{column} {quoted(first[0])} is not in users{others}", hint=hint
            )


@recorded("wire")
def wire(
    source: Store,
    target: Store,
    *,
    method: str = "auto",
    core: str = "mst",
    seed: int = 0,
    time_limit: float | None = None,
    from_homes: bool = False,
    moves: int | None = None,
    baselines: bool = True,
    observe: Observe | None = None,
) -> JobReport:
    """Attach every user to a broker, at the least cost of access and core.

    Reads `TABLES`, of which `channels` writes the last two; writes `wiring`. With
    `from_homes`, at most `moves` users move from the homes in `users`. Baselines are the
    wirings of the published methods and, if everybody has one, the homes. What else there is,
    `wiring.planner.wire` has too.
    """
    stopwatch = Stopwatch()
    for name in TABLES:
        # Says which table or column is missing, as every job does.
        source.check(name)
    with explained("wire", source.path("users")), _folder(source) as folder:
        file = read_problem_tables(folder)
        problem = file.problem
        homes = _homes(source, problem)
        rows_in = {
            name: found.row_count
            for name in TABLES
            if (found := find_table(folder, name)) is not None
        }
    if from_homes and (homes == NO_BROKER).all():
        raise BadInput("--from-homes", "nobody in the table users has a home broker")
    wiring = plan(
        problem,
        method=method,
        core=core,
        seed=seed,
        time_limit=time_limit,
        start=homes if from_homes else None,
        moves=moves,
        observe=observe,
    )
    figures: dict[str, Figure] = {
        "method": wiring.method,
        "total_cost": float(wiring.cost.total),
        "access_cost": float(wiring.cost.access),
        "core_cost": float(wiring.cost.core),
        "lower_bound": float(wiring.lower_bound),
        "gap": float(wiring.gap),
    }
    if wiring.moved is not None:
        figures["moved"] = int(wiring.moved)
    if baselines:
        figures |= _baseline_costs(problem, homes, core=core, seed=seed)
    order = {user: u for u, user in enumerate(problem.users)}
    at = np.array([order[user] for user in file.user_order])
    with explained("wire", target.path("wiring")):
        target.write("wiring", _wired(source, problem, wiring.broker_of, at))
    return JobReport(
        "wire", rows_in, {"wiring": problem.user_count}, stopwatch.seconds, figures | {"seed": seed}
    )


def _wired(source: Store, problem: WiringProblem, broker_of: IntArray, at: IntArray) -> DataFrame:
    import pyarrow as pa

    users = pa.array(problem.users, pa.string()).take(pa.array(at))
    brokers = pa.array(problem.brokers, pa.string()).take(pa.array(broker_of[at]))
    frame: DataFrame = source.spark.createDataFrame(pa.table({"user": users, "broker": brokers}))
    return frame


def _homes(source: Store, problem: WiringProblem) -> IntArray:
    """Return the home broker of every user, `NO_BROKER` without one."""
    rows = source.read("users")
    pairs = zip(rows["user"].to_pylist(), rows["broker"].to_pylist(), strict=True)
    known = {user: broker for user, broker in pairs if broker is not None}
    if not known:
        return np.full(problem.user_count, NO_BROKER, dtype=np.int64)
    return resolved(known, problem).broker_of


def _baseline_costs(
    problem: WiringProblem, homes: IntArray, *, core: str, seed: int
) -> dict[str, Figure]:
    """Return what other wirings cost; None where capacities do not allow one."""
    costs: dict[str, Figure] = {}
    for name, method in _BASELINES.items():
        try:
            costs[name] = float(cost(problem, method(problem, seed=seed), core=core).total)
        except InfeasiblePlan:
            costs[name] = None
    if not (homes == NO_BROKER).any():
        costs["homes"] = float(cost(problem, homes, core=core).total)
    return costs


@contextmanager
def _folder(source: Store) -> Iterator[Path]:
    """Yield a folder of this machine that has the tables of the problem.

    They are read where they are, unless that is elsewhere: prices between a hundred thousand
    users and a thousand brokers are not copied for nothing.
    """
    paths = [source.path(name) for name in TABLES]
    if not any(urlsplit(path).scheme for path in paths):
        yield Path(paths[0]).parent
        return
    import pyarrow.parquet as pq

    with TemporaryDirectory(prefix="distributary-wire-") as folder:
        for name in TABLES:
            pq.write_table(source.read(name), Path(folder) / f"{name}.parquet")
        yield Path(folder)
