"""`pipeline rates`: quotes x tolerances -> updates per second that servers need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributary.errors import BadInput
from distributary.pipeline.broadcast import broadcast
from distributary.pipeline.failures import explained
from distributary.pipeline.report import JobReport, Stopwatch
from distributary.pipeline.transforms.followers import Followers, ObjectEvents, followers
from distributary.pipeline.transforms.rates import rates as counted
from distributary.pipeline.workers import task_count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from distributary.pipeline.store import Store

__all__ = ["followers_in", "frames", "rates"]

# Objects differ in how many quotes and followers they have; smaller parts even that out.
_TASKS_PER_CORE = 5


def followers_in(source: Store, events: ObjectEvents | None = None) -> Followers:
    """Return the followers that the tables `subscriptions` and `users` describe."""
    columns = ("subscription_id", "user", "filters", "tolerance")
    subscriptions = source.read("subscriptions", columns)
    users = source.read("users")
    try:
        return followers(subscriptions, users, events or ObjectEvents())
    except BadInput as error:
        raise error.within(source.path("subscriptions")) from None


def frames(source: Store, *, events: ObjectEvents | None = None) -> dict[str, DataFrame]:
    """Return the tables that the job writes, by name."""
    return {"rates": _counted(source, followers_in(source, events))}


def rates(source: Store, target: Store, *, events: ObjectEvents | None = None) -> JobReport:
    """Count how often each server needs updates of each object that it follows.

    Reads `quotes`, `subscriptions` and `users`; writes `rates`.
    """
    stopwatch = Stopwatch()
    everybody = followers_in(source, events)
    with explained("rates", source.path("quotes")):
        # What the files say: counting rows on their way to be sorted takes longer.
        rows = source.row_count("quotes")
        written = target.write("rates", _counted(source, everybody))
    return JobReport(
        "rates",
        {"quotes": rows, "subscriptions": len(everybody.index)},
        {"rates": written},
        stopwatch.seconds,
        {"servers": len(everybody.servers)},
    )


def _counted(source: Store, everybody: Followers) -> DataFrame:
    tasks = task_count(source.spark, per_core=_TASKS_PER_CORE)
    return counted(source.frame("quotes"), broadcast(source.spark, everybody), tasks=tasks)
