"""Pools for tests: what to ask of them, and how to tell what their workers are at."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from tests import hostile_plugin

from distributary.media.failure import ConversionFailed
from distributary.media.limits import Limits
from distributary.media.pool import Pool
from distributary.media.registry import installed
from distributary.media.result import ConversionResult

__all__ = ["begun", "eventually", "failure", "gone", "plugged_in", "run", "start"]


@contextmanager
def plugged_in(folder: Path) -> Iterator[None]:
    """Have the plug-in of scripts on the path, and in the registry."""
    hostile_plugin.install(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        installed.cache_clear()
        yield
    installed.cache_clear()


def start(pool: Pool, script: str, limits: Limits | None = None) -> Future[ConversionResult]:
    """Submit a script."""
    return pool.submit(
        script.encode(), hostile_plugin.SCRIPT, hostile_plugin.SCRIPT_RESULT, limits=limits
    )


def run(pool: Pool, script: str, limits: Limits | None = None) -> bytes:
    """Run a script, and return what it returns."""
    return start(pool, script, limits).result(120).content


def failure(pool: Pool, script: str, limits: Limits | None = None) -> ConversionFailed:
    """Run a script that has to fail, and return how."""
    with pytest.raises(ConversionFailed) as caught:
        run(pool, script, limits)
    return caught.value


@contextmanager
def begun(pool: Pool) -> Iterator[tuple[Future[ConversionResult], int]]:
    """Have a pool of one worker convert something for ever; yield its future and the worker."""
    directory = Path(run(pool, "directory").decode())
    future = start(pool, "mark-and-wait begun")
    eventually((directory / "begun").exists)
    yield future, pool.pids()[0]


def eventually(condition: Callable[[], bool], *, seconds_max: float = 120.0) -> None:
    """Wait until something holds; a test that waits in vain fails."""
    deadline = time.monotonic() + seconds_max
    while not condition():
        assert time.monotonic() < deadline, "it never came to hold"
        time.sleep(0.002)


def gone(pid: int) -> bool:
    """Whether a process has ended, if not yet been buried."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
