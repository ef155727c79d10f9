"""The job `erase`: what tables hold about one user."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from distributary.errors import BadInput, quoted
from distributary.pipeline.days import ALL, Days
from distributary.pipeline.failures import explained
from distributary.pipeline.report import JobReport, Stopwatch
from distributary.pipeline.runs import recorded
from distributary.pipeline.schemas import TABLES
from distributary.pipeline.table_files import DAY

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from distributary.pipeline.store import Store

    _Mark = Callable[[DataFrame], DataFrame]

__all__ = ["erase", "frames"]

_OF_PUBLICATIONS = ("deliveries", "plans")


@recorded("erase")
def erase(store: Store, user: str, *, dry_run: bool = False) -> JobReport:
    """Remove every row that is about a user, from all tables of a folder.

    That is: what the user is, subscribes to, publishes and receives, with the deliveries and plans
    of what the user has published, and lines in quarantine that have the name in them. Sums over
    all users are not changed: `channels` and `traffic` work them out again. Older versions keep
    the rows until `vacuum` removes their files. With `dry_run` it only counts.
    """
    watch = Stopwatch()
    if not user:
        raise BadInput("USER", "must have a name")
    rows_in: dict[str, int] = {}
    rows_out: dict[str, int] = {}
    # First what hangs on publications, as long as it is known whose those are.
    for name, about in sorted(
        _about(store, user).items(), key=lambda item: item[0] == "publications"
    ):
        with explained("erase", store.path(name)):
            by_day = TABLES[name].by_day
            rows = about(store.frame(name, with_day=by_day))
            found = (
                dict(rows.filter("is_about").groupBy(DAY).count().collect())
                if by_day
                else {None: rows.filter("is_about").count()}
            )
            rows_in[name] = store.row_count(name)
            rows_out[name] = rows_in[name] - sum(found.values())
            if not sum(found.values()) or dry_run:
                continue
            days = Days(chosen=frozenset(found)) if by_day else ALL
            left = about(store.frame(name, days, with_day=by_day)).filter("NOT is_about")
            stream = store.stream_of(name)
            store.publish(store.draft(name, left.drop("is_about")), days, stream=stream)
    removed = {f"{name}_removed": rows_in[name] - rows_out[name] for name in rows_in}
    if not any(removed.values()):
        raise BadInput("USER", f"nothing here is about {quoted(user)}")
    return JobReport("erase", rows_in, rows_out, watch.seconds, removed)


def frames(store: Store, user: str) -> dict[str, DataFrame]:
    """Return the rows that would be removed, by table."""
    return {
        name: about(store.frame(name, with_day=TABLES[name].by_day)).filter("is_about")
        for name, about in _about(store, user).items()
    }


def _about(store: Store, user: str) -> dict[str, _Mark]:
    """Return how rows of each table are marked that are about a user."""
    from pyspark.sql import functions as f

    def marked(condition: Column) -> _Mark:
        return lambda rows: rows.withColumn("is_about", f.coalesce(condition, f.lit(False)))

    conditions: dict[str, Column] = {
        name: f.col("user") == user
        for name, declared in TABLES.items()
        if "user" in declared.column_names
    }
    conditions["partners"] |= f.col("partner") == user
    conditions["publications"] = f.col("publisher") == user
    conditions["decisions"] = (f.col("kind") != "rate") & (f.col("subject") == user)
    conditions["quarantine"] = f.col("raw").contains(user)
    found = {name: marked(condition) for name, condition in conditions.items() if store.has(name)}
    if not store.has("publications"):
        return found
    own = store.frame("publications", with_day=True).filter(f.col("publisher") == user)
    # No join compares nothing with nothing.
    keys = own.select("source", "event_id", _text_day().alias("own_day")).distinct()

    def of_publications(
        first: Callable[[DataFrame], DataFrame],
    ) -> Callable[[DataFrame], DataFrame]:
        def mark(rows: DataFrame) -> DataFrame:
            known = keys.withColumn("is_own", f.lit(True))
            joined = first(rows).withColumn("own_day", _text_day())
            every = joined.join(f.broadcast(known), ["source", "event_id", "own_day"], "left")
            is_about = f.col("is_about") | f.coalesce("is_own", f.lit(False))
            return every.select(*rows.columns, is_about.alias("is_about"))

        return mark

    for name in _OF_PUBLICATIONS:
        if store.has(name):
            found[name] = of_publications(found.get(name, marked(f.lit(False))))
    return found


def _text_day() -> Column:
    from pyspark.sql import functions as f

    return f.coalesce(f.col(DAY).cast("string"), f.lit(""))
