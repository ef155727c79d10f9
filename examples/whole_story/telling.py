"""Progress for people: what is being done, and when."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field

__all__ = ["Teller"]


@dataclass(frozen=True)
class Teller:
    """Says on standard error what is being done; processes that share one share its clock."""

    # The wall clock: that of the processor is not the same in every process everywhere.
    began: float = field(default_factory=time.time)

    def __call__(self, words: str) -> None:
        """Say it, with the seconds since the beginning."""
        print(f"{time.time() - self.began:6.1f} s  {words}", file=sys.stderr, flush=True)
