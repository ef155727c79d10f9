"""Files that arrive one after the other, with the rows of a sample, for tests of streams."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from distributary.content.content_space import ContentSpace
from distributary.pipeline.jobs.channels import channels
from distributary.pipeline.jobs.ingest import ingest
from distributary.pipeline.jobs.match import match
from distributary.pipeline.jobs.rates import rates
from distributary.pipeline.jobs.traffic import traffic
from distributary.pipeline.sample import SampleSizes, sample_tables
from distributary.pipeline.store import Store

__all__ = ["DELAY_US", "arriving", "micros", "sorted_rows", "write_batch_result", "write_tables"]

SIZES = SampleSizes(
    publications=80, subscriptions=40, users=12, brokers=4, objects=3, seconds=150, days=0.002
)
DELAY_US = 20_000_000
_FIRST_NS = 1_700_000_000 * 10**9


def write_tables(store: Store, *, seed: int = 3) -> None:
    """Write the tables that a stream needs beside the files."""
    made = sample_tables(store.spark, SIZES, seed)
    for name in ("subscriptions", "users"):
        store.write(name, made[name])


def arriving(store: Store, folder: Path, *, files: int, seed: int = 3) -> Iterator[list[Path]]:
    """Write files of publications and quotes, and yield those of one time after the other.

    Rows are out of order by less than the delay.
    """
    made = sample_tables(store.spark, SIZES, seed)
    rng = np.random.default_rng(seed)
    parts = {}
    for name in ("publications", "quotes"):
        rows = made[name].toArrow()
        times = micros(rows.column("time"))
        # A row is in the file of a time that is at most the delay after its own.
        order = np.argsort(times + rng.integers(0, DELAY_US, len(times)), kind="stable")
        parts[name] = [rows.take(pa.array(part)) for part in np.array_split(order, files)]
        (folder / name).mkdir(parents=True, exist_ok=True)
    for number in range(files):
        written = []
        for name, pieces in parts.items():
            path = folder / name / f"{number:03d}.{'csv' if name == 'quotes' else 'parquet'}"
            if name == "quotes":
                texts = [time.isoformat() for time in pieces[number].column("time").to_pylist()]
                csv.write_csv(pieces[number].set_column(1, "time", pa.array(texts)), path)
            else:
                pq.write_table(pieces[number], path)
            # Spark takes the older file first, and does not see differences below a second.
            os.utime(path, ns=(_FIRST_NS, _FIRST_NS + number * 10**10))
            written.append(path)
        yield written


def write_batch_result(store: Store, folder: Path) -> None:
    """Do by batch jobs what a stream does with the files of a folder."""
    write_tables(store)
    for name in ("publications", "quotes"):
        ingest(store, name, [str(folder / name)])
    match(store, store)
    rates(store, store)
    channels(store, store, ContentSpace.default())
    traffic(store, store)


def sorted_rows(store: Store, name: str) -> list[str]:
    """Return the rows of a table in an order that does not depend on files."""
    return sorted(map(repr, store.frame(name).toArrow().to_pylist()))


def micros(times: pa.ChunkedArray | Iterable[object]) -> np.ndarray:
    """Return times as microseconds since 1970."""
    column = times if isinstance(times, pa.ChunkedArray) else pa.chunked_array([pa.array(times)])
    return np.asarray(column.cast(pa.timestamp("us", "UTC")).cast(pa.int64()))
