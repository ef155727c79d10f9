"""`pipeline channels`: publications, subscriptions -> channels, volume_days, rates_published, ...

The space is chosen once, and what is published is kept by day, user and cell: so a day more is a
day more of work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distributary.content.content_space import ContentSpace
from distributary.content.documents import read_document
from distributary.errors import BadInput
from distributary.pipeline.counting import RowCount
from distributary.pipeline.days import ALL, NONE, Days
from distributary.pipeline.failures import explained
from distributary.pipeline.report import Figure, JobReport, Stopwatch
from distributary.pipeline.runs import recorded
from distributary.pipeline.space_file import kept_space, write_space
from distributary.pipeline.transforms import channels as transforms
from distributary.pipeline.transforms.space_choice import chosen_space, types_space
from distributary.pipeline.workers import task_count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from distributary.pipeline.store import Store

__all__ = ["DEFAULT", "TYPES", "SpaceWish", "channels", "frames"]


TYPES, DEFAULT = "types", "default"
"""The words that stand for a space: a cell for each type that occurs, or that of brokers."""

DAYS = "volume_days"
_BINS = 16
_TYPES = 1_000


@dataclass(frozen=True)
class SpaceWish:
    """Which content space is asked for; one of the types that occur if none is.

    Attributes
    ----------
    space
        `TYPES`, `DEFAULT` or the name of a file.
    dimensions
        What to build a space from instead.
    bins
        How many bins each of those has, or how many types have a cell of their own.
    by
        How numbers are divided.
    """

    space: str | None = None
    dimensions: Sequence[str] = ()
    bins: int | None = None
    by: str = "width"

    def document(self) -> dict[str, object]:
        """Return what was asked for, as it is kept with the space: files by what is in them."""
        chosen: dict[str, object] = {
            "space": self._named().version if self._is_named else None,
            "dimensions": list(self.dimensions),
            "bins": self.bins,
            "by": self.by,
        }
        return {name: value for name, value in chosen.items() if value not in (None, [], "width")}

    def check(self) -> None:
        """Raise `BadInput` for what cannot be asked for together."""
        if self.space is not None and self.dimensions:
            raise BadInput("--dimension", "cannot be combined with --space")
        if self._is_named and self.bins is not None:
            raise BadInput("--bins", "is for --dimension and --space types")

    def kept(self, target: Store) -> ContentSpace | None:
        """Return the space that a folder has, if this asks for it; None if there is none yet.

        Raises `BadInput` when the folder has another one: cells of two spaces cannot be added up.
        """
        self.check()
        found = kept_space(target) if target.has("channels") else None
        if found is None:
            return None
        space, wish = found
        asked = self.document()
        if asked not in ({}, wish) and asked.get("space") != space.version:
            raise BadInput(
                target.path("channels"),
                "are of a content space that something else was asked for",
                hint="--new-space chooses one anew, and counts all days again",
            )
        return space

    def chosen(self, source: Store) -> ContentSpace:
        """Return the space, worked out from all `publications`; see `transforms.space_choice`."""
        self.check()
        if self._is_named:
            return self._named()
        with explained("channels", source.path("publications")):
            publications = source.frame("publications")
            if self.dimensions:
                bins = _BINS if self.bins is None else self.bins
                return chosen_space(publications, self.dimensions, bins=bins, by=self.by)
            return types_space(publications, types_max=_TYPES if self.bins is None else self.bins)

    @property
    def _is_named(self) -> bool:
        return not self.dimensions and self.space not in (None, TYPES)

    def _named(self) -> ContentSpace:
        if self.space == DEFAULT:
            return ContentSpace.default()
        assert self.space is not None
        return read_document(self.space, ContentSpace.parse)


def frames(source: Store, space: ContentSpace, days: Days = ALL) -> dict[str, DataFrame]:
    """Return the tables that the job writes, by name."""
    found = transforms.volumes(source.frame("publications", days), space)
    return {"volume_days": found, **_frames(source, space, found, source.frame("subscriptions"))}


@recorded("channels")
def channels(
    source: Store,
    target: Store,
    space: ContentSpace,
    days: Days = ALL,
    *,
    span: Days | None = None,
    wish: SpaceWish | None = None,
) -> JobReport:
    """Sort publications and subscriptions into the cells of a content space.

    Reads `publications` and `subscriptions`; writes `channels` with the space beside it,
    `volume_days` of some days, `rates_published` and `interests`. Rates are sums over the days
    of the `span`: the same days unless given. With another space than before, all days are
    counted again. `wish` is what the space was chosen by.
    """
    stopwatch = Stopwatch()
    span = days if span is None else span
    subscriptions = RowCount()
    wanted = subscriptions.of(source.frame("subscriptions"))
    before = kept_space(target) if target.has("channels") and target.has(DAYS) else None
    if before is None or before[0].version != space.version:
        days = ALL
    written: dict[str, int] = {}
    with explained("channels", source.path("publications")):
        # Publications are read here, once; all that follows is about users and cells.
        done = days.among(source.days("publications"))
        if days != NONE:
            published = source.frame("publications", days)
            written[DAYS] = target.write(DAYS, transforms.volumes(published, space), days)
        summary = _summary(target.frame(DAYS, days))
    found = target.frame(DAYS, span).persist()
    try:
        for name, frame in _frames(source, space, found, wanted).items():
            with explained("channels", source.path(_READ[name])):
                written[name] = target.write(name, frame)
        summary["span_seconds"] = _span_seconds(found)
    finally:
        found.unpersist()
    write_space(target, space, {} if wish is None else wish.document())
    read = {"publications": summary.pop("publications"), "subscriptions": subscriptions.rows}
    return JobReport(
        "channels",
        {name: int(rows or 0) for name, rows in read.items()},
        written,
        stopwatch.seconds,
        {**summary, "space": space.version},
        done,
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
    ).first()
    assert row is not None
    return {name: int(row[name]) for name in ("publications", "without_publisher", "without_time")}


def _span_seconds(found: DataFrame) -> float:
    from pyspark.sql import functions as f

    micros = f.unix_micros(f.max("last")) - f.unix_micros(f.min("first"))
    return int(found.agg(f.coalesce(micros, f.lit(0))).collect()[0][0]) / 1e6
