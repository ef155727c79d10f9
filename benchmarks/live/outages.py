"""Outages: how soon an overlay is there, and for how long one notices that a broker is not."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.live.overlay import RunningOverlay, running_overlay
from benchmarks.study import Claim, Column, Findings, Progress, Size, Study, Table, result_hash
from distributary.broker.client import Delivery
from distributary.network.client import Client, Numbered

__all__ = ["STUDY"]

_READY_S_MAX = 5.0
_PRIVATE_MB_MAX = 60.0
_RESTART_S_MAX = 2.0
_AWAY_S_MAX = 10.0
_BEFORE_S = 1.0
_PERIOD_S = 0.01
# So many types are in cells of so many roots that any broker is the root of some.
_TYPES = 64


@dataclass(frozen=True)
class _Parameters:
    """How many brokers, how often they are started and killed, and how long one is looked at."""

    brokers: int
    starts: int
    kills: int
    seconds: float


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(4, 1, 1, 1.0),
    "large": _Parameters(8, 3, 3, 20.0),
}


class _Arrivals:
    """How long events took to arrive at the worst."""

    def __init__(self) -> None:
        self.worst_s = 0.0
        self.count = 0
        self.client: Client

    def take(self, message: Numbered) -> None:
        assert isinstance(message, Delivery)
        sent_at = json.loads(message.event)["data"]
        self.worst_s = max(self.worst_s, time.monotonic() - sent_at)
        self.count += 1
        self.client.acknowledge(message.subscription, message.number)


async def _publish(client: Client, source: str, seconds: float) -> tuple[int, float]:
    """Publish one event after the other; return how many, and the longest time for one."""
    number, worst_s = 0, 0.0
    end = time.monotonic() + seconds
    while (began := time.monotonic()) < end:
        kind = f"t{number % _TYPES}"
        named = {"specversion": "1.0", "id": str(number), "source": source, "type": kind}
        await client.publish(json.dumps({**named, "data": began}))
        worst_s = max(worst_s, time.monotonic() - began)
        number += 1
        await asyncio.sleep(_PERIOD_S)
    return number, worst_s


async def _outage(
    overlay: RunningOverlay, home: str, number: signal.Signals, seconds: float
) -> tuple[float, float]:
    """Return for how long a client of a broker, and clients of others, notice that it is gone."""
    at, to = [name for name in overlay.brokers if name != home][:2]
    arrivals = _Arrivals()
    async with overlay.gate() as gate:
        arrivals.client = gate.client(f"to-{home}", to, arrivals.take)
        await arrivals.client.subscribe({"id": "all", "filters": [{"prefix": {"source": "/by"}}]})
        own, other = gate.client(f"own-{home}", home), gate.client(f"by-{home}", at)
        publishing = asyncio.gather(
            _publish(own, f"/own/{home}", _BEFORE_S + seconds),
            _publish(other, f"/by/{home}", _BEFORE_S + seconds),
        )
        await asyncio.sleep(_BEFORE_S)
        os.kill(overlay.brokers[home], number)
        (_, own_s), (count, _) = await publishing
        if number == signal.SIGSTOP:
            os.kill(overlay.brokers[home], signal.SIGCONT)
        while arrivals.count < count:
            await asyncio.sleep(_PERIOD_S)
        await arrivals.client.unsubscribe("all")
    return own_s, arrivals.worst_s


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    ready_s: list[float] = []
    private_mb = 0.0
    rows: list[tuple[str, float, float]] = []
    with tempfile.TemporaryDirectory(prefix="outages-") as folder:
        for start in range(1, parameters.starts + 1):
            progress(f"start {start} of {parameters.starts}")
            began = time.monotonic()
            state = Path(folder) / str(start)
            with running_overlay(state, brokers=parameters.brokers) as overlay:
                ready_s.append(time.monotonic() - began)
                for pid in overlay.brokers.values():
                    private_mb = max(private_mb, psutil.Process(pid).memory_full_info().uss / 1e6)
                if start < parameters.starts:
                    continue
                outages = [(signal.SIGKILL, "killed")] * parameters.kills
                outages.append((signal.SIGSTOP, "stands still"))
                for home, (number, what) in zip(overlay.brokers, outages, strict=False):
                    progress(f"{home} {what}")
                    gone = _outage(overlay, home, number, parameters.seconds)
                    rows.append((what, *asyncio.run(gone)))
    table = Table(
        "A broker that is gone, as clients notice it",
        "speed",
        (
            Column("broker"),
            Column("longest publication at it, s", 2),
            Column("longest delivery among others, s", 2),
        ),
        tuple(rows),
        notes=(
            f"{parameters.brokers} brokers of `distributary up`, ready after "
            f"{max(ready_s):.1f} s at most. One event after the other is published at the broker "
            "that is gone, and at another one for a subscriber at a third one."
        ),
    )
    killed = [row for row in rows if row[0] == "killed"]
    (still,) = [row for row in rows if row[0] != "killed"]
    claims = (
        Claim("brokers ready, median", sorted(ready_s)[len(ready_s) // 2], "<=", _READY_S_MAX, "s"),
        Claim("private memory of a broker, largest", private_mb, "<=", _PRIVATE_MB_MAX, "MB"),
        Claim(
            "a broker that restarts, longest publication",
            max(row[1] for row in killed),
            "<=",
            _RESTART_S_MAX,
            "s",
        ),
        Claim("a broker that stays away, for others", still[2], "<=", _AWAY_S_MAX, "s"),
        Claim("a broker that stays away, for its own", still[1], "<=", _AWAY_S_MAX, "s"),
    )
    return Findings((table,), claims, result_hash([parameters.brokers, len(rows)]))


STUDY = Study(
    "live-outages",
    "Real processes on this machine: how soon an overlay is there, and for how long clients "
    "notice that one of its brokers is not.",
    2.0,
    _run,
)
