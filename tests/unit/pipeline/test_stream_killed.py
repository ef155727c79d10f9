"""A stream that is killed at any moment loses nothing and repeats nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.arriving_files import (
    DELAY_US,
    arriving,
    sorted_rows,
    write_batch_result,
    write_tables,
)

from distributary.pipeline.jobs.stream import StreamOptions, stream
from distributary.pipeline.store import Store

pytestmark = pytest.mark.full

COMMAND = "import sys; from distributary.cli import main; sys.exit(main())"
WINDOW_US = 30_000_000
FILES = 4


@contextmanager
def stream_in_a_process(folder: Path, name: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Run the command with a Spark of its own; whatever is left of either is killed."""
    scratch = folder / name
    scratch.mkdir()
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", COMMAND, "pipeline", "stream", "--json"),
            *("--input", str(folder / "in"), "--checkpoint", str(folder / "checkpoint")),
            *("--data", str(folder / "data"), "-o", str(folder / "live")),
            *("--window", "30s", "--watermark", f"{DELAY_US // 10**6}s", "--max-files", "2"),
            *("--master", "local[1]", "--driver-memory", "1g", *options),
        ],
        env={**os.environ, "SPARK_LOCAL_DIRS": str(scratch), "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        # Its Java is of the same group. Without Python it would end by itself, but later.
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_until(process: subprocess.Popen[str], reached: Callable[[], bool]) -> None:
    while not reached():
        try:
            code = process.wait(0.005)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(f"the stream ended with {code} before it came so far")


def test_a_killed_stream_ends_with_the_tables_of_the_batch_jobs(
    store: Store, tmp_path: Path
) -> None:
    """Killed twice at different moments of a batch, stopped once, and then run to the end."""
    write_tables(store)
    list(arriving(store, tmp_path / "in", files=FILES))
    live, checkpoint = tmp_path / "live", tmp_path / "checkpoint"
    with stream_in_a_process(tmp_path, "one", "--once") as process:
        # In the middle of the second batch: its publications are there, its state is not.
        wait_until(process, (live / "publications" / "_delta_log" / f"{1:020d}.json").exists)
    assert not (checkpoint / "batch=1.json").exists()
    with stream_in_a_process(tmp_path, "two", "--once") as process:
        # At the end of the second batch, about when Spark notes that it is done.
        wait_until(process, (checkpoint / "batch=1.json").exists)
    with stream_in_a_process(tmp_path, "three", "--every", "1s") as process:
        wait_until(process, (checkpoint / "batch=2.json").exists)
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate(timeout=300)
        assert process.returncode == 0
        assert json.loads(printed)["batches"] >= 1
    with stream_in_a_process(tmp_path, "four", "--once") as process:
        process.communicate(timeout=600)
        assert process.returncode == 0

    whole = Store(str(tmp_path / "whole"), store.spark)
    write_batch_result(whole, tmp_path / "in")
    found = Store(str(live), store.spark)
    for name in ("publications", "quotes", "deliveries", "rates", "traffic"):
        assert sorted_rows(found, name) == sorted_rows(whole, name), name
    assert not found.has("quarantine")

    # Decisions do not depend on where batches end, nor on who died in between.
    calm = Store(str(tmp_path / "calm"), store.spark)
    options = StreamOptions(
        str(tmp_path / "in"),
        str(tmp_path / "calm-checkpoint"),
        once=True,
        window_us=WINDOW_US,
        delay_us=DELAY_US,
    )
    stream(store, calm, options)
    assert sorted_rows(found, "decisions") == sorted_rows(calm, "decisions")
