"""A batch job that is killed leaves the table as it was; see `test_table_log` for many kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.pipeline_chain import table_hashes

from distributary.pipeline.jobs.match import match
from distributary.pipeline.jobs.sample import frames
from distributary.pipeline.sample import SampleSizes
from distributary.pipeline.store import Store

COMMAND = "import sys; from distributary.cli import main; sys.exit(main())"
SIZES = SampleSizes(publications=200, subscriptions=40, users=20, brokers=4, objects=2, seconds=5)


@contextmanager
def match_in_a_process(data: Path, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the job with a Spark of its own; whatever is left of either is killed in the end."""
    folder.mkdir()
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", COMMAND, "pipeline", "match", "--data", str(data)),
            *("--master", "local[1]", "--driver-memory", "1g"),
        ],
        env={**os.environ, "SPARK_LOCAL_DIRS": str(folder), "TMPDIR": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        # Its Java is of the same group. Without Python it would end by itself, but later.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def runs(data: Path) -> set[Path]:
    return set(data.glob("deliveries/run-*"))


@pytest.mark.full
def test_a_killed_job_leaves_the_old_table_and_the_next_one_replaces_it(
    store: Store, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    made = frames(store.spark, SIZES, seed=1)
    for name in ("publications", "subscriptions", "users"):
        store.write(name, made[name])
    match(store, store)
    old = table_hashes(data)["deliveries"]
    store.write("publications", frames(store.spark, SIZES, seed=2)["publications"])
    before = runs(data)
    with match_in_a_process(data, tmp_path / "spark") as process:
        while runs(data) == before:
            try:
                code = process.wait(0.005)
            except subprocess.TimeoutExpired:
                continue
            raise AssertionError(f"the job ended with {code} before it wrote anything")
    assert len(runs(data)) == len(before) + 1
    assert table_hashes(data)["deliveries"] == old
    report = match(store, store)
    assert table_hashes(data)["deliveries"] != old
    assert store.frame("deliveries").count() == report.rows_out["deliveries"] > 0
