"""What a stream of quotes carries from batch to batch, as rows.

Per object: how many versions there were, what each follower was sent last, and the quotes
that the watermark has not reached yet, which wait because an earlier one may still come. So
there is as much of it as there are pairs of a follower and an object, and quotes within the
delay of the watermark; not more the longer the stream runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.pipeline.transforms.followers import Followers, ObjectFollowers
from distributary.pipeline.transforms.object_tally import ObjectTally, RateNews

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FOLLOWER", "NEWS", "OBJECT", "QUOTE", "RATE_STATE", "ObjectState"]

RATE_STATE = (
    "object STRING NOT NULL, part TINYINT NOT NULL, server STRING, time TIMESTAMP, value DOUBLE, "
    "number BIGINT, began TIMESTAMP, elapsed_ns BIGINT, sent BIGINT, window_sent BIGINT, "
    "reported DOUBLE"
)
"""The columns of the rows; which of them mean something depends on `part`."""

OBJECT, FOLLOWER, QUOTE, NEWS = range(4)
"""What a row is about, in the order in which they are read.

OBJECT: `number` of versions, `time` of the last and `began`, that of the first.
FOLLOWER: the `value` that `server` was sent last, its change `number` and age since the first
version; how many it was `sent`, how many in the open window, and the rate last `reported`.
QUOTE: a `value` and its `time`, not looked at yet.
NEWS: a rate (`value`) of `server` in the window that begins at `time`, to be reported; what was
`reported` before. It is not carried on.
"""


class ObjectState:
    """One object: its tally, and the quotes that are still to be counted.

    Who did not follow it before begins with the next version; who does no longer is
    forgotten.
    """

    def __init__(self, name: str, followers: ObjectFollowers) -> None:
        self.name = name
        self.tally = ObjectTally(followers)
        self._times: list[IntArray] = []
        self._values: list[FloatArray] = []

    def take(self, rows: pa.RecordBatch, everybody: Followers) -> None:
        """Take rows of the object, in the order of `part`, `time` and `value`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        parts = np.asarray(rows.column("part"))
        bounds = np.searchsorted(parts, [OBJECT, FOLLOWER, QUOTE, NEWS]).tolist()
        for begin, end, part in zip(bounds, bounds[1:], (OBJECT, FOLLOWER, QUOTE), strict=False):
            some = rows.slice(begin, end - begin)
            if not some.num_rows:
                continue
            if part == OBJECT:
                self.tally.versions = int(_integers(some, "number")[0])
                self.tally.first_us = int(_times(some, "began")[0])
                self.tally.last_us = int(_times(some, "time")[0])
            elif part == FOLLOWER:
                known = pc.index_in(some.column("server"), value_set=pa.array(everybody.servers))
                self._take_followers(some, np.asarray(known.fill_null(-1), np.int64))
            else:
                self._times.append(_times(some, "time"))
                self._values.append(_floats(some, "value"))

    def quotes(self) -> tuple[IntArray, FloatArray]:
        """Return the times and values of the quotes that were taken, in order."""
        return (
            np.concatenate([np.empty(0, np.int64), *self._times]),
            np.concatenate([np.empty(0), *self._values]),
        )

    def rows(
        self, times_us: IntArray, values: FloatArray, news: RateNews, everybody: Followers
    ) -> pa.RecordBatch:
        """Return the state as rows, with the quotes that wait, and with news."""
        import pyarrow as pa

        tally = self.tally
        # Nothing is known of an object before its first version was looked at.
        objects = 1 if tally.versions else 0
        servers = tally.followers.servers if objects else tally.followers.servers[:0]
        counts = (objects, len(servers), len(times_us), len(news.values))
        of_followers = np.arange(len(servers))
        names = pa.array(everybody.servers, pa.string())
        told = tally.followers.servers[news.followers]

        def column(kind: pa.DataType, *values: pa.Array | None) -> pa.Array:
            return pa.concat_arrays(
                [
                    pa.nulls(count, kind) if part is None else part.cast(kind)
                    for part, count in zip(values, counts, strict=True)
                ]
            )

        text, real, whole, time = pa.string(), pa.float64(), pa.int64(), pa.timestamp("us", "UTC")
        last = tally.last.taken(of_followers)
        return pa.record_batch(
            {
                "object": pa.repeat(pa.scalar(self.name, text), sum(counts)),
                "part": pa.array(np.repeat(np.arange(len(counts)), counts), pa.int8()),
                "server": column(
                    text, None, names.take(pa.array(servers)), None, names.take(pa.array(told))
                ),
                "time": column(
                    time,
                    pa.array([tally.last_us][:objects], whole),
                    None,
                    pa.array(times_us),
                    pa.array(news.windows_us),
                ),
                "value": column(
                    real, None, pa.array(last.values), pa.array(values), pa.array(news.values)
                ),
                "number": column(
                    whole,
                    pa.array([tally.versions][:objects], whole),
                    pa.array(last.change_numbers),
                    None,
                    None,
                ),
                "began": column(
                    time, pa.array([tally.first_us][:objects], whole), None, None, None
                ),
                "elapsed_ns": column(whole, None, pa.array(last.times_ns), None, None),
                "sent": column(whole, None, pa.array(tally.sent[of_followers]), None, None),
                "window_sent": column(
                    whole, None, pa.array(tally.window_sent[of_followers]), None, None
                ),
                "reported": column(
                    real,
                    None,
                    _known(tally.reported[of_followers]),
                    None,
                    _known(news.befores),
                ),
            }
        )

    def _take_followers(self, rows: pa.RecordBatch, numbers: IntArray) -> None:
        """Take what is known of servers, given by their numbers, -1 for unknown ones."""
        servers = self.tally.followers.servers
        if not len(servers):
            return
        places = np.minimum(np.searchsorted(servers, numbers), len(servers) - 1)
        kept = servers[places] == numbers
        places = places[kept]
        tally = self.tally
        tally.last.begun[places] = True
        tally.last.values[places] = _floats(rows, "value")[kept]
        tally.last.change_numbers[places] = _integers(rows, "number")[kept]
        tally.last.times_ns[places] = _integers(rows, "elapsed_ns")[kept]
        tally.sent[places] = _integers(rows, "sent")[kept]
        tally.window_sent[places] = _integers(rows, "window_sent")[kept]
        tally.reported[places] = _floats(rows, "reported")[kept]


def _known(values: FloatArray) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, mask=np.isnan(values))


def _integers(rows: pa.RecordBatch, column: str) -> IntArray:
    return np.asarray(rows.column(column), np.int64)


def _times(rows: pa.RecordBatch, column: str) -> IntArray:
    import pyarrow as pa

    return np.asarray(rows.column(column).cast(pa.timestamp("us", "UTC")).cast(pa.int64()))


def _floats(rows: pa.RecordBatch, column: str) -> FloatArray:
    return np.asarray(rows.column(column).to_numpy(zero_copy_only=False), np.float64)
