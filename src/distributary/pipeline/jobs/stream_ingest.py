"""The rows of a batch of files: into their table, or into quarantine; late ones too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distributary.errors import PipelineFailed
from distributary.pipeline.counting import observed
from distributary.pipeline.schemas import TableSchema
from distributary.pipeline.sources.splits import SplitPlan, counted_splits, split_frame
from distributary.pipeline.store import Store
from distributary.pipeline.table_log import Draft
from distributary.pipeline.transforms.deduplication import (
    duplicate_hashes,
    mark_duplicates,
    possible_duplicates,
    without_hash,
)
from distributary.pipeline.transforms.ingest import ingested, kept, quarantined
from distributary.pipeline.transforms.publishers import PublisherRule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["LATE", "IngestedBatch", "ingest_batch"]

LATE = "late"
"""Why a row is in quarantine that came after the watermark had passed its time."""


@dataclass(frozen=True)
class IngestedBatch:
    """What became of the rows of a batch.

    `draft` has those that were kept. `latest_us` is the latest time of them, None when no row
    has one; `apart` has the others as rows of `quarantine`, if there are any.
    """

    draft: Draft
    rows: int
    kept: int
    late: int
    latest_us: int | None
    apart: DataFrame | None


@contextmanager
def ingest_batch(
    store: Store,
    target: TableSchema,
    plan: SplitPlan,
    *,
    batch: tuple[str, int],
    watermark_us: int | None,
    known: DataFrame | None,
    rule: PublisherRule,
    users: DataFrame | None,
) -> Iterator[IngestedBatch]:
    """Write the rows of some files into a batch of their table, by the rules of `ingest`.

    The result can be used within. `batch` is the id of the stream and the batch's number.

    Rows from before the watermark are late. `known` has the keys of earlier batches that can
    still come again: a row that is there already goes to quarantine. `users` is the table of
    that name, if there is one, with which publishers are compared.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    def rows(parts: SplitPlan, *, origins: bool) -> DataFrame:
        frame = split_frame(store.spark, parts)
        found = ingested(
            frame, target, origins=origins, refuse_files=False, publisher=rule.attribute
        )
        if target.name == "publications" and users is not None:
            found = rule.applied(found, users)
        if watermark_us is None:
            return found
        late = f.when(f.unix_micros(f.col(str(target.time))) < f.lit(watermark_us), f.lit(LATE))
        return found.withColumn("reason", f.coalesce("reason", late))

    observation = Observation()
    good = f.col("reason").isNull()
    first = rows(plan, origins=False).observe(
        observation,
        f.count(f.lit(1)).alias("rows"),
        f.count_if(good).alias("kept"),
        f.count_if(f.col("reason") == LATE).alias("late"),
        f.max(f.when(good, f.unix_micros(f.col(str(target.time))))).alias("latest"),
    )
    draft = store.draft(target.name, kept(first, target))
    nothing = {"rows": 0, "kept": 0, "late": 0, "latest": None}
    seen = nothing | observed(observation)
    new = store.read_draft(draft)
    hashes = duplicate_hashes(new, known, target, row_count=seen["kept"]).persist()
    told: DataFrame | None = None
    apart: DataFrame | None = None
    kept_rows, apart_rows = seen["kept"], 0
    try:
        repeated = kept_rows > 0 and hashes.count() > 0
        if repeated or kept_rows < seen["rows"]:
            every = rows(counted_splits(store.spark, plan), origins=True)
            told = every.filter(~good)
            if repeated:
                told = mark_duplicates(possible_duplicates(every, hashes, target), known, target)
            told = told.persist()
            apart = quarantined(told, target)
            apart_rows = apart.count()
        if repeated and told is not None:
            chosen = without_hash(new, hashes, target).unionAll(kept(told, target))
            first_draft, draft = draft, store.draft(target.name, chosen)
            store.discard(first_draft)
            kept_rows = draft.rows
        if kept_rows + apart_rows != seen["rows"]:
            raise PipelineFailed(
                "stream",
                target.name,
                f"{seen['rows']:,} rows were read, {kept_rows:,} kept and {apart_rows:,} put "
                "into quarantine; did a file change?",
            )
        store.publish(draft, append=True, batch=batch)
        yield IngestedBatch(draft, seen["rows"], kept_rows, seen["late"], seen["latest"], apart)
    finally:
        hashes.unpersist()
        if told is not None:
            told.unpersist()
