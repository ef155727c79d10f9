"""`pipeline match`: publications x subscriptions -> deliveries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from distributary.errors import BadInput
from distributary.pipeline.broadcast import broadcast
from distributary.pipeline.counting import RowCount
from distributary.pipeline.days import ALL, Days
from distributary.pipeline.failures import explained
from distributary.pipeline.graph import calibration
from distributary.pipeline.report import JobReport, Stopwatch
from distributary.pipeline.runs import recorded
from distributary.pipeline.transforms.deliveries import deliveries
from distributary.pipeline.transforms.recipients import Recipients, recipients

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from distributary.pipeline.store import Store

__all__ = ["frames", "match", "recipients_in"]


def recipients_in(source: Store, *, graph: Path | str | None = None) -> Recipients:
    """Return the recipients that the tables `subscriptions` and `users` describe.

    Without a table `users`, nobody has a home.
    """
    document = calibration(graph)
    columns = ("subscription_id", "user", "filters", "profile")
    subscriptions = source.read("subscriptions", columns)
    users = source.read("users") if source.has("users") else None
    try:
        return recipients(subscriptions, users, document)
    except BadInput as error:
        raise error.within(source.path("subscriptions")) from None


def frames(
    source: Store, days: Days = ALL, *, graph: Path | str | None = None
) -> dict[str, DataFrame]:
    """Return the tables that the job writes, by name."""
    everybody = broadcast(source.spark, recipients_in(source, graph=graph))
    return {"deliveries": deliveries(source.frame("publications", days), everybody)}


@recorded("match")
def match(
    source: Store, target: Store, days: Days = ALL, *, graph: Path | str | None = None
) -> JobReport:
    """Find out who gets which publication, and in which format.

    Reads `publications`, `subscriptions` and, if homes are known, `users`; writes
    `deliveries`, of the same days. Without a calibrated `graph`, those that come with
    distributary are used.
    """
    stopwatch = Stopwatch()
    everybody = recipients_in(source, graph=graph)
    sent = broadcast(source.spark, everybody)
    read = RowCount()
    with explained("match", source.path("publications")):
        published = read.of(source.frame("publications", days))
        target.write("deliveries", deliveries(published, sent), days)
        figures = _figures(target, days)
    return JobReport(
        "match",
        {"publications": read.rows, "subscriptions": len(everybody.index)},
        {"deliveries": figures.pop("rows")},
        stopwatch.seconds,
        figures,
        days.among(source.days("publications")),
    )


def _figures(target: Store, days: Days) -> dict[str, int]:
    """Count the deliveries that were written.

    Counting them on their way would take three times as long as reading two columns again:
    there are many more of them than of publications.
    """
    from pyspark.sql import functions as f

    found = target.frame("deliveries", days)
    nulls = [
        f.count_if(f.col(column).isNull()).alias(name)
        for name, column in (("without_format", "media_type"), ("without_broker", "broker"))
    ]
    row = found.agg(f.count(f.lit(1)).alias("rows"), *nulls).first()
    assert row is not None
    return {name: int(count) for name, count in row.asDict().items()}
