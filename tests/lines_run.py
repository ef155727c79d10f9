"""How many lines of Python something runs: the same however busy a machine is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = ["lines_run"]


def lines_run(action: Callable[[], object], *, folder: Path | None = None) -> int:
    """Return how many lines an action runs, of the files in a folder if there is one."""
    count = 0

    def trace(frame: FrameType, what: str, _: object) -> Any:
        nonlocal count
        if folder is not None and Path(frame.f_code.co_filename).parent != folder:
            return None
        count += what == "line"
        return trace

    # Whoever counts coverage goes on with that afterwards.
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return count
