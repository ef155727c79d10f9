"""A job as small as one can be, on tables that are put there without Spark."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa

from distributary.content.publication import Publication
from distributary.content.publication_table import to_arrow
from distributary.pipeline.days import ALL, Days
from distributary.pipeline.report import JobReport
from distributary.pipeline.runs import options_of, recorded, runs_in
from distributary.pipeline.staleness import Stale, Staleness
from distributary.pipeline.store import Store

__all__ = ["day", "deliveries", "events", "filled", "match", "people", "stale", "subscribed"]

FIRST = date(2026, 1, 5)


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


def events(number: int | None, *names: str) -> pa.Table:
    time = {} if number is None else {"time": f"{day(number)}T12:00:00Z"}
    made = [Publication({"id": name, "source": "/s", "type": "t"} | time) for name in names]
    return pa.Table.from_batches([to_arrow(made)])


def people(*names: str) -> pa.Table:
    return pa.table(
        {"user": pa.array(names, pa.string()), "broker": pa.nulls(len(names), pa.string())}
    )


def subscribed(*names: str) -> pa.Table:
    rows = [{"subscription_id": name, "user": name, "filters": "[]"} for name in names]
    return pa.Table.from_pylist(rows, schema=pa.schema([(key, pa.string()) for key in (
        "subscription_id", "user", "filters", "profile", "tolerance")]))  # fmt: skip


@recorded("match")
def match(source: Store, target: Store, days: Days = ALL, *, copies: int = 1) -> JobReport:
    """Deliver every publication to every subscriber: a job as small as one can be."""
    published = source.read("publications")
    wanted = source.read("subscriptions")["user"].to_pylist()
    if source.has("users"):
        source.check("users")
    rows = [
        {
            "source": row["source"], "event_id": row["event_id"], "subscription_id": f"{user}{n}",
            "user": user, "broker": None, "media_type": None, "bytes": 0, "day": row["day"],
        }
        for row in published.to_pylist()
        for user in wanted
        for n in range(copies)
        if row["day"] in days
    ]  # fmt: skip
    kinds = [("bytes", pa.int64()), ("day", pa.date32())]
    texts = ["source", "event_id", "subscription_id", "user", "broker", "media_type"]
    schema = pa.schema([*((name, pa.string()) for name in texts), *kinds])
    target.write("deliveries", pa.Table.from_pylist(rows, schema=schema), days)
    done = days.among(source.days("publications"))
    return JobReport("match", {}, {"deliveries": len(rows)}, 0.0, days=done)


def stale(store: Store, *, copies: int = 1, forced: Days | None = None) -> Stale:
    asked = options_of(match, (store, store), {"copies": copies})
    return Staleness(store, runs_in(store)).of("match", asked, forced)


def filled(folder: Path | str, *numbers: int) -> Store:
    store = Store(str(folder))
    store.write("subscriptions", subscribed("ann", "bob"))
    for number in numbers:
        store.write("publications", events(number, "a"), Days(chosen=frozenset({day(number)})))
    return store


def deliveries(store: Store) -> list[tuple[object, ...]]:
    rows = store.read("deliveries")
    return sorted(
        (tuple(row.values()) for row in rows.to_pylist()), key=lambda row: list(map(str, row))
    )
