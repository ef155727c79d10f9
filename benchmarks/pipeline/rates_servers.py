"""A day of quotes, and how often each of many servers needs updates of each object."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.pipeline.alone import alone_seconds
from benchmarks.pipeline.overhead import Measured, claims, measured, overhead_table
from benchmarks.pipeline.session import shared_session
from benchmarks.pipeline.tables import SEED, fill, sampled
from benchmarks.study import Column, Findings, Progress, Size, Study, result_hash
from distributary.pipeline.jobs.rates import followers_in, rates
from distributary.pipeline.sample import SampleSizes
from distributary.pipeline.store import Store
from distributary.pipeline.transforms.followers import Followers
from distributary.pipeline.transforms.object_tally import ObjectTally

__all__ = ["STUDY"]

_COLUMNS = ("object", "time", "value")


@dataclass(frozen=True)
class _Parameters:
    objects: int
    seconds: int
    servers: int
    repeats: int


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(4, 600, 16, 1),
    "large": _Parameters(100, 23_400, 256, 9),
}


@dataclass(frozen=True)
class _Counting:
    """What executors do with all quotes of an object, in the order of their times."""

    followers: Followers

    def __call__(self, batch: pa.RecordBatch) -> object:
        (found,) = self.followers.of([batch.column("object")[0].as_py()])
        tally = ObjectTally(found)
        times = batch.column("time").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        tally.add(np.asarray(times), np.asarray(batch.column("value")))
        tally.finish()
        return tally.rates()


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    spark = shared_session()
    pair = []
    for seconds in (parameters.seconds // 2, parameters.seconds):
        progress(f"{parameters.objects} objects, {seconds:,} quotes of each")
        with tempfile.TemporaryDirectory() as folder:
            pair.append(_measure(spark, Path(folder), parameters, seconds))
    return Findings(
        tables=(
            overhead_table(
                f"Updates that {parameters.servers} servers need of "
                f"{parameters.objects} quoted objects, on Spark",
                Column("quotes of an object"),
                [(parameters.seconds // 2, pair[0]), (parameters.seconds, pair[1])],
                more=(
                    "Every server follows every object, with a tolerance of its own. The "
                    "kernel gets all quotes of an object in order."
                ),
                repeats=parameters.repeats,
            ),
        ),
        claims=claims("rates", *pair),
        result_hash=result_hash([list(item.digests) for item in pair]),
    )


def _measure(spark: SparkSession, folder: Path, parameters: _Parameters, seconds: int) -> Measured:
    store = Store(str(folder / "data"), spark)
    sampled(store, SampleSizes(objects=parameters.objects, seconds=seconds), "quotes")
    quotes = store.read("quotes").sort_by([("object", "ascending"), ("time", "ascending")])
    _fill_followers(store, quotes, parameters.servers)
    (folder / "sorted").mkdir()
    pq.write_table(quotes, folder / "sorted" / "quotes.parquet", row_group_size=seconds)

    def kernel() -> float:
        began = time.perf_counter()
        everybody = followers_in(store)
        build = time.perf_counter() - began
        where = str(folder / "sorted")
        return build + alone_seconds(_Counting(everybody), where, _COLUMNS, batch_rows=seconds)

    return measured(
        lambda: [rates(store, store)],
        table="quotes",
        inputs=lambda: [store.frame("quotes").select(*_COLUMNS)],
        outputs=lambda: [store.frame("rate_days"), store.frame("rates")],
        kernel=kernel,
        repeats=parameters.repeats,
    )


def _fill_followers(store: Store, quotes: pa.Table, servers: int) -> None:
    """Write users, one at home at each server, and a subscription of each for each object."""
    names = [f"server-{number:04d}" for number in range(servers)]
    fill(store, "users", pa.table({"user": names, "broker": names}))
    objects = quotes["object"].unique().to_pylist()
    cents = np.random.default_rng(SEED).integers(1, 100, (servers, len(objects)))
    rows = [
        {
            "subscription_id": f"{user}/{name}",
            "user": user,
            "filters": json.dumps([{"exact": {"type": "quote", "subject": name}}]),
            "profile": None,
            "tolerance": json.dumps(
                {"value": "/price", "divergence": "absolute", "amount": int(amount) / 100}
            ),
        }
        for user, amounts in zip(names, cents, strict=True)
        for name, amount in zip(objects, amounts, strict=True)
    ]
    kinds = {name: pa.string() for name in rows[0]}
    fill(store, "subscriptions", pa.Table.from_pylist(rows, schema=pa.schema(kinds)))


STUDY = Study(
    name="pipeline-rates",
    about="Counting updates for many servers on Spark, beside what cannot be avoided.",
    minutes=5,
    run=_run,
)
