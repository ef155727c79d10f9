"""A pool costs little: a small conversion pays no process, and all workers work at once.

How much faster two workers are is measured by `benchmarks/media/two_workers.py`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.scripts_pool import eventually, plugged_in, run, start

from distributary.content.media_type import MediaType
from distributary.media.limits import Limits
from distributary.media.pool import Pool
from distributary.media.registry import installed

UTF_8 = MediaType.parse("text/plain;charset=utf-8")
UTF_16 = MediaType.parse("text/plain;charset=utf-16")
TEN_KILOBYTES = (
    ("Die Straße führt über die Brücke. " * 400).encode()[:10_000].decode(errors="ignore").encode()
)

pytestmark = pytest.mark.usefixtures("scripts")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with plugged_in(tmp_path_factory.mktemp("plugin")):
        yield


def processor_seconds(pool: Pool) -> float:
    """Return what this process and the workers have used: no other load adds to it."""
    workers = [psutil.Process(pid).cpu_times() for pid in pool.pids()]
    return time.process_time() + sum(used.user + used.system for used in workers)


def test_a_small_conversion_costs_less_than_five_milliseconds_more_than_a_call() -> None:
    converter = installed().converter(UTF_8, UTF_16)
    assert converter is not None
    with Pool(1) as pool:
        pool.convert(TEN_KILOBYTES, UTF_8, UTF_16)
        workers = pool.pids()
        begun = processor_seconds(pool)
        for _ in range(200):
            pool.convert(TEN_KILOBYTES, UTF_8, UTF_16)
        pooled = processor_seconds(pool) - begun
        assert pool.pids() == workers
    begun = time.process_time()
    for _ in range(200):
        converter.convert(TEN_KILOBYTES, UTF_8, UTF_16, Limits())
    direct = time.process_time() - begun
    assert (pooled - direct) / 200 < 0.005


def test_as_many_conversions_run_at_once_as_there_are_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that is done has the next one, and does not wait for the other worker."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def begun() -> list[Path]:
        return [mark.parent for mark in tmp_path.glob("*/begun")]

    with Pool(2) as pool:
        futures = [start(pool, "mark-and-await signal") for _ in range(3)]
        eventually(lambda: len(begun()) == 2)
        assert [future.running() for future in futures] == [True, True, False]
        (begun()[0] / "signal").touch()
        eventually(futures[2].running)
        assert [future.done() for future in futures].count(True) == 1
        while not all(future.done() for future in futures):
            # Again and again: a signal that comes between two conversions is cleared away.
            for directory in begun():
                (directory / "signal").touch()
        assert [future.result().content for future in futures] == [b"it came"] * 3


def test_the_first_conversion_waits_for_no_more_than_a_process_to_start() -> None:
    with Pool(1) as pool:
        begun = processor_seconds(pool)
        run(pool, "echo hello")
        assert len(pool.pids()) == 1
        assert processor_seconds(pool) - begun < 3
