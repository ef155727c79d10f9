"""How often servers are sent updates of quoted objects, as direct children of the source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from distributary.pipeline.schemas import table_schema
from distributary.pipeline.transforms.followers import Followers, ObjectFollowers
from distributary.pipeline.transforms.object_tally import ObjectTally
from distributary.pipeline.transforms.rate_state import NEWS, QUOTE, RATE_STATE, ObjectState
from distributary.pipeline.transforms.windows import Advance
from distributary.pipeline.workers import map_in_arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from distributary.pipeline.broadcast import Broadcast

__all__ = ["carried_rates", "news_in", "objects_in", "rates_advanced"]

_QUOTES = ("object", "time", "value")


def rates_advanced(
    state: DataFrame | None,
    quotes: DataFrame,
    followers: Broadcast[Followers],
    advance: Advance,
    *,
    tasks: int,
) -> DataFrame:
    """Return what a stream of quotes carries on after a batch: rows of `rate_state`.

    Quotes from before the watermark are counted in the order of their times, and windows
    that have closed by then give news. Later quotes wait.

    No quote of the batch is older than the watermark before, or has the object and time of
    another one.
    """
    from pyspark.sql import functions as f

    def advanced(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        everybody = followers.value
        for kept in _states(batches, everybody):
            times, values = kept.quotes()
            settled = int(np.searchsorted(times, advance.watermark_us))
            news = kept.tally.advance(times[:settled], values[:settled], advance)
            yield kept.rows(times[settled:], values[settled:], news, everybody)

    rows = quotes.select(*_QUOTES, f.lit(QUOTE).cast("tinyint").alias("part"))
    none_yet = quotes.sparkSession.createDataFrame([], RATE_STATE)
    carried = none_yet if state is None else _carried(state)
    rows = carried.unionByName(rows, allowMissingColumns=True)
    return map_in_arrow(_by_object(rows, tasks), advanced, RATE_STATE)


def carried_rates(state: DataFrame, followers: Broadcast[Followers], *, tasks: int) -> DataFrame:
    """Return the table `rates` over all quotes that a stream has seen, waiting ones too."""

    def counted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        everybody = followers.value
        for kept in _states(batches, everybody):
            kept.tally.add(*kept.quotes())
            kept.tally.finish()
            yield _rated(kept.name, kept.tally, everybody)

    return map_in_arrow(
        _by_object(_carried(state), tasks), counted, table_schema("rates").struct_type
    )


def news_in(state: DataFrame, *, length_us: int) -> DataFrame:
    """Return the news of a batch as rows of the table `decisions`."""
    from pyspark.sql import functions as f

    ends = f.timestamp_micros(f.unix_micros("time") + f.lit(length_us))
    return state.filter(f.col("part") == NEWS).select(
        f.lit("rate").alias("kind"),
        f.col("server").alias("subject"),
        "object",
        f.col("time").alias("window_start"),
        ends.alias("window_end"),
        "value",
        f.col("reported").alias("previous"),
    )


def _carried(state: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return state.filter(f.col("part") < NEWS)


def _by_object(rows: DataFrame, tasks: int) -> DataFrame:
    return rows.repartition(tasks, "object").sortWithinPartitions("object", "part", "time", "value")


@dataclass(frozen=True, eq=False)
class _Object:
    name: str
    followers: ObjectFollowers


def objects_in(
    batches: Iterable[pa.RecordBatch], everybody: Followers
) -> Iterator[tuple[_Object, Iterator[pa.RecordBatch]]]:
    """Yield objects with their rows, which must be used up before the next."""
    for found, pieces in groupby(_pieces(batches, everybody), key=itemgetter(0)):
        yield found, map(itemgetter(1), pieces)


def _states(batches: Iterable[pa.RecordBatch], everybody: Followers) -> Iterator[ObjectState]:
    """Yield objects with all that their rows say."""
    for found, pieces in objects_in(batches, everybody):
        state = ObjectState(found.name, found.followers)
        for piece in pieces:
            state.take(piece, everybody)
        yield state


def _pieces(
    batches: Iterable[pa.RecordBatch], everybody: Followers
) -> Iterator[tuple[_Object, pa.RecordBatch]]:
    """Yield the rows of each object, in pieces where they are in several batches."""
    import pyarrow.compute as pc

    last: _Object | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        runs = pc.run_end_encode(batch.column("object"))
        names = runs.values.to_pylist()
        goes_on = last is not None and names[0] == last.name
        of_names = everybody.of(names[1:] if goes_on else names)
        found = [_Object(*item) for item in zip(names[int(goes_on) :], of_names, strict=True)]
        if last is not None and goes_on:
            found.insert(0, last)
        begin = 0
        for last, end in zip(found, runs.run_ends.to_pylist(), strict=True):
            yield last, batch.slice(begin, end - begin)
            begin = end


def _rated(name: str, tally: ObjectTally, everybody: Followers) -> pa.RecordBatch:
    import pyarrow as pa

    servers = pa.array(everybody.servers, pa.string()).take(pa.array(tally.followers.servers))
    return pa.record_batch(
        {
            "server": servers,
            "object": pa.repeat(pa.scalar(name, pa.string()), len(servers)),
            "updates_per_second": pa.array(tally.rates()),
        }
    )
