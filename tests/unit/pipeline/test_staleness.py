"""What is stale after what, without Spark: runs on record, changed days, and chains of tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.smallest_job import day, deliveries, events, filled, match, people, stale, subscribed

import distributary
from distributary.cli import main
from distributary.pipeline.days import Days
from distributary.pipeline.staleness import Stale
from distributary.pipeline.store import Store


def test_a_day_is_stale_until_it_is_done_and_again_when_it_has_changed(tmp_path: Path) -> None:
    store = filled(tmp_path, 0, 1)
    assert stale(store) == Stale(frozenset({day(0), day(1)}), {"new": frozenset({day(0), day(1)})})
    match(store, store, Days(day(0), day(1)))
    assert set(stale(store).days or ()) == {day(1)}
    match(store, store)
    assert not stale(store)
    store.write("publications", events(1, "b"), Days(day(1)))
    store.write("publications", events(2, "b"), Days(day(2)))
    found = stale(store)
    assert found.reasons == {
        "publications changed": frozenset({day(1)}),
        "new": frozenset({day(2)}),
    }
    match(store, store, Days(chosen=found.days))
    assert not stale(store)
    assert {(row[1], row[-1]) for row in deliveries(store)} == {
        ("a", day(0)), ("b", day(1)), ("b", day(2))
    }  # fmt: skip


def test_whatever_all_days_are_made_of_makes_all_of_them_stale(tmp_path: Path) -> None:
    store = filled(tmp_path, 0, 1)
    both = frozenset({day(0), day(1)})
    match(store, store)
    store.write("subscriptions", subscribed("ann"))
    assert stale(store).reasons == {"subscriptions changed": both}
    match(store, store)
    store.write("users", people("ann"))
    assert stale(store).reasons == {"users changed": both}
    match(store, store)
    assert stale(store, copies=2).reasons == {"other options": both}
    assert stale(store, forced=Days(day(1))).reasons == {"asked for": frozenset({day(1)})}
    assert not stale(store)


def test_another_version_of_the_code_makes_everything_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(tmp_path, 0)
    match(store, store)
    monkeypatch.setattr(distributary, "__version__", "9.9")
    assert stale(store).reasons == {"another version of the code": frozenset({day(0)})}


def test_what_a_run_without_a_row_has_written_is_done_again(tmp_path: Path) -> None:
    """It was killed before it was finished: nobody knows what of it is there."""
    store = filled(tmp_path, 0, 1)
    match(store, store)
    killed = Store(str(tmp_path))
    killed.begin("match")
    rows = killed.read("deliveries").slice(0, 1)
    killed.write("deliveries", rows, Days(chosen=frozenset(rows["day"].to_pylist())))
    assert stale(store).reasons == {"deliveries was written by others": frozenset({day(0)})}
    match(store, store, Days(day(0), day(1)))
    assert not stale(store)


def test_rows_without_a_time_are_a_day_of_their_own_and_in_no_range(tmp_path: Path) -> None:
    store = filled(tmp_path, 0)
    match(store, store)
    draft = store.draft("publications", events(None, "x"))
    store.publish(draft, Days(chosen=frozenset({None})))
    assert set(stale(store).days or ()) == {None}
    match(store, store, Days(day(0)))
    assert set(stale(store).days or ()) == {None}
    assert store.read("publications", since=day(0)).num_rows == 1
    match(store, store, Days(chosen=frozenset({None})))
    assert not stale(store)
    assert store.read("deliveries", ["event_id"])["event_id"].to_pylist().count("x") == 2


def test_others_change_days_by_their_files_and_tidying_changes_nothing(tmp_path: Path) -> None:
    store = filled(tmp_path, 0, 1)
    place = store.path("publications")
    match(store, store)
    for _ in range(3):
        store.publish(store.draft("publications", events(0, "c", "d").slice(0, 0)), append=True)
    assert not stale(store)
    DeltaTable(place).optimize.compact()
    DeltaTable(place).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert not stale(store)
    theirs = store.read("publications").slice(0, 1)
    write_deltalake(place, theirs, mode="append")
    assert stale(store).reasons == {"publications changed": frozenset(theirs["day"].to_pylist())}


def test_a_day_that_is_gone_is_done_by_leaving_it_out(tmp_path: Path) -> None:
    store = filled(tmp_path, 0, 1)
    match(store, store)
    store.write("publications", events(0, "a").slice(0, 0), Days(day(0), day(1)))
    found = stale(store)
    assert set(found.days or ()) == {day(0)}
    match(store, store, Days(chosen=found.days))
    assert not stale(store)
    assert {row[-1] for row in deliveries(store)} == {day(1)}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["replace", "add", "forget", "people", "run", "range", "compact"]),
        st.integers(0, 3),
        st.integers(0, 3),
    ),
    max_size=12,
)


@settings(deadline=None, max_examples=10)
@given(steps=STEPS)
def test_doing_what_is_stale_is_as_good_as_doing_everything(
    steps: Sequence[tuple[str, int, int]],
) -> None:
    with TemporaryDirectory() as folder:
        store = filled(folder, 0)
        for kind, number, amount in steps:
            names = [f"{kind}{n}" for n in range(amount)]
            chosen = Days(chosen=frozenset({None if number == 3 else day(number)}))
            at = None if number == 3 else number
            if kind == "replace":
                store.write("publications", events(at, *names), chosen)
            elif kind == "add":
                store.publish(store.draft("publications", events(at, *names)), append=True)
            elif kind == "forget":
                store.write("publications", events(at), chosen)
            elif kind == "people":
                store.write("subscriptions", subscribed(*names))
            elif kind == "compact":
                store.compact("publications")
            elif kind == "range":
                match(store, store, Days(day(min(number, amount)), day(max(number, amount) + 1)))
            else:
                match(store, store, Days(chosen=stale(store).days))
                assert not stale(store)
        match(store, store, Days(chosen=stale(store).days))
        found = deliveries(store)
        match(store, store)
        assert found == deliveries(store)


def test_runs_are_listed_with_all_they_have_read_and_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = filled(tmp_path, 0, 1)
    before = datetime.now(UTC)
    match(store, store, Days(day(0)))
    with pytest.raises(TypeError):
        match(store, store, Days(day(0)), copies="many")  # type: ignore[arg-type]
    assert main(["pipeline", "history", "--data", str(tmp_path), "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first["job"] == "match"
    assert first["code"] == distributary.__version__
    assert first["since"] == "2026-01-05"
    assert first["until"] is None
    assert first["days"] == ["2026-01-05", "2026-01-06"]
    assert first["options"] == {"copies": 1}
    assert first["inputs"] == {"publications": 1, "subscriptions": 0, "users": None}
    assert first["outputs"] == {"deliveries": 0}
    assert first["rows_out"] == {"deliveries": 4}
    assert first["outcome"] == "done"
    assert datetime.fromisoformat(first["began"]) >= before
    assert second["outcome"].startswith("TypeError: ")
    assert second["outputs"] == {}
    # Of a table, what no run of ours has made is listed, too.
    assert main(["pipeline", "history", "publications", "--data", str(tmp_path), "--json"]) == 0
    assert [row["outputs"] for row in json.loads(capsys.readouterr().out)] == [
        {"publications": 0}, {"publications": 1}
    ]  # fmt: skip
    assert main(["pipeline", "history", "deliveries", "--data", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "deliveries 0  2026-01-05 to 2026-01-06" in out
    assert main(["pipeline", "history", "wiring", "--data", str(tmp_path)]) == 2
    assert "there is no such table" in capsys.readouterr().err


def test_a_failed_job_leaves_nothing_where_nothing_was(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "none"))
    with pytest.raises(Exception, match="there is no such table"):
        match(store, store)
    assert not (tmp_path / "none").exists()


def test_days_are_read_from_the_log(tmp_path: Path) -> None:
    store = filled(tmp_path, 0, 1, 2)
    rows = store.read("publications", since=day(1), until=day(2))
    assert rows["day"].to_pylist() == [day(1)]
    assert rows.schema.field("day").type == pa.date32()
    every = store.read("publications", where=pc.field("day") == pa.scalar(day(2), pa.date32()))
    assert every.num_rows == 1
    assert store.days("publications") == {day(0), day(1), day(2)}
