"""`pipeline stream`: the jobs `ingest`, `match`, `rates` and `traffic` on files as they arrive.

Each batch of files adds `batch=N` to the tables `publications`, `quotes`, `deliveries`,
`quarantine` and `decisions`. The tables `rates` and `traffic` are about all rows so far and
are written when the stream ends. Where nothing was late they are what the batch jobs would
have made of all files at once.

The watermark of a table is the latest time that was seen in it, less a delay. Rows of an
earlier time are late: the windows that they belong to may have been reported, and quotes
after them may have been counted. They go to quarantine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from distributary.errors import BadInput, DistributaryError, quoted
from distributary.pipeline.broadcast import broadcast
from distributary.pipeline.failures import explained
from distributary.pipeline.folder import open_folder
from distributary.pipeline.jobs.match import recipients_in
from distributary.pipeline.jobs.rates import followers_in
from distributary.pipeline.jobs.stream_batches import Audience, Batches, StreamOptions
from distributary.pipeline.jobs.stream_files import ARRIVING, arriving_files
from distributary.pipeline.jobs.stream_state import Checkpoint
from distributary.pipeline.report import Figure, JobReport, Stopwatch
from distributary.pipeline.runs import recorded
from distributary.pipeline.schemas import table_schema
from distributary.pipeline.sources.files import SourceFile
from distributary.pipeline.transforms.channels import interests
from distributary.pipeline.transforms.deliveries import deliveries
from distributary.pipeline.transforms.ingest import ingested, kept
from distributary.pipeline.transforms.rate_days import rate_days, rates_of_days
from distributary.pipeline.transforms.reporting import checked_tau
from distributary.pipeline.workers import task_count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from distributary.pipeline.store import Store

__all__ = ["StreamOptions", "frames", "stream"]

_ADDED = ("publications", "quotes", "deliveries", "quarantine", "decisions")
_REPLACED = ("rates", "traffic")
_POLL_SECONDS = 0.25


@recorded("stream")
def stream(
    source: Store,
    target: Store,
    options: StreamOptions,
    *,
    stopped: Callable[[], bool] = lambda: False,
) -> JobReport:
    """Work on files as they arrive, until all are done or somebody wants it to stop.

    Killed at any moment and started again, it loses nothing and repeats nothing.

    `source` has the tables `subscriptions` and `users`, as they are when the stream starts;
    the tables of `target` must be those of this stream alone. `stopped` is asked some times a
    second whether to stop after the batch that is being done.
    """
    stopwatch = Stopwatch()
    _check(source.spark, options)
    checkpoint = Checkpoint(source.spark, options.checkpoint)
    _check_tables(target, checkpoint, options)
    audience = _audience(source, options)
    batches = Batches(target, checkpoint, audience, options)
    with explained("stream", options.folder):
        _run(source.spark, checkpoint, batches, options, stopped)
        written = batches.finish()
    counts = batches.counts
    figures: dict[str, Figure] = {name: counts[name] for name in ("files", "batches", "late")}
    return JobReport(
        "stream",
        {name: counts[name] for name in ARRIVING},
        {
            **{name: counts[f"{name}_kept"] for name in ARRIVING},
            "quarantine": counts["quarantine"],
            **written,
        },
        stopwatch.seconds,
        figures,
    )


def frames(source: Store, options: StreamOptions) -> dict[str, DataFrame]:
    """Return what the first batch would write if all files that are there were in it."""
    _check(source.spark, options)
    audience = _audience(source, options)
    reader = source.spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    files = reader.load(options.folder).select("path", "length")
    parsed = {
        name: kept(
            ingested(files, table_schema(name), publisher=options.publishers.attribute),
            table_schema(name),
        )
        for name in ARRIVING
    }
    return {
        **parsed,
        "deliveries": deliveries(parsed["publications"], audience.recipients),
        "rates": rates_of_days(rate_days(None, parsed["quotes"], audience.followers, (), tasks=2)),
    }


def _audience(source: Store, options: StreamOptions) -> Audience:
    spark = source.spark
    recipients = recipients_in(source, graph=options.graph)
    followers = followers_in(source, options.events)
    with explained("stream", source.path("subscriptions")):
        tasks = task_count(spark, per_core=1)
        wanted = interests(source.frame("subscriptions"), options.space, tasks=tasks).toArrow()
    return Audience(
        broadcast(spark, recipients),
        broadcast(spark, followers),
        wanted,
        source.read("users") if source.has("users") else None,
        options.space,
    )


def _check(spark: SparkSession, options: StreamOptions) -> None:
    if not hasattr(spark, "_jvm"):
        raise BadInput(
            "--remote", "cannot run a stream, which keeps its state itself", hint="use --master"
        )
    if options.table is not None and options.table not in ARRIVING:
        raise BadInput(
            "--table",
            f"{quoted(options.table)} is not fed by streams",
            hint=f"tables are {', '.join(ARRIVING)}",
        )
    for name, value in (
        ("--window", options.window_us),
        ("--every", options.every_us),
        ("--max-files", options.files_max),
    ):
        if value < 1:
            raise BadInput(name, "must be greater than 0")
    if options.delay_us < 0:
        raise BadInput("--watermark", "must be at least 0")
    checked_tau(options.tau)
    if not open_folder(spark, options.folder).exists(""):
        raise BadInput(options.folder, "does not exist", hint="make it; files may come later")


def _check_tables(target: Store, checkpoint: Checkpoint, options: StreamOptions) -> None:
    """Raise `BadInput` when a table is there that this stream did not write."""
    there = [name for name in (*_ADDED, *_REPLACED) if target.has(name)]
    foreign = [name for name in there if name in _ADDED and target.stream_of(name) is None]
    settings = {
        "tables": target.path(""),
        "input": open_folder(target.spark, options.folder).path(""),
        "window_us": options.window_us,
        "space": options.space.version,
        "version of deliveries": table_schema("deliveries").version,
    }
    begun = checkpoint.is_begun(settings)
    hint = "give -o another folder"
    if foreign:
        raise BadInput(
            target.path(foreign[0]), "was written by another job than a stream", hint=hint
        )
    if there and not begun:
        raise BadInput(
            target.path(there[0]),
            "is there, and a stream that begins makes its own",
            hint=f"{hint}, or the --checkpoint of the stream that wrote it",
        )
    if not begun:
        checkpoint.begin(settings)


def _run(
    spark: SparkSession,
    checkpoint: Checkpoint,
    batches: Batches,
    options: StreamOptions,
    stopped: Callable[[], bool],
) -> None:
    """Let Spark feed the batches, and return when it has no more or should stop."""
    failures: list[DistributaryError] = []
    stopping, idle = threading.Event(), threading.Event()
    idle.set()

    def take(files: DataFrame, batch: int) -> None:
        if stopping.is_set():
            raise _Stopping
        idle.clear()
        try:
            found = [SourceFile(row.path, row.length) for row in files.collect()]
            with explained("stream", options.folder):
                batches.take(batch, found)
        except DistributaryError as error:
            # Through Java it would come back as a text.
            failures.append(error)
            raise
        finally:
            idle.set()

    writer = (
        arriving_files(spark, options.folder, files_max=options.files_max)
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", checkpoint.spark_path)
    )
    if options.once:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{options.every_us} microseconds")
    query = writer.start()
    try:
        while not query.awaitTermination(cast(int, _POLL_SECONDS)):
            if stopped():
                # The batch that is being done is finished first; none is begun after it.
                stopping.set()
                if idle.is_set():
                    query.stop()
    except Exception:
        if failures:
            raise failures[0] from None
        if not stopping.is_set():
            raise
    finally:
        if query.isActive:
            query.stop()


class _Stopping(Exception):
    """A batch came although the stream is to stop; the next run does it."""
