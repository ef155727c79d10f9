"""What a run of either side shows, and how it is set against a run of the other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import numpy as np

__all__ = ["BATCH", "WAIT_S", "Run", "paced", "subject"]

BATCH = 256
"""How many messages are pulled at once from a plain stream, at most."""

WAIT_S = 1.0
"""How long is waited for the first of them."""


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes
    ----------
    rate
        How many messages a second have gone all the way.
    delays_s
        How long each of them took.
    """

    rate: float
    delays_s: list[float]

    def delay_ms(self, percent: float) -> float:
        """Return a percentile of the delays."""
        return float(np.percentile(self.delays_s, percent)) * 1e3


async def paced(count: int, rate: float | None) -> AsyncIterator[int]:
    """Yield numbers, at a rate or else as fast as they are taken."""
    began = time.perf_counter()
    for number in range(count):
        if rate is not None:
            wait_s = began + number / rate - time.perf_counter()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
        yield number


def subject(place: int) -> str:
    """Return what the plain stream at a place of a chain keeps."""
    return f"chain.{place}"
