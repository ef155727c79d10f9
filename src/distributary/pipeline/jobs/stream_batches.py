"""What a stream does with each batch of files: the transforms of the batch jobs, on new rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from distributary.content.content_space import ContentSpace
from distributary.pipeline.broadcast import Broadcast
from distributary.pipeline.jobs.stream_files import BatchFiles, arrivals_plan
from distributary.pipeline.jobs.stream_ingest import IngestedBatch, ingest_batch
from distributary.pipeline.jobs.stream_state import BatchState, Checkpoint
from distributary.pipeline.schemas import table_schema
from distributary.pipeline.sources.files import SourceFile
from distributary.pipeline.sources.source_rows import layout_of
from distributary.pipeline.store import Store
from distributary.pipeline.table_log import Draft
from distributary.pipeline.transforms.channels import rates_published, seconds_spanned
from distributary.pipeline.transforms.deliveries import deliveries
from distributary.pipeline.transforms.exchange import population
from distributary.pipeline.transforms.followers import Followers, ObjectEvents
from distributary.pipeline.transforms.publishers import PublisherRule
from distributary.pipeline.transforms.rate_state import QUOTE, RATE_STATE
from distributary.pipeline.transforms.rates import carried_rates, news_in, rates_advanced
from distributary.pipeline.transforms.recipients import Recipients
from distributary.pipeline.transforms.reporting import TAU
from distributary.pipeline.transforms.traffic import traffic
from distributary.pipeline.transforms.traffic_windows import (
    REPORTED,
    WINDOW_RECEIVED,
    WINDOW_VOLUMES,
    all_received,
    all_volumes,
    closed_received,
    closed_volumes,
    received_added,
    traffic_news,
    volumes_added,
)
from distributary.pipeline.transforms.windows import Advance, window_of
from distributary.pipeline.workers import task_count

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["Audience", "Batches", "StreamOptions"]

PUBLICATIONS, QUOTES = "publications", "quotes"
_KEYS = "source STRING NOT NULL, event_id STRING NOT NULL, time TIMESTAMP NOT NULL"
# Parts of the state, by the names of their tables.
_RATES, _SEEN, _VOLUMES, _REPORTED = "rates", "keys", "volumes", "reported"
_RECEIVED = "received"


@dataclass(frozen=True)
class StreamOptions:
    """How a stream is run.

    Attributes
    ----------
    folder
        Where files arrive: in the folders `publications` and `quotes` below it, or
        anywhere else below it.
    checkpoint
        The folder in which the stream keeps what it remembers.
    table
        The table of files that are in none of the two folders; told by the first of them
        unless given.
    once
        Whether to stop when all files that are there are done.
    every_us
        How often to look for new files, otherwise.
    files_max
        How many files make a batch at most.
    window_us, delay_us
        The length of windows, and how long to wait for rows that come too late.
    tau
        By which share a value may rise unreported.
    events
        What events of quoted objects look like.
    space
        The content space in which traffic is counted.
    graph
        A calibrated adaptation graph; those that come with distributary by default.
    publishers
        Who names the publishers of publications, and what becomes of unknown ones.
    collected_max
        How many rows of closed windows the driver holds at once, beyond those of one.
    """

    folder: str
    checkpoint: str
    table: str | None = None
    once: bool = False
    every_us: int = 10_000_000
    files_max: int = 1_000
    window_us: int = 60_000_000
    delay_us: int = 10_000_000
    tau: float = TAU
    events: ObjectEvents = field(default_factory=ObjectEvents)
    space: ContentSpace = field(default_factory=ContentSpace.default)
    graph: Path | str | None = None
    publishers: PublisherRule = field(default_factory=PublisherRule)
    collected_max: int = 2_000_000


@dataclass(frozen=True)
class Audience:
    """Everybody whom arriving rows concern.

    `users` is None when there is no such table.
    """

    recipients: Broadcast[Recipients]
    followers: Broadcast[Followers]
    interests: pa.Table
    users: pa.Table | None
    space: ContentSpace


class Batches:
    """Takes batches of files one after the other.

    Attributes
    ----------
    counts
        What happened since this object was made: rows by table, late rows, batches.
    """

    def __init__(
        self, target: Store, checkpoint: Checkpoint, audience: Audience, options: StreamOptions
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._target = target
        self._checkpoint = checkpoint
        self._audience = audience
        self._options = options
        users = audience.users
        self._users = None if users is None else target.spark.createDataFrame(users)
        self._tasks = max(2, task_count(target.spark, per_core=1))

    def take(self, batch: int, files: Sequence[SourceFile]) -> None:
        """Do everything that a batch asks for; doing it again changes nothing."""
        before = self._checkpoint.after(batch - 1)
        arrivals = BatchFiles.of(
            files, self._options.folder, others=self._options.table or before.others
        )
        state = replace(before.following(), others=arrivals.others)
        apart: list[DataFrame] = []
        news: list[DataFrame] = []
        # Counted at the end: a batch that fails half way is counted when it is done.
        counts: Counter[str] = Counter(batches=1)
        with ExitStack() as stack:
            for name, found in sorted(arrivals.files.items()):
                intake = stack.enter_context(
                    ingest_batch(
                        self._target,
                        table_schema(name),
                        arrivals_plan(found, layout_of(table_schema(name))),
                        batch=(self._checkpoint.stream, batch),
                        watermark_us=before.watermarks.get(name),
                        known=self._known(before, name),
                        rule=self._options.publishers,
                        users=self._users,
                    )
                )
                counts.update({name: intake.rows, f"{name}_kept": intake.kept, "late": intake.late})
                counts["files"] += len(found)
                counts["quarantine"] += intake.rows - intake.kept
                if intake.apart is not None:
                    apart.append(intake.apart)
                if intake.kept:
                    take = self._publications if name == PUBLICATIONS else self._quotes
                    state, told = take(state, before, intake)
                    news += told
            self._write("quarantine", apart, batch)
        self._write("decisions", news, batch)
        self._checkpoint.keep(state, before)
        self.counts.update(counts)

    def finish(self) -> dict[str, int]:
        """Write the tables that are about all rows so far; return how many rows they have."""
        from pyspark.sql import functions as f

        state = self._checkpoint.latest()
        written: dict[str, int] = {}
        carried = self._checkpoint.read(state, _RATES, RATE_STATE)
        if carried is not None:
            found = carried_rates(carried, self._audience.followers, tasks=self._tasks)
            written["rates"] = self._target.write("rates", found)
        volumes = self._checkpoint.read(state, _VOLUMES, WINDOW_VOLUMES)
        received = self._checkpoint.read(state, _RECEIVED, WINDOW_RECEIVED)
        if volumes is not None and received is not None:
            found = all_volumes(volumes)
            span = found.agg(seconds_spanned(f.min("first"), f.max("last"))).collect()[0][0]
            per_second = (f.col("bytes") / span).alias("bytes_per_second")
            everybody = population(
                rates_published(found).toArrow(),
                self._audience.interests,
                self._audience.users,
                all_received(received).select("user", per_second).toArrow(),
            )
            found = traffic(self._target.spark, everybody)
            written["traffic"] = self._target.write("traffic", found)
        return written

    def _publications(
        self, state: BatchState, before: BatchState, intake: IngestedBatch
    ) -> tuple[BatchState, list[DataFrame]]:
        """Match the publications of a batch and count them; return the state, and news."""
        import pyarrow as pa
        from pyspark.sql import functions as f

        checkpoint, audience = self._checkpoint, self._audience
        new = self._target.read_draft(intake.draft)
        delivered = self._added("deliveries", deliveries(new, audience.recipients), state.batch)
        state, advance = self._advanced(state, before, PUBLICATIONS, intake)
        carried = checkpoint.read(before, _VOLUMES, WINDOW_VOLUMES)
        volumes = volumes_added(carried, new, audience.space, advance)
        state = checkpoint.write(state, _VOLUMES, volumes)
        got = checkpoint.read(before, _RECEIVED, WINDOW_RECEIVED)
        sent = self._target.read_draft(delivered, with_day=True)
        state = checkpoint.write(state, _RECEIVED, received_added(got, sent, new, advance))
        keys = new.select("source", "event_id", "time")
        known = checkpoint.read(before, _SEEN, _KEYS)
        if known is not None:
            keys = known.unionAll(keys)
        recent = f.unix_micros("time") >= f.lit(advance.watermark_us)
        state = checkpoint.write(state, _SEEN, keys.filter(recent))
        if not self._closes(advance):
            return state, []
        counted = checkpoint.read(state, _VOLUMES, WINDOW_VOLUMES)
        received = checkpoint.read(state, _RECEIVED, WINDOW_RECEIVED)
        assert counted is not None, "it was just written"
        assert received is not None, "it was just written"
        latest = checkpoint.read(before, _REPORTED, REPORTED)
        reported = None if latest is None else latest.toArrow()
        told = []
        for stage in self._stages(counted, received, advance, intake.kept):
            decisions, reported = traffic_news(
                closed_volumes(counted, stage).toArrow(),
                closed_received(received, stage).toArrow(),
                audience.interests,
                reported,
                stage,
            )
            told.append(decisions)
        spark = self._target.spark
        state = checkpoint.write(state, _REPORTED, spark.createDataFrame(reported, REPORTED))
        # In one piece: of a table with an empty piece Spark takes only what comes before it.
        every = pa.concat_tables(told).combine_chunks()
        return state, [spark.createDataFrame(every, table_schema("decisions").struct_type)]

    def _stages(
        self, counted: DataFrame, received: DataFrame, advance: Advance, rows: int
    ) -> Iterator[Advance]:
        """Yield steps of so few closed windows each that the driver can hold what is in them.

        Few windows close at a time, unless a stream catches up with days of files. What is
        decided does not depend on the steps.
        """
        before, collected = advance.before_us, 0
        if rows > self._options.collected_max:
            closed = closed_volumes(counted, advance).unionAll(closed_received(received, advance))
            for window, count in closed.groupBy("window").count().orderBy("window").collect():
                if collected and collected + count > self._options.collected_max:
                    yield replace(advance, before_us=before, watermark_us=window)
                    before, collected = window, 0
                collected += count
        yield replace(advance, before_us=before)

    def _quotes(
        self, state: BatchState, before: BatchState, intake: IngestedBatch
    ) -> tuple[BatchState, list[DataFrame]]:
        """Filter the quotes of a batch as the source would; return the state, and news."""
        state, advance = self._advanced(state, before, QUOTES, intake)
        advanced = rates_advanced(
            self._checkpoint.read(before, _RATES, RATE_STATE),
            self._target.read_draft(intake.draft),
            self._audience.followers,
            advance,
            tasks=self._tasks,
        )
        state = self._checkpoint.write(state, _RATES, advanced)
        written = self._checkpoint.read(state, _RATES, RATE_STATE)
        if written is None or not self._closes(advance):
            return state, []
        return state, [news_in(written, length_us=self._options.window_us)]

    def _advanced(
        self, state: BatchState, before: BatchState, name: str, intake: IngestedBatch
    ) -> tuple[BatchState, Advance]:
        """Return the state with the watermark where the rows of a batch bring it."""
        last = before.watermarks.get(name)
        reached = [mark for mark in (last,) if mark is not None]
        if intake.latest_us is not None:
            reached.append(intake.latest_us - self._options.delay_us)
        # Without any time nothing is late, and no window closes.
        watermark = max(reached, default=None)
        if watermark is not None:
            state = replace(state, watermarks={**state.watermarks, name: watermark})
        mark = -(2**62) if watermark is None else watermark
        return state, Advance(last, mark, self._options.window_us, self._options.tau)

    def _closes(self, advance: Advance) -> bool:
        """Whether a window may have closed."""
        return advance.before_us is None or window_of(
            advance.before_us, self._options.window_us
        ) < window_of(advance.watermark_us, self._options.window_us)

    def _known(self, before: BatchState, name: str) -> DataFrame | None:
        """Return the keys of rows that may come again."""
        from pyspark.sql import functions as f

        if name == PUBLICATIONS:
            return self._checkpoint.read(before, _SEEN, _KEYS)
        carried = self._checkpoint.read(before, _RATES, RATE_STATE)
        if carried is None:
            return None
        return carried.filter(f.col("part") == QUOTE).select("object", "time")

    def _write(self, name: str, parts: list[DataFrame], batch: int) -> None:
        if parts:
            self._added(name, reduce(lambda one, other: one.unionByName(other), parts), batch)

    def _added(self, name: str, rows: DataFrame, batch: int) -> Draft:
        """Add rows to a table, once for this batch, and return them as they are written."""
        draft = self._target.draft(name, rows)
        self._target.publish(draft, append=True, batch=(self._checkpoint.stream, batch))
        return draft
