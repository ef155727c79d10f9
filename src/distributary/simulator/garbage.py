"""Garbage: a run keeps nearly all that it makes, and looking through it takes long.

The interpreter looks for unreachable cycles among all objects again and again. The brokers of
a large run are millions of objects that stay to its end.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collect_young", "resting_collector"]


@contextmanager
def resting_collector() -> Iterator[None]:
    """Have nothing collected but by `collect_young`."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def collect_young() -> None:
    """Collect among the objects that were made since the last time."""
    gc.collect(1)
