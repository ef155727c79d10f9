"""The job `ingest`: files into a table, and into quarantine what does not belong there.

Clean files are read once. Their rows are written beside the table, and a hash of every key
shows whether two rows share one. Only when something is wrong are the files read a second
time, now with the place of every row, to write the quarantine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distributary.errors import BadInput, PipelineFailed, quoted
from distributary.pipeline.counting import RowCount, observed
from distributary.pipeline.days import ALL, Day, Days
from distributary.pipeline.failures import explained
from distributary.pipeline.report import JobReport, Stopwatch
from distributary.pipeline.runs import RUNS, recorded
from distributary.pipeline.schemas import TABLES, TableSchema, table_schema
from distributary.pipeline.sources.files import SourceFile, found_files
from distributary.pipeline.sources.source_rows import layout_of
from distributary.pipeline.sources.splits import (
    SplitPlan,
    counted_splits,
    planned_splits,
    split_frame,
)
from distributary.pipeline.store import Store, is_among
from distributary.pipeline.table_files import DAY
from distributary.pipeline.table_log import Draft
from distributary.pipeline.transforms.deduplication import (
    duplicate_hashes,
    mark_duplicates,
    possible_duplicates,
    with_hash,
    without_hash,
)
from distributary.pipeline.transforms.ingest import ingested, kept, quarantined
from distributary.pipeline.transforms.publishers import PublisherRule
from distributary.pipeline.transforms.widths import misfit, usual_widths, width_bounds

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["INGESTIBLE", "check", "frames", "ingest"]

QUARANTINE = "quarantine"

INGESTIBLE = tuple(name for name in TABLES if name not in (QUARANTINE, RUNS))
"""The tables that can be filled from files."""


@recorded("ingest")
def ingest(
    target: Store,
    name: str,
    files: Sequence[str],
    *,
    add: bool = False,
    publisher: str | None = None,
    any_publisher: bool = False,
    warn: Callable[[str], None] | None = None,
) -> JobReport:
    """Put the rows of files into a table, each into it or into quarantine.

    The table, or a day of it, holds every key once: the row stays that stands first, by file and
    line, and the others go to quarantine. The same files again give the same table.

    Files and folders are CSV, JSON lines or Parquet, by the ends of their names. With `add`,
    rows go to those that the table has. Otherwise they replace them, and what was in quarantine
    for them: all of the table, or the days that occur among the rows. `warn` is told about
    columns that are not read.

    Publications go to quarantine when there is a table `users` and their publisher is not in
    it; with `any_publisher` they are kept, as nobody's. `publisher` is the attribute of events
    that names the publisher; see `transforms.publishers`.

    Raises
    ------
    BadInput
        When a file cannot be read, or lacks a column, or has one of another type.
    PipelineFailed
        When rows kept and rows in quarantine are not as many as were read; the table is
        left as it was.
    """
    watch = Stopwatch()
    declared = _ingestible(name)
    rule = PublisherRule(publisher, any_publisher)
    rule.check_table(name)
    sources = found_files(files)
    plan = planned_splits(sources, layout_of(declared))
    if warn is not None:
        for warning in plan.warnings:
            warn(warning)
    merge = add and _can_be_added_to(target, name)
    with explained("ingest", sources[0].path if len(sources) == 1 else f"{len(sources)} files"):
        reading = _Reading(target, declared, rule)
        ingestion = _Ingestion(reading, plan, merge=merge)
        rows, good, bad = ingestion.run(sources)
    return JobReport(
        "ingest",
        {name: rows},
        {name: good, QUARANTINE: bad},
        watch.seconds,
        {"files": len(sources)},
        ingestion.days.chosen,
    )


def check(
    name: str, files: Sequence[str], *, publisher: str | None = None, any_publisher: bool = False
) -> None:
    """Raise `BadInput` when there is no such table or no such file, or an option is not for it."""
    _ingestible(name)
    PublisherRule(publisher, any_publisher).check_table(name)
    found_files(files)


def frames(
    target: Store,
    name: str,
    files: Sequence[str],
    *,
    publisher: str | None = None,
    any_publisher: bool = False,
) -> dict[str, DataFrame]:
    """Return what the job writes, before anything is run."""
    declared = _ingestible(name)
    plan = planned_splits(found_files(files), layout_of(declared))
    reading = _Reading(target, declared, PublisherRule(publisher, any_publisher))
    return {
        name: kept(reading.rows(plan), declared),
        QUARANTINE: quarantined(reading.rows(plan, origins=True), declared),
    }


@dataclass(frozen=True)
class _Reading:
    """What rows of files become rows of, and by which rules."""

    store: Store
    table: TableSchema
    rule: PublisherRule

    def rows(self, plan: SplitPlan, *, origins: bool = False) -> DataFrame:
        """Return all rows, good and bad."""
        parts = split_frame(self.store.spark, plan)
        found = ingested(parts, self.table, origins=origins, publisher=self.rule.attribute)
        if self.table.name != "publications" or not self.store.has("users"):
            return found
        return self.rule.applied(found, self.store.frame("users"))


class _Ingestion:
    """One run of the job: its drafts, and what it counted.

    Attributes
    ----------
    days
        Those that occur among the rows that are kept; all of a table without days.
    """

    def __init__(self, reading: _Reading, plan: SplitPlan, *, merge: bool) -> None:
        self.days = ALL
        self._store = reading.store
        self._table = reading.table
        self._reading = reading
        self._plan = plan
        self._merge = merge
        self._existing: DataFrame | None = None
        self._drafts: list[Draft] = []

    def run(self, sources: Sequence[SourceFile]) -> tuple[int, int, int]:
        """Write the table and the quarantine, or neither; return rows read, kept and not."""
        try:
            return self._run(sources)
        finally:
            for draft in self._drafts:
                self._store.discard(draft)

    def _run(self, sources: Sequence[SourceFile]) -> tuple[int, int, int]:
        draft, seen = self._read_once()
        if self._table.by_day:
            self.days = Days(chosen=frozenset(item.day for item in draft.files))
        if self._merge:
            self._existing = self._store.frame(self._table.name, self.days)
        rows = self._store.read_draft(draft)
        reason = self._misfit(rows, seen)
        if reason is not None:
            rows = rows.filter(reason.isNull())
        bad: DataFrame | None = None
        kept_count = seen["kept"]
        with ExitStack() as held:
            hashes = held.enter_context(_kept_on_disk(self._hashes(rows, kept_count)))
            repeated = hashes.count() > 0
            if repeated:
                suspects = possible_duplicates(self._read_again(reason), hashes, self._table)
                old = self._existing
                if old is not None:
                    old = with_hash(old, hashes, self._table)
                told = held.enter_context(
                    _kept_on_disk(mark_duplicates(suspects, old, self._table))
                )
                bad = quarantined(told, self._table)
                rows = without_hash(rows, hashes, self._table).unionAll(kept(told, self._table))
            elif kept_count < seen["rows"] or reason is not None:
                again = self._read_again(reason).filter("reason IS NOT NULL")
                bad = quarantined(held.enter_context(_kept_on_disk(again)), self._table)
            aside, aside_days, quarantined_count = self._quarantine(bad, sources)
            if repeated or reason is not None or (self._merge and not self._table.by_day):
                draft, kept_count = self._rewrite(rows)
        if kept_count + quarantined_count != seen["rows"]:
            raise PipelineFailed(
                "ingest",
                self._table.name,
                f"{seen['rows']:,} rows were read, {kept_count:,} kept and "
                f"{quarantined_count:,} put into quarantine; did a file change?",
            )
        if aside is not None:
            self._publish(aside, aside_days)
        # Nothing new for a table that is there: it is left alone.
        if kept_count or not self._merge:
            # What others have laid out in their own way has no days to be replaced.
            whole = not self._merge and not self._store.is_current(self._table.name)
            replaced = ALL if whole else self.days
            self._publish(draft, replaced, append=self._merge and self._table.by_day)
        return seen["rows"], kept_count, quarantined_count

    def _read_once(self) -> tuple[Draft, Mapping[str, int]]:
        """Write the good rows beside the table; return the draft and what was counted."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        observation = Observation()
        rows = self._reading.rows(self._plan).observe(
            observation,
            f.count(f.lit(1)).alias("rows"),
            f.count_if(f.col("reason").isNull()).alias("kept"),
            *width_bounds(self._table),
        )
        draft = self._drafted(self._table.name, kept(rows, self._table))
        return draft, {"rows": 0, "kept": 0} | observed(observation)

    def _misfit(self, rows: DataFrame, seen: Mapping[str, int]) -> Column | None:
        """Return why rows do not agree with the others; None when all do."""
        bounds = [name for name in seen if name not in ("rows", "kept")]
        if not bounds:
            return None
        widths = usual_widths(rows if self._existing is None else self._existing, self._table)
        agree = all(
            seen[f"{column}_{bound}"] in (width, None)
            for column, width in widths.items()
            for bound in ("least", "most")
        )
        return None if agree else misfit(self._table, widths)

    def _hashes(self, rows: DataFrame, count: int) -> DataFrame:
        """Return the hashes of keys that rows share, with each other or with the table."""
        total = count if self._existing is None else count + self._existing.count()
        return duplicate_hashes(rows, self._existing, self._table, row_count=total)

    def _read_again(self, reason: Column | None) -> DataFrame:
        """Return all rows with the places they come from."""
        from pyspark.sql import functions as f

        plan = counted_splits(self._store.spark, self._plan)
        rows = self._reading.rows(plan, origins=True)
        return rows if reason is None else rows.withColumn("reason", f.coalesce("reason", reason))

    def _quarantine(
        self, bad: DataFrame | None, sources: Sequence[SourceFile]
    ) -> tuple[Draft | None, Days, int]:
        """Write the quarantine beside the old one; return the draft, its days, and how many.

        What was there for the days that are replaced goes, and what was there for these files.
        """
        from pyspark.sql import functions as f

        days: set[Day] = set()
        others: DataFrame | None = None
        if self._store.has(QUARANTINE):
            old = self._store.frame(QUARANTINE, with_day=True)
            earlier = f.col("table") == self._table.name
            if self._merge or self._table.by_day:
                of_files = f.col("file").isin([source.path for source in sources])
                earlier &= of_files if self._merge else of_files | is_among(self.days)
            days = {row[0] for row in old.filter(earlier).select(DAY).distinct().collect()}
            others = old.filter(~earlier)
        if bad is not None:
            days |= {row[0] for row in bad.select(DAY).distinct().collect()}
        chosen = Days(chosen=frozenset(days))
        if not days:
            return None, chosen, 0
        left = None if others is None else others.filter(is_among(chosen))
        if bad is None:
            assert left is not None, "there are days of some rows"
            return self._drafted(QUARANTINE, left), chosen, 0
        count = RowCount()
        new = count.of(bad)
        draft = self._drafted(QUARANTINE, new if left is None else left.unionByName(new))
        return draft, chosen, count.rows

    def _rewrite(self, rows: DataFrame) -> tuple[Draft, int]:
        """Write the table, or what is added to it, anew; return the draft and how many are new."""
        count = RowCount()
        every = count.of(rows)
        if self._existing is not None and not self._table.by_day:
            every = self._existing.unionAll(every)
        return self._drafted(self._table.name, every), count.rows

    def _drafted(self, name: str, rows: DataFrame) -> Draft:
        draft = self._store.draft(name, rows)
        self._drafts.append(draft)
        return draft

    def _publish(self, draft: Draft, days: Days, *, append: bool = False) -> None:
        self._drafts.remove(draft)
        self._store.publish(draft, days, append=append, read=days)


@contextmanager
def _kept_on_disk(frame: DataFrame) -> Iterator[DataFrame]:
    """Yield a frame that is worked out once, however often it is used."""
    from pyspark import StorageLevel

    frame.persist(StorageLevel.DISK_ONLY)
    try:
        yield frame
    finally:
        frame.unpersist()


def _ingestible(name: str) -> TableSchema:
    declared = table_schema(name)
    if name not in INGESTIBLE:
        raise BadInput(
            "table",
            f"{quoted(name)} is not filled from files",
            hint=f"tables are {', '.join(INGESTIBLE)}",
        )
    return declared


def _can_be_added_to(target: Store, name: str) -> bool:
    """Whether there is a table that rows can be added to; raise `BadInput` for a stream's."""
    if not target.has(name):
        return False
    if target.stream_of(name) is not None:
        raise BadInput(
            target.path(name),
            "is written by a stream, which would not know of other rows",
            hint="give the files to the stream",
        )
    return True
