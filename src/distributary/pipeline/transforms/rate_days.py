"""How often servers are sent updates, day by day: each day ends in a state that the next takes up.

The broker's filter compares a version with the one that was *sent* last, so a day depends on those
before it; but on nothing of them except for what everybody was sent last. That is kept with every
day, and a day that is read again ends where it ended before, or the next one is read again, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.pipeline.schemas import table_schema
from distributary.pipeline.table_files import DAY
from distributary.pipeline.transforms.followers import Followers, ObjectFollowers
from distributary.pipeline.transforms.object_tally import ObjectTally, since_ns
from distributary.pipeline.transforms.rates import objects_in
from distributary.pipeline.workers import map_in_arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from distributary.pipeline.broadcast import Broadcast

__all__ = ["rate_days", "rates_of_days"]

_DAY_US = 86_400_000_000
_NS_PER_US = 1_000
_STATE, _QUOTE = range(2)
_PART = "part"
_OF_STATE = ("server", "behind")


def rate_days(
    state: DataFrame | None,
    quotes: DataFrame,
    followers: Broadcast[Followers],
    days: Sequence[date],
    *,
    tasks: int,
) -> DataFrame:
    """Return the table `rate_days` of days that follow one another, with their days.

    `quotes` are those of these days, `state` the table of the day before the first; None when
    there is none. Every day has a row for each server that was sent a version of an object by its
    end, be it that day or earlier: the number it was `sent` that day, the times of the `first`
    and the `last` version of the day, and what it was sent last: the `value`, when (`sent_at`),
    and how many versions there were since (`behind`).

    Of quotes of one object and time the largest value counts. Who did not follow an object
    before begins with the first version of it. The result does not depend on the number of
    `tasks`.
    """
    from pyspark.sql import functions as f

    numbers = [(day - date(1970, 1, 1)).days for day in days]

    def counted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        everybody = followers.value
        for found, pieces in objects_in(batches, everybody):
            tally = _DayTally(found.followers, numbers)
            for piece in pieces:
                tally.take(piece, everybody)
            yield tally.rows(found.name, everybody)

    rows = quotes.dropna(subset=["object", "time", "value"]).select("object", "time", "value")
    order = ["object", "time", "value"]
    if state is not None:
        # Without a state these columns would be empty, and yet be shuffled, sorted and handed
        # over with every quote: a fifth of what Java does with them.
        nothing = (f.lit(None).cast("string"), f.lit(None).cast("bigint"))
        rows = _parted(rows.withColumns(dict(zip(_OF_STATE, nothing, strict=True))), _QUOTE)
        before = state.select("object", f.col("sent_at").alias("time"), "value", *_OF_STATE)
        rows = rows.unionByName(_parted(before, _STATE))
        order.insert(1, _PART)
    # A number of partitions that is given is kept: by size alone Spark would make one task
    # of quotes that take minutes to count.
    rows = rows.repartition(tasks, "object").sortWithinPartitions(*order)
    return map_in_arrow(rows, counted, table_schema("rate_days").stored_type)


def _parted(rows: DataFrame, part: int) -> DataFrame:
    """Return rows that say whether they are quotes or the state before them."""
    from pyspark.sql import functions as f

    return rows.withColumn(_PART, f.lit(part).cast("tinyint"))


def rates_of_days(found: DataFrame) -> DataFrame:
    """Return the table `rates` of some days of `rate_days`: sums over them.

    Updates per second from the first version of the object to the last; 0 for a single one. An
    object without a version on any of the days has no rate.
    """
    from pyspark.sql import functions as f

    seconds = (f.unix_micros("last") - f.unix_micros("first")) / 1e6
    rate = f.when(seconds > 0, f.col("sent") / seconds).otherwise(f.lit(0.0))
    return (
        found.groupBy("server", "object")
        .agg(
            f.sum("sent").alias("sent"), f.min("first").alias("first"), f.max("last").alias("last")
        )
        .filter(f.col("first").isNotNull())
        .select("server", "object", rate.alias("updates_per_second"))
    )


class _DayTally:
    """One object over some days, given by their numbers since 1970."""

    def __init__(self, followers: ObjectFollowers, days: Sequence[int]) -> None:
        self._tally = ObjectTally(followers)
        self._days = days
        self._done = 0
        self._columns: list[dict[str, IntArray | FloatArray]] = []
        self._before = self._tally.sent.copy()
        self._first_us: int | None = None
        self._last_us = 0
        self._known: list[pa.RecordBatch] = []

    def take(self, rows: pa.RecordBatch, everybody: Followers) -> None:
        """Take what is known of the day before, and quotes in the order of their times."""
        import pyarrow as pa

        quotes = rows
        if _PART in rows.schema.names:
            known = int(np.searchsorted(np.asarray(rows.column(_PART)), _QUOTE))
            if known:
                self._known.append(rows.slice(0, known))
            quotes = rows.slice(known)
        if quotes.num_rows:
            self._restore(everybody)
        times_us = np.asarray(
            quotes.column("time").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        )
        values = np.asarray(quotes.column("value"))
        of_days = times_us // _DAY_US
        begin = 0
        while begin < len(times_us):
            self._end_days_before(int(of_days[begin]))
            end = int(np.searchsorted(of_days, of_days[begin], side="right"))
            self._tally.add(times_us[begin:end], values[begin:end])
            if self._first_us is None:
                self._first_us = int(times_us[begin])
            self._last_us = int(times_us[end - 1])
            begin = end

    def rows(self, name: str, everybody: Followers) -> pa.RecordBatch:
        """Return all days of the object."""
        import pyarrow as pa
        import pyarrow.compute as pc

        self._restore(everybody)
        self._end_days_before(self._days[-1] + 1)

        def column(key: str, kind: pa.DataType) -> pa.Array:
            parts = [part[key] for part in self._columns]
            return pa.array(np.concatenate([np.empty(0, np.int64), *parts])).cast(kind)

        def time(key: str) -> pa.Array:
            return column(key, pa.int64()).cast(pa.timestamp("us", "UTC"))

        with_quotes = column("quoted", pa.bool_())
        servers = pa.array(everybody.servers, pa.string()).take(column("server", pa.int64()))
        nothing = pa.scalar(None, pa.timestamp("us", "UTC"))
        values = [part["value"] for part in self._columns]
        return pa.record_batch(
            {
                "object": pa.repeat(pa.scalar(name, pa.string()), len(servers)),
                "server": servers,
                "sent": column("sent", pa.int64()),
                "first": pc.if_else(with_quotes, time("first"), nothing),
                "last": pc.if_else(with_quotes, time("last"), nothing),
                "value": pa.array(np.concatenate([np.empty(0), *values])),
                "sent_at": time("sent_at"),
                "behind": column("behind", pa.int64()),
                DAY: column("day", pa.int32()).cast(pa.date32()),
            }
        )

    def _restore(self, everybody: Followers) -> None:
        """Begin where the day before has ended, as soon as all is known of it."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self._known:
            return
        rows = pa.Table.from_batches(self._known).combine_chunks()
        self._known.clear()
        tally = self._tally
        servers = tally.followers.servers
        numbers = pc.index_in(rows["server"], value_set=pa.array(everybody.servers, pa.string()))
        at = np.asarray(numbers.fill_null(-1), np.int64)
        kept = np.isin(at, servers)
        if not kept.any():
            return
        places = np.searchsorted(servers, at[kept])
        behind = np.asarray(rows["behind"])[kept]
        times = rows["time"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        times_us = np.asarray(times)[kept]
        # Only differences matter: of numbers of versions, and of times.
        tally.first_us = int(times_us.min())
        tally.versions = int(behind.max()) + 1
        tally.last.begun[places] = True
        tally.last.values[places] = np.asarray(rows["value"])[kept]
        tally.last.times_ns[places] = since_ns(times_us, tally.first_us)
        tally.last.change_numbers[places] = tally.versions - 1 - behind

    def _end_days_before(self, day: int) -> None:
        """Note how each of the days before one has ended, that has not yet."""
        tally = self._tally
        while self._done < len(self._days) and self._days[self._done] < day:
            tally.finish()
            begun = np.flatnonzero(tally.last.begun)
            count = len(begun)
            sent_at = tally.first_us + tally.last.times_ns[begun] // _NS_PER_US
            self._columns.append(
                {
                    "server": tally.followers.servers[begun],
                    "sent": (tally.sent - self._before)[begun],
                    "quoted": np.full(count, self._first_us is not None),
                    "first": np.full(count, self._first_us or 0),
                    "last": np.full(count, self._last_us),
                    "value": tally.last.values[begun],
                    "sent_at": sent_at,
                    "behind": tally.versions - 1 - tally.last.change_numbers[begun],
                    "day": np.full(count, self._days[self._done]),
                }
            )
            self._before = tally.sent.copy()
            self._first_us = None
            self._done += 1
