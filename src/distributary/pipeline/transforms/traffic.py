"""Traffic: in and out of every user, between brokers, and between those who exchange most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from distributary.arrays import FloatArray
from distributary.errors import BadInput, quoted
from distributary.pipeline.broadcast import broadcast
from distributary.pipeline.schemas import table_schema
from distributary.pipeline.transforms._partner_kernels import Exchange, heaviest
from distributary.pipeline.transforms.exchange import Population, exchange_of
from distributary.pipeline.workers import map_in_arrow
from distributary.topology.prices import shortest_prices
from distributary.wiring.core_prices import symmetric_prices
from distributary.wiring.flows import carried

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["PARTNERS_MAX", "CorePrices", "broker_traffic", "core_prices_of", "partners", "traffic"]

PARTNERS_MAX = 1_000
# A task looks at so many users, or at fewer if they are to be compared with many sets of
# cells; but there are no more tasks than this.
_TASK_USERS = 8_192
_TASK_PAIRS = 50_000_000
_TASKS_MAX = 64


def traffic(spark: SparkSession, everybody: Population) -> DataFrame:
    """Return the table `traffic`: what every user receives and publishes.

    Out is all that a user publishes, as in the wiring problem. In is counted from deliveries,
    if they are known; beside it stands what would be expected from the user's cells.
    """
    import pyarrow as pa

    problem = everybody.problem
    found = pa.table(
        {
            "user": pa.array(problem.users, pa.string()),
            "bytes_in": pa.array(everybody.received),
            "bytes_out": pa.array(problem.sent),
            "bytes_in_by_cells": pa.array(everybody.by_cells),
        }
    )
    return spark.createDataFrame(found, table_schema("traffic").struct_type)


class CorePrices(NamedTuple):
    """The brokers and the prices between them.

    Names are sorted, prices a metric.
    """

    brokers: tuple[str, ...]
    prices: FloatArray


def core_prices_of(brokers: pa.Table, core_costs: pa.Table) -> CorePrices:
    """Return the prices that tables describe, or raise `BadInput`.

    Costs are in the order of the rows of `brokers`; those of `core_costs` may have any.
    """
    names: list[str] = brokers.column("broker").to_pylist()
    rows = dict(
        zip(
            core_costs.column("broker").to_pylist(),
            core_costs.column("costs").to_pylist(),
            strict=True,
        )
    )
    if len(set(names)) < len(names):
        raise BadInput("brokers", "has a broker twice")
    for name in names:
        costs = rows.get(name)
        if costs is None or len(costs) != len(names) or None in costs:
            raise BadInput(
                "core_costs", f"must have {len(names):,} costs for broker {quoted(name)}"
            )
    given = np.array([rows[name] for name in names], np.float64).reshape(len(names), len(names))
    if not (np.isfinite(given) & (given >= 0.0)).all():
        raise BadInput("core_costs", "has a cost that is not a number of at least 0")
    prices = symmetric_prices(
        given, lambda i, j: f"core_costs of {quoted(names[i])} to {quoted(names[j])}"
    )
    order = sorted(range(len(names)), key=names.__getitem__)
    prices = np.ascontiguousarray(prices[np.ix_(order, order)])
    return CorePrices(tuple(names[index] for index in order), shortest_prices(prices))


def broker_traffic(spark: SparkSession, everybody: Population, core: CorePrices) -> DataFrame:
    """Return the table `broker_traffic`: what links between brokers carry, both ways together.

    That of `wiring.flows` when everybody is attached to the home broker: every message
    travels once along the minimum spanning tree of the brokers that want its cell, so that
    traffic times price, added up, is what `wiring.cost` calls the core. A pair is there once,
    the smaller name first, if it carries anything.
    """
    import pyarrow as pa

    missing = sorted(set(everybody.brokers) - set(core.brokers))
    if missing:
        raise BadInput("users", f"are at home at {quoted(missing[0])}, which is not in brokers")
    entering, wanting = everybody.at_brokers(core.brokers)
    flows = carried(core.prices, entering, wanting > 0)
    one, other = np.nonzero(flows)
    names = pa.array(core.brokers, pa.string())
    found = pa.table(
        {
            "broker": names.take(pa.array(one)),
            "other": names.take(pa.array(other)),
            "bytes_per_second": pa.array(flows[one, other]),
        }
    )
    return spark.createDataFrame(found, table_schema("broker_traffic").struct_type)


def partners(spark: SparkSession, everybody: Population, most: int = 10) -> DataFrame:
    """Return the table `partners`: with whom every user has most traffic, both ways together.

    Exact, of equal partners the smaller name first. Executors work on some users each, and
    have what all of them publish and want.
    """
    import pyarrow as pa

    if not 1 <= most <= PARTNERS_MAX:
        raise BadInput("--partners", f"must be between 1 and {PARTNERS_MAX:,}, not {most}")
    users = everybody.problem.user_count
    names = pa.array(everybody.problem.users, pa.string())
    everything = exchange_of(everybody.problem)
    pairs = users * len(everything.set_start)
    tasks = max(1, min(_TASKS_MAX, max(users // _TASK_USERS, pairs // _TASK_PAIRS)))
    shared = broadcast(spark, (everything, names))

    def ranked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        exchange, known = shared.value
        for batch in batches:
            for task in batch.column(0).to_pylist():
                yield _ranked(
                    exchange, known, users * task // tasks, users * (task + 1) // tasks, most
                )

    return map_in_arrow(
        spark.range(0, tasks, 1, tasks), ranked, table_schema("partners").struct_type
    )


def _ranked(exchange: Exchange, names: pa.Array, first: int, end: int, most: int) -> pa.RecordBatch:
    import pyarrow as pa

    found, rates, counts = heaviest(exchange, first, end, most)
    row, place = np.nonzero(np.arange(most) < counts[:, None])
    return pa.record_batch(
        {
            "user": names.take(pa.array(exchange.member[first:end][row])),
            "rank": pa.array((place + 1).astype(np.int32)),
            "partner": names.take(pa.array(found[row, place])),
            "bytes_per_second": pa.array(rates[row, place]),
        }
    )
