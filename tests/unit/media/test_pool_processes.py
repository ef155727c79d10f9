"""Workers belong to one process: they end with it, and those it forks have their own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.hostile_plugin import install
from tests.scripts_pool import eventually, gone

_OPENING = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from distributary.media.pool import Pool, shared_pool

def run(pool, script):
    return pool.convert(script.encode(), "application/x-script", "application/octet-stream").content

def tell(**facts):
    print(json.dumps(facts), flush=True)
"""
_FORGETFUL = """
pool = Pool(1)
tell(pid=int(run(pool, "pid")), directory=run(pool, "directory").decode())
"""
_BUSY = """
pool = Pool(1)
directory = run(pool, "directory").decode()
tell(pid=int(run(pool, "pid")), directory=directory)
run(pool, "mark-and-wait begun")
"""
_IDLE = """
pool = Pool(1)
tell(pid=int(run(pool, "pid")), directory=run(pool, "directory").decode())
sys.stdin.read()
"""
_FORKING = """
pool = shared_pool()
before = int(run(pool, "pid"))
child = os.fork()
if child == 0:
    tell(own=int(run(shared_pool(), "pid")), others=list(pool.pids()))
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
tell(before=before, after=int(run(pool, "pid")))
"""
_SPARK = """
import pyarrow
from distributary.media.failure import ConversionFailed
from distributary.pipeline.session import session

folder = sys.argv[1]

def converted(batches):
    sys.path.insert(0, folder)
    for batch in batches:
        pool = shared_pool()
        made = [run(pool, f"echo {number}").decode() for number in batch["id"].to_pylist()]
        try:
            run(pool, "crash")
        except ConversionFailed as error:
            made.append(error.kind)
        made.append(run(pool, "pid").decode())
        yield pyarrow.RecordBatch.from_pydict({"made": made})

with session(master="local[1]") as spark:
    rows = spark.range(5).coalesce(1).mapInArrow(converted, "made string").collect()
made = [row.made for row in rows]
tell(made=made[:-1], pid=int(made[-1]))
"""


def program(text: str, tmp_path: Path) -> subprocess.Popen[str]:
    if not any(tmp_path.iterdir()):
        install(tmp_path)
    return subprocess.Popen(
        [sys.executable, "-c", _OPENING + text, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def told(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    facts: dict[str, Any] = json.loads(process.stdout.readline())
    return facts


def test_a_program_that_ends_leaves_no_worker_and_no_directory(tmp_path: Path) -> None:
    with program(_FORGETFUL, tmp_path) as process:
        facts = told(process)
        assert process.wait(120) == 0
    eventually(lambda: gone(facts["pid"]))
    assert not Path(facts["directory"]).exists()


def assert_the_next_pool_removes(directory: str, tmp_path: Path) -> None:
    """Nobody was left to remove a directory, until another process has a worker."""
    with program(_FORGETFUL, tmp_path) as process:
        assert told(process)["directory"] != directory
        assert process.wait(120) == 0
    assert not Path(directory).exists()


def test_an_idle_worker_notices_that_its_caller_was_killed(tmp_path: Path) -> None:
    with program(_IDLE, tmp_path) as process:
        facts = told(process)
        process.kill()
    eventually(lambda: gone(facts["pid"]))
    assert_the_next_pool_removes(facts["directory"], tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it ends when its time is over")
def test_a_busy_worker_ends_with_a_caller_that_was_killed(tmp_path: Path) -> None:
    with program(_BUSY, tmp_path) as process:
        facts = told(process)
        directory = Path(facts["directory"])
        eventually((directory / "begun").exists)
        assert not gone(facts["pid"])
        process.send_signal(signal.SIGKILL)
    eventually(lambda: gone(facts["pid"]))
    assert_the_next_pool_removes(facts["directory"], tmp_path)


def test_a_forked_process_has_workers_of_its_own(tmp_path: Path) -> None:
    with program(_FORKING, tmp_path) as process:
        child, parent = told(process), told(process)
        assert process.wait(120) == 0
    assert child["others"] == [child["own"]]
    assert child["own"] != parent["before"]
    assert parent["before"] == parent["after"]
    eventually(lambda: gone(child["own"]))


@pytest.mark.full
def test_a_spark_executor_converts_in_workers_that_end_with_it(tmp_path: Path) -> None:
    with program(_SPARK, tmp_path) as process:
        facts = told(process)
        assert process.wait(120) == 0
    assert facts["made"] == ["0", "1", "2", "3", "4", "crashed"]
    eventually(lambda: gone(facts["pid"]))
