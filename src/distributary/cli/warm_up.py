"""`distributary warm-up`: compile now what would otherwise be compiled on first use."""

from __future__ import annotations

import multiprocessing
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor, as_completed

from distributary.cli.progress import progress

__all__ = ["EXAMPLES", "warm_up"]

EXAMPLES = """\
\b
Examples:
  distributary warm-up
"""

# An errand takes a few hundred megabytes and little of it at the same time.
_PROCESSES_MAX = 4


def warm_up() -> None:
    """Compile the hot loops of planners, matching, pipeline and simulator, and keep them.

    They are compiled on first use otherwise, which takes up to a minute once. Worth doing
    when an image is built, or before something is timed.
    """
    from distributary.cli.errands import ERRANDS
    from distributary.placement.exact import threads_available

    began = time.perf_counter()
    processes = min(threads_available(), _PROCESSES_MAX)
    # Not forked: a process that has loaded compiled code may hold locks that nobody frees.
    context = multiprocessing.get_context("spawn")
    with progress() as observe, ProcessPoolExecutor(processes, mp_context=context) as pool:
        names: dict[Future[None], str] = {pool.submit(do): name for name, do in ERRANDS}
        for done, finished in enumerate(as_completed(names), start=1):
            finished.result()
            if observe is not None:
                observe(names[finished], done, len(ERRANDS))
    print(f"compiled in {time.perf_counter() - began:.1f} s", file=sys.stderr)
