"""Tables of a data folder, put there without Spark: a job of its own for each takes long."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from distributary.content.publication import Publication

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from distributary.pipeline.store import Store


def put(store: Store, name: str, rows: pa.Table | pa.RecordBatch, *, files: int = 1) -> None:
    """Write a table as a folder of so many files, as if there had never been another."""
    folder = Path(store.path(name))
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    store.begin("test")
    every = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    for number in range(files):
        begin, end = (every.num_rows * n // files for n in (number, number + 1))
        pq.write_table(every.slice(begin, end - begin), folder / f"part-{number:05d}.parquet")


def sorted_rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    """Return all rows in an order of their own; nothing comes before anything else."""
    rows = (tuple(row) for row in frame.collect())
    return sorted(rows, key=lambda row: [(value is not None, value) for value in row])


def subscriptions_table(rows: list[dict[str, Any]]) -> pa.Table:
    """Return the table `subscriptions`; filters and profiles are given as plain data."""
    profiles = [row.get("profile") for row in rows]
    return pa.table(
        {
            "subscription_id": pa.array([row["id"] for row in rows], pa.string()),
            "user": pa.array([row["user"] for row in rows], pa.string()),
            "filters": pa.array([json.dumps(row["filters"]) for row in rows], pa.string()),
            "profile": pa.array(
                [None if profile is None else json.dumps(profile) for profile in profiles],
                pa.string(),
            ),
            "tolerance": pa.nulls(len(rows), pa.string()),
        }
    )


def users_table(homes: dict[str, str | None]) -> pa.Table:
    """Return the table `users`."""
    return pa.table(
        {
            "user": pa.array(list(homes), pa.string()),
            "broker": pa.array(list(homes.values()), pa.string()),
        }
    )


MEDIA = ("application/pdf", "video/mp4;width=640;bitrate=1000k", "text/plain;charset=utf-8")


def publications(count: int, *, seed: int) -> list[Publication]:
    """Return events of several types: with JSON of numbers and texts, media, or nothing."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        attributes: dict[str, Any] = {
            "specversion": "1.0",
            "id": str(number),
            "source": f"/s{number % 3}",
            "type": f"t{int(rng.integers(4))}",
            "level": int(rng.integers(5)),
        }
        if rng.random() < 0.9:
            attributes["time"] = f"2026-01-05T00:{int(rng.integers(60)):02d}:00Z"
        data: object = None
        shape = int(rng.integers(4))
        if shape < 2:
            data = {"x": round(float(rng.random()), 2), "place": f"p{int(rng.integers(3))}"}
        elif shape == 2:
            attributes["datacontenttype"] = MEDIA[int(rng.integers(3))]
            data = bytes(int(10 ** rng.uniform(1, 5)))
        made.append(Publication(attributes, data))
    return made
