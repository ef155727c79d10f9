"""Traffic of users by windows of time, for streams: what is counted, and what of it is news.

What users publish are the volumes of `channels.volumes`, and what they receive is that of
`received.received`, as over all time; both in whole numbers, by window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distributary.arrays import FloatArray
from distributary.content.content_space import ContentSpace
from distributary.pipeline.table_files import DAY
from distributary.pipeline.transforms.channels import volumes
from distributary.pipeline.transforms.received import received
from distributary.pipeline.transforms.reporting import reported
from distributary.pipeline.transforms.windows import Advance, closed_windows, window_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

__all__ = [
    "IN",
    "OUT",
    "REPORTED",
    "WINDOW_RECEIVED",
    "WINDOW_VOLUMES",
    "all_received",
    "all_volumes",
    "closed_received",
    "closed_volumes",
    "received_added",
    "traffic_news",
    "volumes_added",
]

WINDOW_VOLUMES = (
    "window TIMESTAMP, user STRING, cell BIGINT NOT NULL, bytes BIGINT NOT NULL, "
    "publications BIGINT NOT NULL, untimed BIGINT NOT NULL, first TIMESTAMP, last TIMESTAMP"
)
"""What a stream carries on: volumes by window; those of windows long closed have none."""

WINDOW_RECEIVED = "window TIMESTAMP, user STRING NOT NULL, bytes BIGINT NOT NULL"
"""The same of what users receive."""

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
    # A window may be of two days.
    every = new
    if carried is not None:
        every = _forgotten(carried, advance).select(*columns).unionByName(new)
    return _added_up(every, "window", "user", "cell").select(*columns)


def received_added(
    carried: DataFrame | None, deliveries: DataFrame, publications: DataFrame, advance: Advance
) -> DataFrame:
    """Return what users receive after a batch: its deliveries, with their days, and publications.

    Events of different days may share an identifier.
    """
    from pyspark.sql import functions as f

    window = f.timestamp_micros(_window(f.col("time"), advance.length_us)).alias("window")
    # The session's time zone is UTC. No join compares nothing with nothing.
    day = f.coalesce(f.to_date("time").cast("string"), f.lit("")).alias(DAY)
    timed = publications.select("source", "event_id", day, window)
    own = deliveries.withColumn(DAY, f.coalesce(f.col(DAY).cast("string"), f.lit("")))
    new = received(own.join(timed, ["source", "event_id", DAY]), "window", DAY)
    new = new.groupBy("window", "user").agg(f.sum("bytes").alias("bytes"))
    if carried is None:
        return new
    every = _forgotten(carried, advance).unionByName(new)
    return every.groupBy("window", "user").agg(f.sum("bytes").alias("bytes"))


def all_volumes(carried: DataFrame) -> DataFrame:
    """Return the volumes over all time, as `channels.volumes` has them."""
    return _added_up(carried, "user", "cell")


def all_received(carried: DataFrame) -> DataFrame:
    """Return what users receive over all time, as `received.received` has it."""
    from pyspark.sql import functions as f

    return carried.groupBy("user").agg(f.sum("bytes").alias("bytes"))


def closed_volumes(carried: DataFrame, advance: Advance) -> DataFrame:
    """Return what users published in windows that have closed since the watermark before."""
    from pyspark.sql import functions as f

    return _closed(carried.filter(f.col("user").isNotNull()), advance)


def closed_received(carried: DataFrame, advance: Advance) -> DataFrame:
    """Return what users received in windows that have closed since the watermark before."""
    return _closed(carried, advance)


def traffic_news(
    published: pa.Table,
    received: pa.Table,
    interests: pa.Table,
    before: pa.Table | None,
    advance: Advance,
) -> tuple[pa.Table, pa.Table]:
    """Return the decisions about closed windows, and what is reported last of everybody.

    Parameters
    ----------
    published, received
        What `closed_volumes` and `closed_received` return.
    interests
        Whoever is in this table may receive something, and has received nothing so far.
    before
        What was reported last, with the columns of `REPORTED`.
    advance
        Which windows have closed.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = (published, received, interests, before)
    sides = [part.column("user") for part in parts if part is not None]
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
    windows = [np.asarray(part.column("window"), np.int64) for part in (received, published)]
    length = advance.length_us
    first = None if advance.before_us is None else window_of(advance.before_us, length)
    looked_at = closed_windows(
        np.unique(np.concatenate(windows)),
        first_us=first,
        watermark_us=advance.watermark_us,
        length_us=length,
    )
    told = []
    for start in looked_at.tolist():
        values = np.stack(
            [
                _per_second(part.filter(pa.array(own == start)), users, length / _US_PER_SECOND)
                for part, own in zip((received, published), windows, strict=True)
            ]
        )
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


def _per_second(moved: pa.Table, users: pa.Array, seconds: float) -> FloatArray:
    """Return the bytes per second of every user in one window."""
    import pyarrow.compute as pc

    places = np.asarray(pc.index_in(moved.column("user"), value_set=users), np.int64)
    # Bytes are whole numbers, and doubles hold them exactly up to 2 ** 53.
    sums = np.bincount(places, weights=np.asarray(moved.column("bytes")), minlength=len(users))
    found: FloatArray = sums / seconds
    return found


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


def _forgotten(carried: DataFrame, advance: Advance) -> DataFrame:
    """Return what is carried on, without the windows that had closed before."""
    from pyspark.sql import functions as f

    if advance.before_us is None:
        return carried
    closed = _ends(advance.length_us) <= f.lit(advance.before_us)
    return carried.withColumn("window", f.when(~closed, f.col("window")))


def _closed(carried: DataFrame, advance: Advance) -> DataFrame:
    """Return the rows of windows that have closed since the watermark before."""
    from pyspark.sql import functions as f

    closed = _ends(advance.length_us) <= f.lit(advance.watermark_us)
    if advance.before_us is not None:
        closed &= _ends(advance.length_us) > f.lit(advance.before_us)
    found = carried.filter(f.col("window").isNotNull() & closed)
    return found.select(f.unix_micros("window").alias("window"), "user", "bytes")


def _window(time: Column, length_us: int) -> Column:
    """Return where the window of a time begins, in microseconds since 1970."""
    from pyspark.sql import functions as f

    micros = f.unix_micros(time)
    return micros - f.pmod(micros, f.lit(length_us))


def _ends(length_us: int) -> Column:
    from pyspark.sql import functions as f

    return f.unix_micros("window") + f.lit(length_us)
