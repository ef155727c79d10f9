"""Garbage: a run keeps nearly all that it makes, and looking through it takes long.

The interpreter looks for unreachable cycles among all objects again and again. The brokers of
a large run are millions of objects that stay to its end, and what brokers and clients do makes
no cycles: whatever they drop is gone at once.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["resting_collector"]


@contextmanager
def resting_collector() -> Iterator[None]:
    """Have nothing collected, until the outermost of those that ask for it is done."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        # What is left is old by now, and is looked through as seldom as all that is.
        gc.freeze()
        gc.unfreeze()
        gc.enable()
