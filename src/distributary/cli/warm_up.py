"""`distributary warm-up`: compile now what would otherwise be compiled on first use."""

from __future__ import annotations

import sys
import time

from distributary.cli.progress import progress

__all__ = ["EXAMPLES", "warm_up"]

EXAMPLES = """\
\b
Examples:
  distributary warm-up
"""


def warm_up() -> None:
    """Compile the hot loops of planners, matching, pipeline and simulator, and keep them.

    They are compiled on first use otherwise, which takes up to a minute once. Worth doing
    when an image is built, or before something is timed.
    """
    from distributary.cli.errands import ERRANDS

    began = time.perf_counter()
    # One after the other: processes that compile the same loop at once can spoil what both
    # of them keep.
    with progress() as observe:
        for done, (name, run) in enumerate(ERRANDS):
            if observe is not None:
                observe(name, done, len(ERRANDS))
            run()
    print(f"compiled in {time.perf_counter() - began:.1f} s", file=sys.stderr)
