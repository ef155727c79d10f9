"""`pipeline channels`: publications, subscriptions -> channels, rates_published, interests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from distributary.content.content_space import ContentSpace
from distributary.content.documents import read_document
from distributary.errors import BadInput
from distributary.pipeline.counting import RowCount
from distributary.pipeline.failures import explained
from distributary.pipeline.report import Figure, JobReport, Stopwatch
from distributary.pipeline.space_file import write_space
from distributary.pipeline.transforms import channels as transforms
from distributary.pipeline.transforms.space_choice import chosen_space, types_space
from distributary.pipeline.workers import task_count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from distributary.pipeline.store import Store

__all__ = ["DEFAULT", "TYPES", "channels", "frames", "space_for"]


TYPES, DEFAULT = "types", "default"
"""The words that stand for a space: a cell for each type that occurs, or that of brokers."""

_BINS = 16
_TYPES = 1_000


def space_for(
    source: Store,
    *,
    space: Path | str | None = None,
    dimensions: Sequence[str] = (),
    bins: int | None = None,
    by: str = "width",
) -> ContentSpace:
    """Return the content space that was asked for; one of the types that occur if none was.

    Bins and types are worked out from the table `publications`; see `transforms.space_choice`.

    Parameters
    ----------
    source
        The tables.
    space
        `TYPES`, `DEFAULT` or the name of a file.
    dimensions
        What to build a space from instead.
    bins
        How many bins each of those has, or how many types have a cell of their own.
    by
        How numbers are divided.
    """
    if space is not None and dimensions:
        raise BadInput("--dimension", "cannot be combined with --space")
    if not dimensions and space not in (None, TYPES):
        if bins is not None:
            raise BadInput("--bins", "is for --dimension and --space types")
        if space == DEFAULT:
            return ContentSpace.default()
        assert space is not None
        return read_document(space, ContentSpace.parse)
    with explained("channels", source.path("publications")):
        publications = source.frame("publications")
        if dimensions:
            return chosen_space(
                publications, dimensions, bins=_BINS if bins is None else bins, by=by
            )
        return types_space(publications, types_max=_TYPES if bins is None else bins)


def frames(source: Store, space: ContentSpace) -> dict[str, DataFrame]:
    """Return the tables that the job writes, by name.

    What two of them are made of is kept once it is known: publications are read once.
    """
    found = transforms.volumes(source.frame("publications"), space).persist()
    return _frames(source, space, found, source.frame("subscriptions"))


def channels(source: Store, target: Store, space: ContentSpace) -> JobReport:
    """Sort publications and subscriptions into the cells of a content space.

    Reads `publications` and `subscriptions`; writes `channels` with the space beside it,
    `rates_published` and `interests`.
    """
    stopwatch = Stopwatch()
    subscriptions = RowCount()
    wanted = subscriptions.of(source.frame("subscriptions"))
    found = transforms.volumes(source.frame("publications"), space).persist()
    written: dict[str, int] = {}
    try:
        with explained("channels", source.path("publications")):
            # Publications are read here, once; all that follows is about users and cells.
            summary = _summary(found)
        for name, frame in _frames(source, space, found, wanted).items():
            with explained("channels", source.path(_READ[name])):
                written[name] = target.write(name, frame)
    finally:
        found.unpersist()
    write_space(target, space)
    read = {"publications": summary.pop("publications"), "subscriptions": subscriptions.rows}
    return JobReport(
        "channels",
        {name: int(rows or 0) for name, rows in read.items()},
        written,
        stopwatch.seconds,
        {**summary, "space": space.version},
    )


# What goes wrong while a table is written is about the table that it is made of.
_READ = {
    "channels": "publications",
    "rates_published": "publications",
    "interests": "subscriptions",
}


def _frames(
    source: Store, space: ContentSpace, found: DataFrame, subscriptions: DataFrame
) -> dict[str, DataFrame]:
    return {
        "channels": transforms.channels(source.spark, space),
        "rates_published": transforms.rates_published(found),
        "interests": transforms.interests(
            subscriptions, space, tasks=task_count(source.spark, per_core=1)
        ),
    }


def _summary(found: DataFrame) -> dict[str, Figure]:
    from pyspark.sql import functions as f

    nobody = f.when(f.col("user").isNull(), f.col("publications")).otherwise(0)
    row = found.agg(
        f.coalesce(f.sum("publications"), f.lit(0)).alias("publications"),
        f.coalesce(f.sum(nobody), f.lit(0)).alias("without_publisher"),
        f.coalesce(f.sum("untimed"), f.lit(0)).alias("without_time"),
        f.coalesce(f.unix_micros(f.max("last")) - f.unix_micros(f.min("first")), f.lit(0)).alias(
            "span_us"
        ),
    ).first()
    assert row is not None
    figures: dict[str, Figure] = {
        name: int(row[name]) for name in ("publications", "without_publisher", "without_time")
    }
    figures["span_seconds"] = int(row["span_us"]) / 1e6
    return figures
