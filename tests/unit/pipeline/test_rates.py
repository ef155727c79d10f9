"""Rates: what servers need of quoted objects, in any order of rows."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.reference.pipeline_rates import Quote, rates_one_by_one

from distributary.errors import BadInput
from distributary.pipeline.broadcast import Broadcast, broadcast
from distributary.pipeline.jobs.rates import rates
from distributary.pipeline.sample import SampleSizes, sample_tables
from distributary.pipeline.schemas import table_schema
from distributary.pipeline.store import Store
from distributary.pipeline.transforms.followers import Followers, ObjectEvents, followers
from distributary.pipeline.transforms.rate_days import rate_days, rates_of_days

Row = dict[str, str | None]
HOMES: dict[str, str | None] = {"ann": "b1", "bob": "b2", "cy": "b2", "dee": None}


def subscription(number: int, user: str, wish: dict[str, object], tolerance: object = None) -> Row:
    return {
        "subscription_id": f"s{number}",
        "user": user,
        "filters": json.dumps([wish]),
        "profile": None,
        "tolerance": None if tolerance is None else json.dumps(tolerance),
    }


def within(amount: float, divergence: str = "absolute", value: str = "/price") -> object:
    return {"value": value, "divergence": divergence, "amount": amount}


def about(name: str) -> dict[str, object]:
    return {"exact": {"subject": name}}


ROWS = [
    subscription(0, "ann", about("x"), within(0.5)),
    subscription(1, "bob", about("x"), within(2.0)),
    subscription(2, "cy", {"prefix": {"subject": "x"}}, within(0.02, "relative")),
    subscription(3, "cy", {"exact": {"type": "quote", "source": "/exchange"}}, within(3, "age")),
    subscription(4, "dee", about("y"), within(0.1)),
    subscription(5, "ann", about("y")),
    subscription(6, "ann", {"exact": {"type": "notice"}}, within(0.1)),
    subscription(7, "nobody", about("x"), within(0.1)),
    subscription(8, "bob", {"range": {"/price": {}}}, within(0.1)),
]


def tables(rows: Sequence[Row]) -> tuple[pa.Table, pa.Table]:
    names = ("subscription_id", "user", "filters", "profile", "tolerance")
    columns = {name: pa.array([row[name] for row in rows], pa.string()) for name in names}
    users = {"user": list(HOMES), "broker": pa.array(HOMES.values(), pa.string())}
    return pa.table(columns), pa.table(users)


def of(rows: Sequence[Row], events: ObjectEvents | None = None) -> Followers:
    return followers(*tables(rows), events or ObjectEvents())


def servers(rows: Sequence[Row], name: str, events: ObjectEvents | None = None) -> list[str]:
    found = of(rows, events)
    return [found.servers[number] for number in found.of([name])[0].servers.tolist()]


def counted(quotes: DataFrame, followers: Broadcast[Followers], *, tasks: int) -> DataFrame:
    days = sorted(row[0] for row in quotes.selectExpr("to_date(time)").distinct().collect())
    return rates_of_days(rate_days(None, quotes, followers, days, tasks=tasks))


def some_quotes() -> list[Quote]:
    rng = np.random.default_rng(5)
    quotes: list[Quote] = []
    for name in ("x", "xx", "y", "z"):
        values = np.round(50 + np.cumsum(rng.normal(0, 0.4, 40)), 2)
        quotes += [(name, at * 700_000, value) for at, value in enumerate(values.tolist())]
    # Times that are there twice, in both orders; an object of one version.
    quotes += [("x", 700_000, 60.0), ("y", 1_400_000, 1.0), ("xx1", 5, 1.0)]
    return [quotes[at] for at in rng.permutation(len(quotes)).tolist()]


def test_rates_are_those_of_going_through_versions_one_by_one(spark: SparkSession) -> None:
    """Unsorted, with times that are there twice and an object of a single version."""
    quotes = some_quotes()
    frame = spark.createDataFrame(quotes, "object string, us bigint, value double").selectExpr(
        "object", "timestamp_micros(us) AS time", "value"
    )
    everybody = broadcast(spark, of(ROWS))
    found = {}
    for tasks, partitions in ((3, 5), (1, 1)):
        rows = counted(frame.repartition(partitions), everybody, tasks=tasks).collect()
        rates = {(row.server, row.object): row.updates_per_second for row in rows}
        assert len(rates) == len(rows)
        found[tasks] = rates
    assert found[1] == found[3] == rates_one_by_one(quotes, ROWS, HOMES)
    assert found[1]["b2", "xx1"] == 0.0
    assert set(found[1]) == {
        ("b1", "x"), ("b2", "x"), ("b2", "xx"), ("b2", "xx1"), ("b1", "y"), ("b2", "y"),
        ("b2", "z"),
    }  # fmt: skip


def test_ticks_of_a_cent_are_counted_as_they_are_written(spark: SparkSession) -> None:
    """In decimals; in doubles most differences of a cent come out below or above one."""
    rng = np.random.default_rng(77)
    cents = (4900 + np.cumsum(rng.integers(-2, 3, 3000))).tolist()
    frame = spark.createDataFrame(
        [("x", at * 1_000_000, f"{price / 100:.2f}") for at, price in enumerate(cents)],
        "object string, us bigint, text string",
    ).selectExpr("object", "timestamp_micros(us) AS time", "CAST(text AS double) AS value")
    # Another's tolerance at the same server would be the smaller.
    rows = [
        subscription(0, "ann", about("x"), within(0.01)),
        subscription(1, "bob", about("x"), within(0.03)),
    ]
    found = counted(frame, broadcast(spark, of(rows)), tasks=1).collect()
    sent = {}
    for server, amount in (("b1", 1), ("b2", 3)):
        count, last = 1, cents[0]
        for price in cents:
            if abs(price - last) >= amount:
                count, last = count + 1, price
        sent[server] = count / (len(cents) - 1)
    assert {row.server: row.updates_per_second for row in found} == sent


def test_the_rates_of_a_sample_are_those_of_its_subscriptions(store: Store) -> None:
    sizes = SampleSizes(
        publications=1, subscriptions=60, users=12, brokers=4, objects=4, seconds=120
    )
    made = sample_tables(store.spark, sizes, 11)
    for name in ("quotes", "subscriptions", "users"):
        store.write(name, made[name])
    report = rates(store, store)
    quotes = store.frame("quotes").toArrow()
    times = quotes.column("time").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    listed = zip(
        quotes.column("object").to_pylist(),
        times.to_pylist(),
        quotes.column("value").to_pylist(),
        strict=True,
    )
    homes = {row["user"]: row["broker"] for row in store.frame("users").toArrow().to_pylist()}
    expected = rates_one_by_one(
        list(listed), store.frame("subscriptions").toArrow().to_pylist(), homes
    )
    found = store.frame("rates").collect()
    assert {(row.server, row.object): row.updates_per_second for row in found} == expected
    assert report.rows_in["quotes"] == 480
    assert report.rows_out["rates"] == len(expected) > 3


def test_no_quotes_make_no_rates(store: Store) -> None:
    spark = store.spark
    store.write("quotes", spark.createDataFrame([], table_schema("quotes").struct_type))
    subscriptions, users = tables(ROWS)
    store.write("subscriptions", spark.createDataFrame(subscriptions))
    store.write("users", spark.createDataFrame(users))
    report = rates(store, store)
    assert report.rows_out == {"rate_days": 0, "rates": 0}
    assert store.frame("rates").isEmpty()


def test_a_server_follows_what_a_user_at_home_there_follows() -> None:
    assert servers(ROWS, "x") == ["b1", "b2"]
    assert servers(ROWS, "z") == ["b2"]
    assert servers([ROWS[4], ROWS[7]], "x") == []


def test_filters_see_the_source_and_type_of_objects() -> None:
    other = ObjectEvents(source="/market", type="notice")
    assert servers(ROWS, "z", other) == ["b1"]


def test_filters_on_data_follow_nothing() -> None:
    """Whether somebody follows an object must not depend on its values."""
    assert servers([ROWS[8]], "x") == []


def test_a_server_keeps_to_the_least_of_its_users_tolerances() -> None:
    both = of([ROWS[1], subscription(9, "cy", about("x"), within(0.25))]).of(["x"])[0]
    least = of([subscription(9, "cy", about("x"), within(0.25))]).of(["x"])[0]
    assert both.thresholds.tolist() == least.thresholds.tolist()


def test_an_object_that_no_event_can_be_about_has_no_followers() -> None:
    assert servers(ROWS, "") == []
    everybody = of(ROWS)
    assert [len(item.servers) for item in everybody.of(["", "x", "\0", "z"])] == [0, 2, 0, 1]


def test_tolerances_about_another_value_are_no_wish_to_follow() -> None:
    rows = [ROWS[0], subscription(9, "bob", about("x"), within(0.1, value="/volume"))]
    assert servers(rows, "x", ObjectEvents(value="/price")) == ["b1"]
    assert servers(rows, "x", ObjectEvents(value="/volume")) == ["b2"]
    with pytest.raises(BadInput, match=r"'/price' for some and '/volume'.*--value"):
        of(rows)


def test_a_tolerance_that_cannot_be_read_names_its_subscription() -> None:
    broken = subscription(9, "ann", about("x"), within(-1.0))
    with pytest.raises(BadInput, match=r"subscription 's9': tolerance\.amount: must be"):
        of([*ROWS, broken])
    broken["tolerance"] = "{"
    with pytest.raises(BadInput, match=r"subscription 's9'"):
        of([*ROWS, broken])


def test_a_user_who_is_there_twice_is_refused() -> None:
    subscriptions, users = tables(ROWS)
    with pytest.raises(BadInput, match="users: has a user twice"):
        followers(subscriptions, pa.concat_tables([users, users]), ObjectEvents())


def test_events_without_a_type_are_refused() -> None:
    with pytest.raises(BadInput, match="type"):
        of(ROWS, ObjectEvents(type=""))
