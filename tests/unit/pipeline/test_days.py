"""Days in any order, again and late: doing what is stale is as good as doing everything."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.pipeline_chain import table_hashes
from tests.pipeline_tables import subscriptions_table, users_table

from distributary.cli import main
from distributary.content.publication import Publication
from distributary.content.publication_table import to_arrow
from distributary.errors import BadInput
from distributary.pipeline.config import Step
from distributary.pipeline.days import ALL, Days
from distributary.pipeline.jobs.channels import SpaceWish
from distributary.pipeline.jobs.ingest import ingest
from distributary.pipeline.jobs.match import match
from distributary.pipeline.jobs.rates import rates
from distributary.pipeline.jobs.run import UP_TO_DATE, run, todo
from distributary.pipeline.runs import runs_in
from distributary.pipeline.store import Store
from distributary.topology import Overlay

FIRST = date(2026, 1, 5)
USERS = {f"u{n}": f"b{n % 3}" for n in range(5)}
STEPS = (
    Step("match"),
    Step("channels", {"space": "default"}),
    Step("traffic", {"partners": 2}),
    Step("rates"),
)
WITH_PLANS = (*STEPS, Step("plans"))


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


def one(number: int | None) -> Days:
    return Days(chosen=frozenset({None if number is None else day(number)}))


def events(number: int | None, seed: int) -> pa.Table:
    """Return the publications of a day; identifiers are the same every day."""
    rng = np.random.default_rng([seed, 99 if number is None else number])
    made, publishers = [], []
    for event in range(int(rng.integers(3, 7))):
        attributes: dict[str, Any] = {
            "specversion": "1.0",
            "id": f"e{event}",
            "source": f"/s{event % 2}",
            "type": f"t{int(rng.integers(3))}",
            "datacontenttype": "text/plain;charset=utf-8",
        }
        if number is not None:
            attributes["time"] = f"{day(number)}T{int(rng.integers(24)):02}:00:00Z"
        made.append(Publication(attributes, bytes(int(rng.integers(10, 900)))))
        publishers.append(f"u{int(rng.integers(5))}")
    return pa.Table.from_batches([to_arrow(made, publishers=publishers)])


def quotes(number: int, seed: int) -> pa.Table:
    rng = np.random.default_rng([seed, number, 7])
    hours = np.sort(rng.choice(24, size=8, replace=False))
    start = np.datetime64(day(number), "us").astype(np.int64)
    times = np.concatenate([start + hours * 3_600_000_000] * 2)
    return pa.table(
        {
            "object": ["x"] * 8 + ["y"] * 8,
            "time": pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "value": np.round(50 + np.cumsum(rng.normal(0, 1, 16)), 1),
        }
    )


def subscriptions(seed: int) -> pa.Table:
    rng = np.random.default_rng([seed, 5])
    rows: list[dict[str, Any]] = [
        {
            "id": f"s{n}",
            "user": f"u{n}",
            "filters": [{"exact": {"type": f"t{int(rng.integers(3))}"}}],
        }
        for n in range(4)
    ]
    rows += [{"id": f"q{n}", "user": f"u{n}", "filters": [{"prefix": {"subject": name}}]}
             for n, name in enumerate(("x", "y", "x"))]  # fmt: skip
    kinds = (("absolute", 2.0), ("changes", 3), ("age", 30_000))
    asked = [
        json.dumps({"value": "/price", "divergence": kind, "amount": amount})
        for kind, amount in kinds
    ]
    table = subscriptions_table(rows).drop_columns("tolerance")
    # Nobody without a tolerance follows quotes: their filters ask for another type.
    return table.append_column("tolerance", pa.array([None] * 4 + asked, pa.string()))


def world(folder: Path | str, spark: SparkSession) -> Store:
    store = Store(str(folder), spark)
    network = Overlay.in_unit_square(3, np.random.default_rng(1))
    overlay = {
        "broker": ["b0", "b1", "b2"],
        "identifier": network.identifiers,
        "delays": [row.tolist() for row in network.delays],
    }
    store.write("overlay", pa.table(overlay))
    store.write("users", users_table(dict(USERS)))
    store.write("subscriptions", subscriptions(0))
    store.write("publications", events(None, 0), one(None))
    store.write("quotes", quotes(0, 0), one(0))
    return store


Doing = tuple[str, int, int]


def do(store: Store, doing: Doing) -> None:
    """Change the tables that jobs read, without Spark."""
    kind, number, seed = doing
    if kind == "subscriptions":
        store.write("subscriptions", subscriptions(seed))
    elif kind == "forget":
        for name in ("publications", "quotes"):
            if store.has(name) and day(number) in store.days(name):
                nothing = store.read(name).slice(0, 0)
                store.write(name, nothing, one(number))
    elif kind == "late":
        # What comes late has other keys than what is there.
        rows = store.read("quotes")
        hours = quotes(number, seed)
        known = set(zip(rows["object"].to_pylist(), rows["time"].to_pylist(), strict=True))
        pairs = zip(hours["object"].to_pylist(), hours["time"].to_pylist(), strict=True)
        new = hours.filter(pa.array([pair not in known for pair in pairs]))
        store.publish(store.draft("quotes", new), append=True)
    else:
        store.write("publications", events(number, seed), one(number))
        store.write("quotes", quotes(number, seed), one(number))


def copied(store: Store, folder: Path | str, spark: SparkSession) -> Store:
    """Return a folder with the same rows that no job has worked on."""
    other = Store(str(folder), spark)
    for name in ("overlay", "users", "subscriptions", "publications", "quotes"):
        other.write(name, store.read(name))
    return other


def check(
    folder: Path, spark: SparkSession, rounds: Sequence[Sequence[Doing]], steps: Sequence[Step]
) -> Store:
    store = world(folder / "grown", spark)
    for doings in rounds:
        for doing in doings:
            do(store, doing)
        run(store, steps)
        assert all(UP_TO_DATE in report.figures for report in run(store, steps))
    other = copied(store, folder / "scratch", spark)
    run(other, steps)
    assert table_hashes(folder / "grown") == table_hashes(folder / "scratch")
    return store


def test_days_in_any_order_again_and_late_are_as_good_as_all_at_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    rounds: list[list[Doing]] = [
        [("day", 2, 1), ("day", 0, 2)],
        [("late", 0, 5), ("day", 1, 3), ("day", 3, 1)],
        [("forget", 1, 0), ("day", 2, 4)],
    ]
    store = check(tmp_path, spark, rounds, STEPS)
    last = {item.job: item for item in runs_in(store)}
    # What a day is not made of was not done again.
    assert list(last["match"].days or ()) == [day(2)]
    assert set(last["rates"].days or ()) <= {day(2), day(3)}
    assert store.version("channels") == 2


@pytest.mark.full
@settings(deadline=None, max_examples=12)
@given(
    rounds=st.lists(
        st.lists(
            st.tuples(
                st.sampled_from(["day", "day", "late", "forget", "subscriptions"]),
                st.integers(0, 4),
                st.integers(0, 5),
            ),
            min_size=1,
            max_size=4,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_days_in_any_order_are_as_good_as_all_at_once(
    spark: SparkSession, rounds: list[list[Doing]]
) -> None:
    with TemporaryDirectory() as folder:
        check(Path(folder), spark, rounds, WITH_PLANS)


def test_a_plan_lists_what_is_stale_and_why_and_does_nothing(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = world(tmp_path / "data", spark)
    do(store, ("day", 1, 1))
    found = todo(store, WITH_PLANS)
    assert [bool(item.stale) for item in found] == [True] * 5
    assert found[0].document() == {
        "job": "match",
        "stale": True,
        "days": ["2026-01-06", None],
        "reasons": ["new: 2026-01-06, without a time"],
    }
    assert not store.has("deliveries")
    run(store, (STEPS[0], Step("plans")))
    do(store, ("day", 2, 1))
    chain = tmp_path / "run.toml"
    chain.write_text(f'[data]\nfolder = "{tmp_path}/data"\n[match]\n[plans]\n')
    versions = [store.version(name) for name in ("deliveries", "plans", "runs")]
    assert main(["pipeline", "run", str(chain), "--plan"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "match     to do  2026-01-07",
        "            new: 2026-01-07",
        "plans     to do  2026-01-07",
        "            new: 2026-01-07",
    ]
    assert main(["pipeline", "run", str(chain), "--plan", "--since", "2026-01-06", "--json"]) == 0
    first, _ = json.loads(capsys.readouterr().out)
    assert first["days"] == ["2026-01-06", "2026-01-07"]
    assert first["reasons"] == ["asked for: 2026-01-06 to 2026-01-07", "new: 2026-01-07"]
    assert versions == [store.version(name) for name in ("deliveries", "plans", "runs")]
    assert main(["pipeline", "run", str(chain), "--plan", "--since", "tomorrow"]) == 2
    assert "--since: 'tomorrow' is not a day; hint: write it as in" in capsys.readouterr().err


def test_two_runs_on_different_days_both_win_and_on_the_same_day_one_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    from distributary.errors import TableBusy

    store = world(tmp_path, spark)
    for number in (1, 2):
        do(store, ("day", number, 1))
    match(store, store, ALL)
    first, second, third = (Store(str(tmp_path), spark) for _ in range(3))
    rows = first.frame("deliveries", one(1), with_day=True)
    drafts = [first.draft("deliveries", rows), second.draft("deliveries", rows.limit(1))]
    other = third.draft("deliveries", third.frame("deliveries", one(2), with_day=True).limit(1))
    first.publish(drafts[0], one(1))
    third.publish(other, one(2))
    with pytest.raises(TableBusy, match=first.run):
        second.publish(drafts[1], one(1))
    found = Store(str(tmp_path))
    days = found.read("deliveries", ["day"])["day"].to_pylist()
    assert days.count(day(1)) == drafts[0].rows > 1
    assert days.count(day(2)) == 1


def test_a_day_is_replaced_while_a_job_reads_it(spark: SparkSession, tmp_path: Path) -> None:
    """The job ends with what it has begun with, and is stale then."""
    store = world(tmp_path, spark)
    do(store, ("day", 1, 1))
    reading = store.frame("publications", one(1))
    before = sorted(row.bytes for row in reading.collect())
    do(Store(str(tmp_path), spark), ("day", 1, 2))
    assert sorted(row.bytes for row in reading.collect()) == before
    store.begin("match")
    assert sorted(row.bytes for row in store.frame("publications", one(1)).collect()) != before


def test_ingest_replaces_the_days_that_occur_and_adds_to_them_when_asked(
    store: Store, tmp_path: Path
) -> None:
    def lines(name: str, *rows: str) -> list[str]:
        (tmp_path / name).write_text("\n".join(["object,time,value", *rows]) + "\n")
        return [str(tmp_path / name)]

    x5, x6, x7 = (f"x,2026-01-0{n}T10:00:00Z" for n in (5, 6, 7))
    report = ingest(store, "quotes", lines("one.csv", f"{x5},1", f"{x6},1", "x,yesterday,1"))
    assert set(report.days or ()) == {day(0), day(1)}
    assert report.document()["days"] == ["2026-01-05", "2026-01-06"]
    report = ingest(store, "quotes", lines("two.csv", f"{x6},2", f"{x7},2", f"{x7},3"))
    assert set(report.days or ()) == {day(1), day(2)}
    rows = store.read("quotes", ["day", "value"]).to_pylist()
    assert {(row["day"], row["value"]) for row in rows} == {
        (day(0), 1.0), (day(1), 2.0), (day(2), 2.0)
    }  # fmt: skip
    # A row in quarantine has its own day, if it can be read.
    bad = store.read("quarantine", ["day", "reason"]).to_pylist()
    assert {row["reason"][:8]: row["day"] for row in bad} == {"repeated": day(2), "time: 'y": None}
    added = lines("three.csv", f"{x7},9", "y,2026-01-07T10:00:00Z,4")
    report = ingest(store, "quotes", added, add=True)
    assert report.rows_out == {"quotes": 1, "quarantine": 1}
    assert store.changes("quotes", 1) == {2: frozenset({day(2)})}
    assert sorted(store.read("quotes", ["value"], since=day(2))["value"].to_pylist()) == [2.0, 4.0]
    # The same files again give the same tables.
    before = table_hashes(tmp_path / "data")
    again = ingest(store, "quotes", [str(tmp_path / "two.csv")])
    assert set(again.days or ()) == {day(1), day(2)}
    ingest(store, "quotes", added, add=True)
    assert table_hashes(tmp_path / "data") == before


def test_a_range_has_no_rows_without_a_time_and_rates_go_on_from_the_day_before(
    spark: SparkSession, tmp_path: Path
) -> None:
    store = world(tmp_path, spark)
    for number in (1, 2):
        do(store, ("day", number, 1))
    report = match(store, store, Days(day(1), day(2)))
    assert set(report.days or ()) == {day(1)}
    assert set(store.read("deliveries", ["day"])["day"].to_pylist()) == {day(1)}
    rates(store, store)
    expected = store.read("rate_days").to_pylist()
    rates(store, store, Days(day(2)))
    found = store.read("rate_days").to_pylist()
    keys = ("day", "object", "server")
    assert sorted(found, key=lambda row: [row[key] for key in keys]) == sorted(
        expected, key=lambda row: [row[key] for key in keys]
    )
    own = [row for row in found if row["day"] == day(2)]
    spans = {
        (row["object"], row["server"]): row["sent"] / (row["last"] - row["first"]).total_seconds()
        for row in own
    }
    rows = store.read("rates").to_pylist()
    assert {(row["object"], row["server"]): row["updates_per_second"] for row in rows} == spans


def test_a_space_is_kept_until_a_new_one_is_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    store = world(tmp_path, spark)
    steps = (Step("channels", {"dimensions": ["type"], "bins": 3}),)
    run(store, steps)
    wish = SpaceWish(None, ("type",), 3)
    kept = wish.kept(store)
    assert kept is not None
    assert SpaceWish().kept(store) == kept
    do(store, ("day", 1, 1))
    run(store, steps)
    assert wish.kept(store) == kept
    assert store.days("volume_days") == {None, day(1)}
    with pytest.raises(BadInput, match=r"channels: are of a content space that .* --new-space"):
        SpaceWish("default").kept(store)
