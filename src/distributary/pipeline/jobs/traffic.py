"""`pipeline traffic`: rates_published, interests, deliveries -> traffic, broker_traffic, partners.

What users receive is counted from deliveries. Cells are coarser than filters, so what wiring
expects from them is more; how much more is reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distributary.errors import BadInput, TooLarge
from distributary.pipeline.days import ALL, NONE, Days
from distributary.pipeline.failures import explained
from distributary.pipeline.report import Figure, JobReport, Stopwatch
from distributary.pipeline.runs import recorded
from distributary.pipeline.table_files import DAY
from distributary.pipeline.transforms import traffic as transforms
from distributary.pipeline.transforms.channels import rates_published, seconds_spanned
from distributary.pipeline.transforms.exchange import Population, population
from distributary.pipeline.transforms.received import received

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from distributary.pipeline.store import Store

DAYS, VOLUMES = "received_days", "volume_days"

__all__ = ["ROWS_MAX", "frames", "traffic"]

ROWS_MAX = 50_000_000
"""Users and the cells that they publish or want, which all come to the driver."""

# Measured, with the tables themselves.
_ROW_BYTES = 110
_ROW_SECONDS = 2e-6
_GIB = 2**30


def frames(source: Store, days: Days = ALL, *, partners: int = 10) -> dict[str, DataFrame]:
    """Return the tables that the job writes, by name."""
    received = _received_days(source, days)
    made = _frames(source, _read(source, received, days)[0], partners)
    return made if received is None else {DAYS: received, **made}


@recorded("traffic")
def traffic(
    source: Store,
    target: Store,
    days: Days = ALL,
    *,
    partners: int = 10,
    span: Days | None = None,
) -> JobReport:
    """Find out how much traffic users have, with whom, and what brokers pass on.

    Reads `rates_published` and `interests`; `deliveries` and `publications`, from which it
    counts what users receive; `users` says where everybody is at home. Writes `received_days` of
    some days, `traffic`, `partners` and, with the tables `brokers` and `core_costs`,
    `broker_traffic`. What it leaves out for want of a table, the report says.

    Rates are sums over the days of the `span`: the same days unless given. What is published on
    some days is in `volume_days`; in `rates_published` are the days that `channels` was given.

    Raises `TooLarge` when more than `ROWS_MAX` rows say who publishes and wants what.
    """
    stopwatch = Stopwatch()
    span = days if span is None else span
    written: dict[str, int] = {}
    counted = _received_days(source, days)
    if counted is not None:
        if days != NONE:
            with explained("traffic", source.path("deliveries")):
                written[DAYS] = target.write(DAYS, counted, days)
        counted = target.frame(DAYS, span)
    everybody, read = _read(source, counted, span)
    problem = everybody.problem
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
    done = None if counted is None else days.among(source.days("deliveries"))
    return JobReport("traffic", read, written, stopwatch.seconds, figures, done)


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


def _received_days(source: Store, days: Days) -> DataFrame | None:
    """Return what users received on some days; None without `deliveries` or `publications`."""
    if not all(source.has(name) for name in ("publications", "deliveries")):
        return None
    return received(source.frame("deliveries", days, with_day=True), DAY)


def _seconds(source: Store, span: Days) -> float:
    """Return the time from the first to the last publication."""
    from pyspark.sql import functions as f

    if source.has(VOLUMES):
        found = source.frame(VOLUMES, span).agg(seconds_spanned(f.min("first"), f.max("last")))
    else:
        times = source.frame("publications", span)
        found = times.agg(seconds_spanned(f.min("time"), f.max("time")))
    return float(found.collect()[0][0])


def _published(source: Store, span: Days) -> pa.Table:
    """Return what users publish per second, in which cells."""
    if span.is_all:
        return source.read("rates_published")
    return rates_published(source.frame(VOLUMES, span)).toArrow()


def _read(
    source: Store, counted: DataFrame | None, span: Days
) -> tuple[Population, dict[str, int]]:
    """Return all users, and how many rows that took of which table."""
    from pyspark.sql import functions as f

    published = "rates_published" if span.is_all else VOLUMES
    rows = source.row_count(published, span) + source.row_count("interests")
    if rows > ROWS_MAX:
        memory = rows * _ROW_BYTES
        raise TooLarge(
            f"traffic would take about {memory / _GIB:,.0f} GiB of the driver's memory for "
            f"{rows:,} rows of {published} and interests; it takes at most {ROWS_MAX:,}; "
            "hint: choose a content space of fewer cells, with channels --dimension",
            seconds=rows * _ROW_SECONDS,
            memory_bytes=memory,
        )
    with explained("traffic", source.path(published)):
        tables = {published: _published(source, span), "interests": source.read("interests")}
        if source.has("users"):
            tables["users"] = source.read("users")
    read = {name: found.num_rows for name, found in tables.items()}
    got: pa.Table | None = None
    if counted is not None:
        with explained("traffic", source.path("deliveries")):
            by_user = counted.groupBy("user").agg(f.sum("bytes").alias("bytes"))
            per_second = (f.col("bytes") / _seconds(source, span)).alias("bytes_per_second")
            got = by_user.select("user", per_second).toArrow()
        read |= {name: source.row_count(name, span) for name in ("publications", "deliveries")}
    try:
        everybody = population(tables[published], tables["interests"], tables.get("users"), got)
    except BadInput as error:
        raise error.within(source.path("")) from None
    return everybody, read


def _frames(source: Store, everybody: Population, partners: int) -> dict[str, DataFrame]:
    spark = source.spark
    made = {
        "traffic": transforms.traffic(spark, everybody),
        "partners": transforms.partners(spark, everybody, partners),
    }
    if source.has("brokers") and source.has("core_costs"):
        core = transforms.core_prices_of(source.read("brokers"), source.read("core_costs"))
        made["broker_traffic"] = transforms.broker_traffic(spark, everybody, core)
    return made
