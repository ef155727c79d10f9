"""How many processor cores this process may use."""

from __future__ import annotations

import os

__all__ = ["available_cores"]


def available_cores() -> int:
    """Return the number of cores that the system lets this process run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
