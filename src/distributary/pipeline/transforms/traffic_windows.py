"""Traffic of users by windows of time, for streams: what is counted, and what of it is news.

Volumes are those of `channels.volumes`, in whole numbers, by window. What a user sends and
receives in a window is worked out by the same code as over all time, `exchange.population`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distributary.arrays import FloatArray
from distributary.content.content_space import ContentSpace
from distributary.pipeline.transforms.channels import volumes
from distributary.pipeline.transforms.exchange import population
from distributary.pipeline.transforms.reporting import reported
from distributary.pipeline.transforms.windows import Advance, closed_windows, window_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

__all__ = [
    "IN",
    "OUT",
    "REPORTED",
    "WINDOW_VOLUMES",
    "all_volumes",
    "closed_volumes",
    "traffic_news",
    "volumes_added",
]

WINDOW_VOLUMES = (
    "window TIMESTAMP, user STRING, cell BIGINT NOT NULL, bytes BIGINT NOT NULL, "
    "publications BIGINT NOT NULL, untimed BIGINT NOT NULL, first TIMESTAMP, last TIMESTAMP"
)
"""What a stream carries on: volumes by window; those of windows long closed have none."""

REPORTED = "user STRING NOT NULL, way STRING NOT NULL, value DOUBLE NOT NULL"
"""What was reported last of each user, each way."""

IN, OUT = "in", "out"
"""The ways of traffic, as decisions name them."""

_SUMS = ("bytes", "publications", "untimed")
_US_PER_SECOND = 1e6


def volumes_added(
    carried: DataFrame | None, publications: DataFrame, space: ContentSpace, advance: Advance
) -> DataFrame:
    """Return the volumes after a batch.

    Windows that had closed before `advance` lose their window: only their sum is still
    needed.
    """
    from pyspark.sql import functions as f

    # The publisher stands in for both publisher and window, as volumes are by publisher.
    window = _window(f.col("time"), advance.length_us)
    publisher = f.when(f.col("publisher").isNull(), "-").otherwise(
        f.concat(f.lit("+"), f.col("publisher"))
    )
    marked = f.concat(f.coalesce(window.cast("string"), f.lit("")), publisher)
    found = volumes(publications.withColumn("publisher", marked), space)
    begin = f.regexp_extract("user", r"^(-?[0-9]*)[+-]", 1)
    own = f.substring(f.col("user"), f.length(begin) + 2, f.length("user"))
    known = f.substring(f.col("user"), f.length(begin) + 1, f.lit(1)) == "+"
    columns = [name.split()[0] for name in WINDOW_VOLUMES.split(", ")]
    new = (
        found.withColumn("window", f.timestamp_micros(f.nullif(begin, f.lit("")).cast("bigint")))
        .withColumn("user", f.when(known, own))
        .select(*columns)
    )
    if carried is None:
        return new
    before = carried
    if advance.before_us is not None:
        closed = _ends(advance.length_us) <= f.lit(advance.before_us)
        before = carried.withColumn("window", f.when(~closed, f.col("window")))
    every = before.select(*columns).unionByName(new)
    return _added_up(every, "window", "user", "cell").select(*columns)


def all_volumes(carried: DataFrame) -> DataFrame:
    """Return the volumes over all time, as `channels.volumes` has them."""
    return _added_up(carried, "user", "cell")


def closed_volumes(carried: DataFrame, advance: Advance) -> DataFrame:
    """Return what users published in windows that have closed since the watermark before."""
    from pyspark.sql import functions as f

    closed = _ends(advance.length_us) <= f.lit(advance.watermark_us)
    if advance.before_us is not None:
        closed &= _ends(advance.length_us) > f.lit(advance.before_us)
    found = carried.filter(f.col("window").isNotNull() & f.col("user").isNotNull() & closed)
    return found.select(f.unix_micros("window").alias("window"), "user", "cell", "bytes")


def traffic_news(
    closed: pa.Table, interests: pa.Table, before: pa.Table | None, advance: Advance
) -> tuple[pa.Table, pa.Table]:
    """Return the decisions about closed windows, and what is reported last of everybody.

    `before` is what was reported last, with the columns of `REPORTED`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    sides = [part.column("user") for part in (closed, interests, before) if part is not None]
    users = pc.unique(
        pa.chunked_array([chunk for side in sides for chunk in side.chunks], pa.string())
    )
    users = users.take(pc.sort_indices(users))
    last = np.full((2, len(users)), np.nan)
    for row, way in enumerate((IN, OUT)):
        if before is not None:
            known = before.filter(pc.equal(before.column("way"), way))
            places = pc.index_in(known.column("user"), value_set=users)
            last[row, np.asarray(places)] = np.asarray(known.column("value"))
    windows = np.asarray(closed.column("window"), np.int64)
    length = advance.length_us
    first = None if advance.before_us is None else window_of(advance.before_us, length)
    looked_at = closed_windows(
        np.unique(windows), first_us=first, watermark_us=advance.watermark_us, length_us=length
    )
    told = []
    for start in looked_at.tolist():
        some = closed.filter(pa.array(windows == start))
        values = _traffic(some, interests, users, length / _US_PER_SECOND)
        found = reported(
            values.reshape(-1), np.arange(values.size + 1), last.reshape(-1), tau=advance.tau
        )
        last = found.previous.reshape(last.shape)
        chosen = np.flatnonzero(found.marks)
        told.append(_decisions(chosen, start, values.reshape(-1), found.befores, users, length))
    ways, places = np.nonzero(~np.isnan(last))
    return (
        pa.concat_tables([_no_decisions(), *told]),
        pa.table(
            {
                "user": users.take(pa.array(places)),
                "way": pa.array([IN, OUT]).take(pa.array(ways)),
                "value": pa.array(last[ways, places]),
            }
        ),
    )


def _traffic(closed: pa.Table, interests: pa.Table, users: pa.Array, seconds: float) -> FloatArray:
    """Return the bytes per second in and out of every user in one window, shape (2, users)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = np.zeros((2, len(users)))
    if closed.num_rows:
        per_second = np.asarray(closed.column("bytes")) / seconds
        rates = closed.select(["user", "cell"]).append_column(
            "bytes_per_second", pa.array(per_second)
        )
        problem = population(rates, interests, None).problem
        places = np.asarray(pc.index_in(pa.array(problem.users, pa.string()), value_set=users))
        values[0, places] = problem.received
        values[1, places] = problem.sent
    return values


def _decisions(
    chosen: np.ndarray,
    start: int,
    values: FloatArray,
    befores: FloatArray,
    users: pa.Array,
    length_us: int,
) -> pa.Table:
    import pyarrow as pa

    count = len(chosen)
    previous = befores[chosen]
    bounds = (np.full(count, start), np.full(count, start + length_us))
    return pa.table(
        [
            pa.array(["traffic"] * count, pa.string()),
            users.take(pa.array(chosen % max(len(users), 1))),
            pa.array([IN, OUT]).take(pa.array(chosen // max(len(users), 1))),
            *(pa.array(bound).cast(pa.timestamp("us", "UTC")) for bound in bounds),
            pa.array(values[chosen]),
            pa.array(previous, mask=np.isnan(previous)),
        ],
        schema=_no_decisions().schema,
    )


def _no_decisions() -> pa.Table:
    import pyarrow as pa

    text, time, real = pa.string(), pa.timestamp("us", "UTC"), pa.float64()
    return pa.schema(
        [
            ("kind", text),
            ("subject", text),
            ("object", text),
            ("window_start", time),
            ("window_end", time),
            ("value", real),
            ("previous", real),
        ]
    ).empty_table()


def _added_up(rows: DataFrame, *keys: str) -> DataFrame:
    from pyspark.sql import functions as f

    return rows.groupBy(*keys).agg(
        *(f.sum(name).alias(name) for name in _SUMS),
        f.min("first").alias("first"),
        f.max("last").alias("last"),
    )


def _window(time: Column, length_us: int) -> Column:
    """Return where the window of a time begins, in microseconds since 1970."""
    from pyspark.sql import functions as f

    micros = f.unix_micros(time)
    return micros - f.pmod(micros, f.lit(length_us))


def _ends(length_us: int) -> Column:
    from pyspark.sql import functions as f

    return f.unix_micros("window") + f.lit(length_us)
