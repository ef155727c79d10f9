"""The tables that a study works on."""

from __future__ import annotations

import pyarrow as pa

from distributary.pipeline.jobs.sample import frames
from distributary.pipeline.sample import SampleSizes
from distributary.pipeline.store import Store

__all__ = ["SEED", "fill", "sampled"]

SEED = 1


def sampled(store: Store, sizes: SampleSizes, *names: str) -> None:
    """Write some tables of a sample; a study needs few of them."""
    made = frames(store.spark, sizes, seed=SEED)
    for name in names:
        store.write(name, made[name])


def fill(store: Store, name: str, rows: pa.Table) -> None:
    """Write a table that is in memory."""
    store.write(name, store.spark.createDataFrame(rows))
