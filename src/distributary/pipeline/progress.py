"""How far a job is, from Spark's own status."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Observe", "watched"]

Observe = Callable[[str, int, int], None]
"""Told what is being done, how many tasks are finished, and how many there are."""

_PERIOD_SECONDS = 0.25


@contextmanager
def watched(spark: SparkSession, step: str, observe: Observe | None) -> Iterator[None]:
    """Tell `observe` about the tasks of every stage that runs within."""
    if observe is None:
        yield
        return
    if not hasattr(spark, "_jvm"):
        with _watched_remotely(spark, step, observe):
            yield
        return
    over = threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def poll() -> None:
        while not over.wait(_PERIOD_SECONDS):
            for stage in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage)
                if info is not None and info.numTasks:
                    observe(f"{step}: {info.name}", info.numCompletedTasks, info.numTasks)

    watcher = threading.Thread(target=poll, name="spark-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


@contextmanager
def _watched_remotely(spark: SparkSession, step: str, observe: Observe) -> Iterator[None]:
    def told(stages: Any, inflight_tasks: int, operation_id: Any, done: bool) -> None:
        tasks = sum(stage.num_tasks for stage in stages or ())
        if tasks and not done:
            finished = sum(stage.num_completed_tasks for stage in stages)
            observe(step, finished, tasks)

    handler = cast(Any, told)
    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)
