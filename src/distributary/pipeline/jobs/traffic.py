"""`pipeline traffic`: rates_published, interests, deliveries -> traffic, broker_traffic, partners.

What users receive is counted from deliveries. Cells are coarser than filters, so what wiring
expects from them is more; how much more is reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distributary.errors import BadInput, TooLarge
from distributary.pipeline.failures import explained
from distributary.pipeline.report import Figure, JobReport, Stopwatch
from distributary.pipeline.transforms import traffic as transforms
from distributary.pipeline.transforms.channels import seconds_spanned
from distributary.pipeline.transforms.exchange import Population, population
from distributary.pipeline.transforms.received import received

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from distributary.pipeline.store import Store

__all__ = ["ROWS_MAX", "frames", "traffic"]

ROWS_MAX = 50_000_000
"""Users and the cells that they publish or want, which all come to the driver."""

# Measured, with the tables themselves.
_ROW_BYTES = 110
_ROW_SECONDS = 2e-6
_GIB = 2**30


def frames(source: Store, *, partners: int = 10) -> dict[str, DataFrame]:
    """Return the tables that the job writes, by name."""
    return _frames(source, _read(source)[0], partners)


def traffic(source: Store, target: Store, *, partners: int = 10) -> JobReport:
    """Find out how much traffic users have, with whom, and what brokers pass on.

    Reads `rates_published` and `interests`; `deliveries` and `publications`, from which it
    counts what users receive; `users` says where everybody is at home. Writes `traffic`,
    `partners` and, with the tables `brokers` and `core_costs`, `broker_traffic`. What it
    leaves out for want of a table, the report says.

    Raises `TooLarge` when more than `ROWS_MAX` rows say who publishes and wants what.
    """
    stopwatch = Stopwatch()
    everybody, read = _read(source)
    problem = everybody.problem
    written: dict[str, int] = {}
    for name, frame in _frames(source, everybody, partners).items():
        with explained("traffic", source.path("rates_published")):
            written[name] = target.write(name, frame)
    figures: dict[str, Figure] = {
        "bytes_per_second_published": float(problem.sent.sum()),
        "bytes_per_second_received": float(everybody.received.sum()),
        "bytes_per_second_by_cells": float(everybody.by_cells.sum()),
        **_over_count(everybody),
        "without_broker": int(np.count_nonzero(everybody.homes < 0)),
    }
    if "broker_traffic" not in written:
        figures["broker_traffic"] = "needs brokers and core_costs"
    return JobReport("traffic", read, written, stopwatch.seconds, figures)


def _over_count(everybody: Population) -> dict[str, Figure]:
    """Return how many times what is received cells expect: of all users, and at worst."""
    if everybody.counted is None:
        return {"over_count": "needs deliveries and publications"}
    counted = everybody.counted
    some = counted > 0.0
    if not some.any():
        return {"over_count": None, "over_count_worst": None}
    expected = everybody.by_cells
    return {
        "over_count": float(expected.sum() / counted.sum()),
        "over_count_worst": float((expected[some] / counted[some]).max()),
    }


def _received(source: Store) -> tuple[pa.Table | None, dict[str, int]]:
    """Return the bytes per second that users receive, and how many rows that took.

    Over the same time as the rates that are published; None without `deliveries`.
    """
    from pyspark.sql import functions as f

    names = ("publications", "deliveries")
    if not all(source.has(name) for name in names):
        return None, {}
    with explained("traffic", source.path("deliveries")):
        span = source.frame("publications").agg(seconds_spanned(f.min("time"), f.max("time")))
        per_second = (f.col("bytes") / span.collect()[0][0]).alias("bytes_per_second")
        found = received(source.frame("deliveries")).select("user", per_second).toArrow()
    return found, {name: source.row_count(name) for name in names}


def _read(source: Store) -> tuple[Population, dict[str, int]]:
    """Return all users, and how many rows that took of which table."""
    names = ("rates_published", "interests", "users")
    rows = sum(source.row_count(name) for name in names[:2])
    if rows > ROWS_MAX:
        memory = rows * _ROW_BYTES
        raise TooLarge(
            f"traffic would take about {memory / _GIB:,.0f} GiB of the driver's memory for "
            f"{rows:,} rows of rates_published and interests; it takes at most {ROWS_MAX:,}; "
            "hint: choose a content space of fewer cells, with channels --dimension",
            seconds=rows * _ROW_SECONDS,
            memory_bytes=memory,
        )
    with explained("traffic", source.path("rates_published")):
        tables = {name: source.read(name) for name in names if name != "users" or source.has(name)}
    counted, read = _received(source)
    try:
        everybody = population(
            tables["rates_published"], tables["interests"], tables.get("users"), counted
        )
    except BadInput as error:
        raise error.within(source.path("")) from None
    return everybody, read | {name: found.num_rows for name, found in tables.items()}


def _frames(source: Store, everybody: Population, partners: int) -> dict[str, DataFrame]:
    spark = source.spark
    made = {
        "traffic": transforms.traffic(spark, everybody),
        "partners": transforms.partners(spark, everybody, partners),
    }
    if source.has("brokers") and source.has("core_costs"):
        core = transforms.core_of(source.read("brokers"), source.read("core_costs"))
        made["broker_traffic"] = transforms.broker_traffic(spark, everybody, core)
    return made
