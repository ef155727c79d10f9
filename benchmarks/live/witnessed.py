"""What a witness costs: its calls are counted under load, and some are made again and timed.

A clock around each call would take as long as the call itself.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from distributary.network.witness import Witness

__all__ = ["Witnessed"]

_METHODS = ("received", "sent", "converted", "reported")
_KEPT = 5_000
_ROUNDS = 7


class Witnessed:
    """Counts the calls of all witnesses of this process from now on, and keeps the last ones."""

    def __init__(self) -> None:
        self._count = 0
        self._calls: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque(maxlen=_KEPT)
        for name in _METHODS:
            setattr(Witness, name, self._counting(getattr(Witness, name)))

    def _counting(self, method: Callable[..., None]) -> Callable[..., None]:
        def counted(witness: Witness, *args: Any) -> None:
            self._count += 1
            self._calls.append((method, args))
            method(witness, *args)

        return counted

    def cost(self) -> dict[str, float]:
        """Return how many calls there were, and how many seconds of the processor each takes."""
        calls = list(self._calls)
        rounds_s: list[float] = []
        for _ in range(_ROUNDS):
            witness = Witness(time.time_ns)
            began = time.thread_time()
            for method, args in calls:
                method(witness, *args)
            rounds_s.append(time.thread_time() - began)
        return {"calls": self._count, "call_s": min(rounds_s) / max(1, len(calls))}
