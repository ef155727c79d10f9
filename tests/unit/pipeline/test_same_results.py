"""The same tables come out however many cores, machines and partitions there are."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from tests.pipeline_chain import PLANNING, SAMPLE, ingest_steps, table_hashes, write_files
from tests.spark_cluster import cluster_environment, standalone_cluster

from distributary.pipeline.config import Step
from distributary.pipeline.jobs.run import run
from distributary.pipeline.schemas import TABLES
from distributary.pipeline.store import Store

ROOT = Path(__file__).parents[3]
# Only streams write decisions, and quarantine is written by `ingest`.
WRITTEN = set(TABLES) - {"decisions", "quarantine", "runs"}


def on_executors(*, plan_tasks: int) -> list[Step]:
    """Return the jobs that work in parallel; the others plan on the driver."""
    options = {"plans": {"tasks": plan_tasks}}
    return [
        Step(step.job, {**step.options, **options.get(step.job, {})})
        for step in PLANNING
        if step.job not in ("wire", "tree")
    ]


def test_tables_are_the_same_however_rows_are_spread(spark: SparkSession, tmp_path: Path) -> None:
    """Rows in another order, in seven files in place of a few, shuffled to five partitions."""
    one, other = Store(str(tmp_path / "one"), spark), Store(str(tmp_path / "other"), spark)
    run(one, (SAMPLE, *on_executors(plan_tasks=1)))
    assert set(one.folder.names()) - {"runs"} == WRITTEN - {"wiring", "trees"}
    for name in ("publications", "subscriptions", "quotes"):
        rows = one.frame(name)
        anyhow = f.xxhash64(*(column for column in rows.columns if column in TABLES[name].key))
        other.write(name, rows.repartitionByRange(7, anyhow).sortWithinPartitions(anyhow.desc()))
    for name in ("users", "brokers", "access_costs", "core_costs", "overlay"):
        # The order of brokers has a meaning.
        shutil.copytree(tmp_path / "one" / name, tmp_path / "other" / name)
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "5")
    try:
        run(other, on_executors(plan_tasks=3))
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", str(before))
    assert table_hashes(tmp_path / "other") == table_hashes(tmp_path / "one")


def test_a_hash_of_a_table_sees_its_rows_and_not_its_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Nothing above could fail if it did not."""
    hashes = []
    for number, rows in enumerate(
        (spark.range(1, 7), spark.range(1, 7).repartition(3), spark.range(2, 8))
    ):
        store = Store(str(tmp_path / str(number)), spark)
        text = f.col("id").cast("string")
        store.write("users", rows.select(text.alias("user"), text.alias("broker")))
        hashes.append(table_hashes(tmp_path / str(number))["users"])
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.full
def test_every_job_gives_the_same_tables_on_one_core_on_two_and_on_a_cluster(
    tmp_path: Path,
) -> None:
    write_files(tmp_path / "files")
    (tmp_path / "cluster").mkdir()
    found = {}
    with standalone_cluster(tmp_path / "cluster") as (url, _):
        for name, master in (("one", "local[1]"), ("two", "local[2]"), ("workers", url)):
            folder = tmp_path / name
            subprocess.run(
                [sys.executable, "-m", "tests.pipeline_chain", str(folder), master],
                cwd=ROOT,
                env=cluster_environment(),
                check=True,
                timeout=600,
            )
            found[name] = table_hashes(folder / "data"), table_hashes(folder / "ingested")
    assert set(found["one"][0]) == WRITTEN
    assert set(found["one"][1]) == {"quotes", "quarantine"}
    assert found["two"] == found["one"]
    assert found["workers"] == found["one"]


def test_the_files_that_are_ingested_have_good_rows_and_bad_ones(
    store: Store, tmp_path: Path
) -> None:
    write_files(tmp_path / "files")
    (report,) = run(store, ingest_steps(tmp_path / "files"))
    assert report.rows_in["quotes"] == sum(report.rows_out.values()) == 120
    assert report.rows_out["quotes"] > 50
    assert report.rows_out["quarantine"] > 6
