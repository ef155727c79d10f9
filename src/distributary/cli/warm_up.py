"""`distributary warm-up`: compile now what would otherwise be compiled on first use."""

from __future__ import annotations

import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue

from distributary.cli.progress import progress
from distributary.cores import available_cores

__all__ = ["EXAMPLES", "warm_up"]

EXAMPLES = """\
\b
Examples:
  distributary warm-up
"""

_TOLD_S = 0.2


def warm_up() -> None:
    """Compile the hot loops of planners, matching, pipeline and simulator, and keep them.

    They are compiled on first use otherwise, which takes up to a minute once. Worth doing
    when an image is built, or before something is timed. Every core compiles.
    """
    from distributary.cli.warm_up_jobs import JOBS

    began = time.perf_counter()
    loops = 0
    # Processes that start afresh: a fork of this one would bring its locks along.
    context = get_context("spawn")
    compiled: SimpleQueue[str] = context.SimpleQueue()
    workers = min(available_cores(), len(JOBS))
    with (
        progress() as observe,
        ProcessPoolExecutor(workers, context, _tell, (compiled,)) as pool,
    ):
        waiting: dict[Future[None], str] = {pool.submit(_run, name): name for name in JOBS}
        while waiting:
            done, _ = wait(waiting, timeout=_TOLD_S, return_when=FIRST_COMPLETED)
            for job in done:
                job.result()
                del waiting[job]
            while not compiled.empty():
                compiled.get()
                loops += 1
            if observe is not None:
                now = ", ".join(name for job, name in waiting.items() if job.running())
                observe(f"compiling {now}: {loops} loops", len(JOBS) - len(waiting), len(JOBS))
    seconds = time.perf_counter() - began
    print(f"compiled {loops} loops in {seconds:.1f} s in {workers} processes", file=sys.stderr)


def _run(name: str) -> None:
    from distributary.cli.warm_up_jobs import JOBS

    JOBS[name]()


def _tell(compiled: SimpleQueue[str]) -> None:
    """Have this process tell of every loop of ours that it compiles."""
    from numba.core.event import Event, Listener, register

    class Told(Listener):
        def on_start(self, event: Event) -> None:
            pass

        def on_end(self, event: Event) -> None:
            function = event.data["dispatcher"].py_func
            if function.__module__.startswith("distributary."):
                compiled.put(function.__name__)

    register("numba:compile", Told())
