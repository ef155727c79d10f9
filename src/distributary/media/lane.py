"""A thread of the caller, its worker, and what the two are at."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from distributary.media.job import Job
from distributary.media.worker_process import WorkerProcess

__all__ = ["Lane", "started"]


@dataclass(eq=False)
class Lane:
    """One conversion at a time.

    Attributes
    ----------
    thread
        Sends jobs to the worker, and waits for it.
    worker
        The process; another one from time to time, and none before the first job.
    job
        What they are at; None if they are idle.
    """

    thread: threading.Thread | None = None
    worker: WorkerProcess | None = None
    job: Job | None = None


def started(target: Callable[..., None], name: str, *arguments: object) -> threading.Thread:
    """Start a thread that does not keep the program from ending.

    Raises `RuntimeError` when the system has no more of them.
    """
    thread = threading.Thread(
        target=target, args=arguments, name=f"distributary-media-{name}", daemon=True
    )
    thread.start()
    return thread
