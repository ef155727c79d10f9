"""Versions of tables, without Spark: who was first, what is read, what a kill leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from distributary.cli import main
from distributary.content.publication import Publication
from distributary.content.publication_table import to_arrow
from distributary.errors import BadInput, TableBusy
from distributary.pipeline.store import Store
from distributary.pipeline.table_files import DataFile


def people(*names: str, broker: str | None = "b1") -> pa.Table:
    brokers = pa.array([broker] * len(names), pa.string())
    return pa.table({"user": pa.array(names, pa.string()), "broker": brokers})


def users(folder: Path, version: int | None = None) -> list[str]:
    found: list[str] = (
        Store(str(folder)).read("users", ["user"], version=version)["user"].to_pylist()
    )
    return found


def test_every_version_can_be_read_and_only_its_own_files(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    assert not store.has("users")
    assert store.write("users", people("u1", "u2")) == 2
    assert store.write("users", people("u3")) == 1
    assert users(tmp_path) == ["u3"]
    assert users(tmp_path, version=0) == ["u1", "u2"]
    assert store.version("users") == 1
    assert store.row_count("users") == 1
    with pytest.raises(BadInput, match="users: has no version 7"):
        store.read("users", version=7)
    # The files of the first version are still there: a bare look at the folder finds them, too.
    assert pq.read_table(tmp_path / "users").num_rows == 3


def test_polars_duckdb_and_arrow_read_the_same(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    for names in (("u1", "u2"), ("u3", "u4", "u5")):
        store.write("users", people(*names, broker=None))
    expected = store.read("users").to_pylist()
    place = store.path("users")
    assert polars.read_delta(place).to_dicts() == expected
    files = DeltaTable(place).file_uris()
    found = duckdb.read_parquet(files).order("user").fetchall()
    assert [dict(zip(("user", "broker"), row, strict=True)) for row in found] == expected


def test_a_table_that_somebody_else_has_written_is_read_and_replaced(tmp_path: Path) -> None:
    place = tmp_path / "users"
    rows = people("u1", "u2").append_column("age", pa.array([3, 4]))
    write_deltalake(place, rows.select(["age", "broker", "user"]))
    write_deltalake(place, rows.slice(0, 1), mode="append")
    store = Store(str(tmp_path))
    assert store.read("users").column_names == ["user", "broker"]
    assert sorted(users(tmp_path)) == ["u1", "u1", "u2"]
    store.write("users", people("u9"))
    assert users(tmp_path) == ["u9"]
    assert sorted(users(tmp_path, version=1)) == ["u1", "u1", "u2"]


def test_files_without_a_log_are_a_table_until_the_first_commit(tmp_path: Path) -> None:
    place = tmp_path / "users"
    place.mkdir()
    for number in (1, 0):
        pq.write_table(people(f"u{number}"), place / f"part-{number}.parquet")
    store = Store(str(tmp_path))
    assert users(tmp_path) == ["u0", "u1"]
    assert store.row_count("users") == 2
    store.write("users", people("u2"))
    assert users(tmp_path) == ["u2"]


@pytest.mark.parametrize("begun", [False, True])
def test_of_two_writers_one_wins_and_the_other_says_why(tmp_path: Path, begun: bool) -> None:
    if begun:
        Store(str(tmp_path)).write("users", people("u0"))
    one, other = Store(str(tmp_path)), Store(str(tmp_path))
    one.job = "ingest"
    drafts = one.draft("users", people("u1")), other.draft("users", people("u2"))
    one.publish(drafts[0])
    message = rf"users: another run, 'ingest {one.run}', has written this meanwhile"
    with pytest.raises(TableBusy, match=message):
        other.publish(drafts[1])
    assert users(tmp_path) == ["u1"]
    # What the loser had written is gone, and its next attempt begins with what it sees now.
    assert not (tmp_path / "users" / drafts[1].folder).exists()
    other.write("users", people("u2"))
    assert users(tmp_path) == ["u2"]


def test_a_writer_notices_who_came_between_its_reading_and_its_writing(tmp_path: Path) -> None:
    """Its rows are made of those that it read: put in the place of others, it would lose them."""
    store = Store(str(tmp_path))
    store.write("users", people("u0"))
    rows = store.read("users")
    Store(str(tmp_path)).write("users", people("u0", "u1"))
    with pytest.raises(TableBusy):
        store.write("users", pa.concat_tables([rows, people("u2").cast(rows.schema)]))
    assert users(tmp_path) == ["u0", "u1"]


def test_who_adds_comes_after_whoever_was_faster(tmp_path: Path) -> None:
    Store(str(tmp_path)).write("users", people("u0"))
    one, other = Store(str(tmp_path)), Store(str(tmp_path))
    drafts = one.draft("users", people("u1")), other.draft("users", people("u2"))
    one.publish(drafts[0], append=True)
    other.publish(drafts[1], append=True)
    assert sorted(users(tmp_path)) == ["u0", "u1", "u2"]


def test_a_batch_of_a_stream_is_there_once_however_often_it_is_done(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    for number in (0, 0, 1, 0, 1):
        draft = store.draft("users", people(f"u{number}"))
        store.publish(draft, append=True, batch=("stream-a", number))
    assert sorted(users(tmp_path)) == ["u0", "u1"]
    assert store.stream_of("users") == "stream-a"
    DeltaTable(store.path("users")).vacuum(retention_hours=200, dry_run=False)
    assert store.stream_of("users") == "stream-a"
    store.write("users", people("u2"))
    assert store.stream_of("users") is None


def test_a_reader_goes_on_reading_the_version_it_began_with(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.write("users", people("u1"))
    before = store._data_set(*store._found("users"))
    Store(str(tmp_path)).write("users", people("u2"))
    assert before.to_table()["user"].to_pylist() == ["u1"]
    assert users(tmp_path) == ["u2"]


def test_what_is_not_understood_is_refused_in_a_sentence(tmp_path: Path) -> None:
    place = tmp_path / "users"
    write_deltalake(place, people("u1"), configuration={"delta.enableDeletionVectors": "true"})
    with pytest.raises(
        BadInput, match=r"users: uses deletionVectors.* of Delta Lake, which is not"
    ):
        users(tmp_path)


def test_a_log_that_is_broken_is_named(tmp_path: Path) -> None:
    Store(str(tmp_path)).write("users", people("u1"))
    (tmp_path / "users" / "_delta_log" / f"{0:020d}.json").write_text("{half")
    with pytest.raises(BadInput, match="users: has a log that cannot be read"):
        users(tmp_path)
    with pytest.raises(BadInput, match="users: has a log that cannot be read"):
        Store(str(tmp_path)).write("users", people("u1"))


def test_a_file_that_is_gone_is_a_sentence(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.write("users", people("u1"))
    for path in (tmp_path / "users").rglob("*.parquet"):
        path.unlink()
    with pytest.raises(BadInput, match="users: misses a file that its log has"):
        store.read("users")


def test_files_that_cannot_match_are_not_opened(tmp_path: Path) -> None:
    """The log knows the least and greatest names."""
    store = Store(str(tmp_path))
    for names in (("u1", "u3"), ("u2" * 99, "u5" * 99)):
        store.publish(store.draft("users", people(*names)), append=True)
    log = sorted((tmp_path / "users" / "_delta_log").glob("*.json"))[0]
    added = [json.loads(line)["add"] for line in log.read_text().splitlines() if '"add"' in line]
    stats = json.loads(added[0]["stats"])
    assert stats["minValues"] == {"user": "u1", "broker": "b1"}
    assert stats["maxValues"] == {"user": "u3", "broker": "b1"}
    assert stats["nullCount"] == {"user": 0, "broker": 0}

    def opened(where: pc.Expression) -> int:
        found = store._data_set(*store._found("users"), where=where)
        return len(list(found.get_fragments()))

    assert opened(pc.field("user") == "u1") == 1
    assert opened(pc.field("user") == "u5" * 99) == 1
    assert opened(pc.field("user") == "u2v") == 2
    assert opened(pc.field("user") == "u6") == 0
    assert opened(pc.field("broker") == "b1") == 2


MOMENT = pa.scalar(datetime(2026, 1, 5, tzinfo=UTC), pa.timestamp("us", "UTC"))
ASKED = {
    "nobody": pc.field("publisher").is_null(),
    "somebody": pc.field("publisher").is_valid(),
    "one": pc.field("publisher") == "a",
    "source": pc.field("source") >= "/b",
    "time": pc.field("time") < MOMENT,
}


@settings(deadline=None, max_examples=15)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.none() | st.sampled_from("abc"),
            st.none() | st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1)),
        ),
        max_size=6,
    ),
    files=st.integers(1, 3),
    asked=st.sampled_from(sorted(ASKED)),
)
def test_nothing_that_meets_a_condition_is_missed(
    rows: list[tuple[str, str | None, datetime | None]], files: int, asked: str
) -> None:
    """By us and by delta-rs, with or without bounds in the log: it is as if all were looked at."""
    events = [
        Publication(
            {"id": str(number), "source": f"/{source}", "type": "t"}
            | ({} if time is None else {"time": f"{time.isoformat()}Z"})
        )
        for number, (source, _, time) in enumerate(rows)
    ]
    table = pa.Table.from_batches([to_arrow(events, publishers=[name for _, name, _ in rows])])
    with TemporaryDirectory() as folder:
        store = Store(folder)
        for number in range(files):
            begin, end = (len(rows) * n // files for n in (number, number + 1))
            draft = store.draft("publications", table.slice(begin, end - begin))
            store.publish(draft, append=True)
        expected = sorted(table.filter(ASKED[asked])["event_id"].to_pylist())
        found = store.read("publications", where=ASKED[asked])
        assert sorted(found["event_id"].to_pylist()) == expected
        theirs = DeltaTable(store.path("publications")).to_pyarrow_table(filters=ASKED[asked])
        assert sorted(theirs["event_id"].to_pylist()) == expected


def test_rows_that_are_not_seen_from_here_stop_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributary.errors import PipelineFailed
    from distributary.pipeline import store as module

    def none(*_: object) -> list[DataFile]:
        return []

    monkeypatch.setattr(module, "draft_files", none)
    with pytest.raises(PipelineFailed, match="2 rows were written, and the files that are seen"):
        Store(str(tmp_path)).write("users", people("u1", "u2"))
    assert not Store(str(tmp_path)).has("users")


WRITER = """
import sys
import pyarrow as pa
from distributary.pipeline.store import Store
store = Store(sys.argv[1])
number = int(store.read("users")["broker"][0].as_py()) if store.has("users") else 0
print("ready", flush=True)
while True:
    number += 1
    names = [f"u{k}" for k in range(50)]
    store.write("users", pa.table({"user": names, "broker": [str(number)] * 50}))
    print(number, flush=True)
"""


def entries(folder: Path) -> int:
    return sum(1 for _ in folder.rglob("*"))


def killed_writers(folder: Path, times: int) -> None:
    """Kill a writer again and again; what it has said that it wrote is there, and is whole."""
    told = 0
    for turn in range(times):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        for _ in range(turn % 3):
            told = int(writer.stdout.readline())
        # Some way into the next write, another one each time: it has made so many files.
        before = entries(folder)
        while entries(folder) < before + turn % 5:
            assert writer.poll() is None
        os.kill(writer.pid, signal.SIGKILL)
        rest = writer.communicate()[0].split()
        told = max([told, *(int(line) for line in rest if line.isdigit())])
        if not Store(str(folder)).has("users"):
            assert told == 0
            continue
        rows = Store(str(folder)).read("users")
        (number,) = set(rows["broker"].to_pylist())
        assert rows.num_rows == 50
        assert int(number) in (told, told + 1)
        told = int(number)
    assert told > 0


def test_a_killed_writer_leaves_a_whole_table(tmp_path: Path) -> None:
    killed_writers(tmp_path, 6)


@pytest.mark.full
def test_two_hundred_killed_writers_lose_nothing(tmp_path: Path) -> None:
    killed_writers(tmp_path, 200)


def test_old_files_go_and_those_of_running_jobs_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By their age: whatever is younger may be what somebody is still writing."""
    store = Store(str(tmp_path))
    for name in ("u1", "u2"):
        store.write("users", people(name))
    store.draft("users", people("killed"))
    running = store.draft("users", people("u3"))
    # A day passes, for all but the last.
    log = sorted((tmp_path / "users" / "_delta_log").glob("*.json"))
    for path in [*log, *(tmp_path / "users").rglob("*.parquet")]:
        if running.folder not in path.parts:
            os.utime(path, (path.stat().st_atime - 86_400, path.stat().st_mtime - 86_400))
    for path in log:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            if "remove" in line:
                line["remove"]["deletionTimestamp"] -= 86_400_000
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    arguments = ["pipeline", "vacuum", "--data", str(tmp_path), "--older-than"]
    for more, left in (["12h", "--dry-run"], 4), (["12h"], 2):
        assert main([*arguments, *more]) == 0
        assert capsys.readouterr().out.split() == ["users", "2", "files"]
        assert len(list((tmp_path / "users").rglob("*.parquet"))) == left
    assert users(tmp_path) == ["u2"]
    # Tidying changes no rows: the job that was running meanwhile ends as it would have.
    store.publish(running)
    assert users(tmp_path) == ["u3"]
    assert main([*arguments, "30m"]) == 2
    assert "--older-than: must be at least 1h" in capsys.readouterr().err


def test_who_found_no_table_notices_that_another_has_made_one(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    assert not store.has("users")
    Store(str(tmp_path)).write("users", people("u1"))
    with pytest.raises(TableBusy):
        store.write("users", people("u2"))
    store.begin("ingest")
    store.write("users", people("u2"))
    assert users(tmp_path) == ["u2"]


def test_a_log_without_a_commit_is_no_table_yet(tmp_path: Path) -> None:
    """A run was killed while it made its first one."""
    log = tmp_path / "users" / "_delta_log"
    log.mkdir(parents=True)
    (log / "_commit_1234.json.tmp").write_text("{half")
    assert not Store(str(tmp_path)).has("users")
    Store(str(tmp_path)).write("users", people("u1"))
    assert users(tmp_path) == ["u1"]
