"""Ten million publications to what users say to each other, on Spark."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.pipeline.alone import alone_seconds
from benchmarks.pipeline.overhead import Measured, claims, measured, overhead_table
from benchmarks.pipeline.session import cores, shared_session
from benchmarks.pipeline.tables import sampled
from benchmarks.study import Column, Findings, Progress, Size, Study, result_hash
from distributary.content.content_space import ContentSpace
from distributary.filters.cells import cells_batch
from distributary.pipeline.jobs.channels import channels
from distributary.pipeline.jobs.traffic import traffic
from distributary.pipeline.sample import SampleSizes
from distributary.pipeline.store import Store
from distributary.pipeline.transforms._partner_kernels import heaviest
from distributary.pipeline.transforms.channels import looked_at
from distributary.pipeline.transforms.exchange import exchange_of, population
from distributary.pipeline.transforms.traffic import core_prices_of
from distributary.wiring.flows import carried

__all__ = ["STUDY"]

_PARTNERS = 10
_OF_SUBSCRIPTIONS = ("subscription_id", "user", "filters")
_WRITTEN = (
    "channels",
    "volume_days",
    "rates_published",
    "interests",
    "traffic",
    "partners",
    "broker_traffic",
)
# Users whose partners are looked for at a time.
_PORTION = 1_024


@dataclass(frozen=True)
class _Parameters:
    publications: int
    users: int
    repeats: int


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(4_000, 200, 1),
    "large": _Parameters(10_000_000, 100_000, 2),
}


@dataclass(frozen=True)
class _Locating:
    """What executors do with publications: their cells, and sums by publisher and cell."""

    space: ContentSpace

    def __call__(self, batch: pa.RecordBatch) -> object:
        cells = pa.array(self.space.cells_of_batch(batch), pa.int64())
        located = batch.select(["user", "time", "bytes"]).append_column("cell", cells)
        grouped = pa.Table.from_batches([located]).group_by(["user", "cell"], use_threads=False)
        return grouped.aggregate([("bytes", "sum"), ("time", "min"), ("time", "max")])


@dataclass(frozen=True)
class _Touching:
    """What executors do with subscriptions: the cells that each can touch."""

    space: ContentSpace

    def __call__(self, batch: pa.RecordBatch) -> object:
        return cells_batch(batch, self.space)


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    spark = shared_session()
    pair = []
    counts = (parameters.publications // 2, parameters.publications)
    for publications in counts:
        progress(f"{publications:,} publications, {parameters.users:,} users")
        with tempfile.TemporaryDirectory() as folder:
            pair.append(_measure(spark, Path(folder), parameters, publications))
    return Findings(
        tables=(
            overhead_table(
                f"Channels and traffic of {parameters.users:,} users, on Spark",
                Column("publications"),
                list(zip(counts, pair, strict=True)),
                more=(
                    "Both jobs together, with the cells of the default space, as many "
                    f"subscriptions as users, and the {_PARTNERS} heaviest partners of "
                    "everybody. Kernels get what Spark has selected: one attribute of each "
                    "publication."
                ),
                repeats=parameters.repeats,
            ),
        ),
        claims=claims("channels and traffic", *pair),
        result_hash=result_hash([list(item.digests) for item in pair]),
    )


def _measure(
    spark: SparkSession, folder: Path, parameters: _Parameters, publications: int
) -> Measured:
    store = Store(str(folder / "data"), spark)
    sizes = SampleSizes(
        publications=publications, subscriptions=parameters.users, users=parameters.users
    )
    sampled(store, sizes, "publications", "subscriptions", "users", "brokers", "core_costs")
    space = ContentSpace.default()
    selected = str(folder / "selected")
    _selected(store, space).write.parquet(selected)
    return measured(
        lambda: [channels(store, store, space), traffic(store, store, partners=_PARTNERS)],
        table="publications",
        inputs=lambda: [
            _selected(store, space),
            store.frame("subscriptions").select(*_OF_SUBSCRIPTIONS),
        ],
        outputs=lambda: [store.frame(name) for name in _WRITTEN],
        kernel=lambda: _kernel_seconds(store, space, selected),
        repeats=parameters.repeats,
    )


def _selected(store: Store, space: ContentSpace) -> DataFrame:
    """Return what the job hands to Python."""
    user = f.col("publisher").alias("user")
    return store.frame("publications").select(user, "time", "bytes", *looked_at(space))


def _kernel_seconds(store: Store, space: ContentSpace, selected: str) -> float:
    """Return how long cells, sums and traffic take without Spark."""
    columns = ("user", "time", "bytes", "attributes")
    located = alone_seconds(_Locating(space), selected, columns)
    touched = alone_seconds(_Touching(space), store.path("subscriptions"), _OF_SUBSCRIPTIONS)
    names = ("rates_published", "interests", "users", "brokers", "core_costs")
    tables = {name: store.read(name) for name in names}
    began = time.perf_counter()
    everybody = population(tables["rates_published"], tables["interests"], tables["users"])
    core = core_prices_of(tables["brokers"], tables["core_costs"])
    entering, wanting = everybody.at_brokers(core.brokers)
    carried(core.prices, entering, wanting > 0)
    exchange = exchange_of(everybody.problem)
    users = everybody.problem.user_count
    # The compiled loop releases the interpreter's lock, so threads are enough here.
    with ThreadPoolExecutor(cores()) as pool:
        portions = [
            pool.submit(heaviest, exchange, begin, min(begin + _PORTION, users), _PARTNERS)
            for begin in range(0, users, _PORTION)
        ]
        assert sum(len(portion.result()[2]) for portion in portions) == users
    return located + touched + time.perf_counter() - began


STUDY = Study(
    name="pipeline-traffic",
    about="Cells and traffic of many publications on Spark, beside what cannot be avoided.",
    minutes=25,
    run=_run,
)
