"""`distributary`, with brokers whose clocks can be set: `python -m tests.live.jumping up ...`.

A broker to which SIGUSR2 is sent has its clock set forward by two seconds, and back by as much
when it comes again.
"""

from __future__ import annotations

import signal
import sys
import time
from types import SimpleNamespace

from distributary.cli import main
from distributary.network import clock

JUMP_NS = 2_000_000_000


def _jumping() -> None:
    ahead_ns = 0

    def jump(*_: object) -> None:
        nonlocal ahead_ns
        ahead_ns = JUMP_NS - ahead_ns

    # Whoever is forked has its own. Nothing of ours is replaced, only what the machine shows.
    signal.signal(signal.SIGUSR2, jump)
    shown = SimpleNamespace(time_ns=lambda: time.time_ns() + ahead_ns)
    vars(clock)["time"] = shown


if __name__ == "__main__":
    _jumping()
    sys.exit(main())
