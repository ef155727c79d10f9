"""Three hops over four brokers, against four plain relays: rates, and delays at a quarter."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.live.brokers import running_chain, three_hops
from benchmarks.live.server import running_server
from benchmarks.live.streams import running_streams
from benchmarks.study import Claim, Column, Findings, Progress, Size, Study, Table, result_hash

__all__ = ["STUDY"]

_EVENT_BYTES = 1024
_SHARE_MIN = 1.0
_SLOWER_MAX = 1.5
_TAIL_MAX = 5.0
_QUARTER = 0.25
_LEAST_SHARE = 0.05
_TELLING_S = 1.0


@dataclass(frozen=True)
class _Parameters:
    """How many events in a run, how many runs of each, and how long delays are measured."""

    events: int
    runs: int
    seconds: float


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(100, 1, 0.5),
    "large": _Parameters(2_000, 5, 5.0),
}


async def _compare(size: Size, progress: Progress, folder: Path) -> Findings:
    parameters = _SIZES[size]
    way = three_hops()
    rates: list[tuple[int, float, float, float]] = []
    delays: list[tuple[int, float, float, float, float, float]] = []
    with (
        running_server(folder / "brokers", streams=False) as ours,
        running_server(folder / "plain", streams=True) as theirs,
    ):
        async with (
            running_chain(folder / "brokers", ours, way) as chain,
            running_streams(theirs, len(way)) as streams,
        ):
            await chain.run(parameters.events // 4, _EVENT_BYTES)
            await streams.run(parameters.events // 4, _EVENT_BYTES)
            before = await chain.told("cpu_s")
            for run in range(1, parameters.runs + 1):
                progress(f"run {run} of {parameters.runs}")
                plain = (await streams.run(parameters.events, _EVENT_BYTES)).rate
                brokers = (await chain.run(parameters.events, _EVENT_BYTES)).rate
                rates.append((run, brokers, plain, brokers / plain))
            used = [b - a for a, b in zip(before, await chain.told("cpu_s"), strict=True)]
            # Time of the processor comes in hundredths of a second, of which a short run has few.
            told = sum(used) < _TELLING_S or used[2] > _LEAST_SHARE * sum(used)
            assert told, "the relay is left out"
            rate = _QUARTER * min(statistics.median(row[k] for row in rates) for k in (1, 2))
            count = max(int(rate * parameters.seconds), 20)
            for run in range(1, parameters.runs + 1):
                progress(f"delays {run} of {parameters.runs}, at {rate:.0f} a second")
                relays = await streams.run(count, _EVENT_BYTES, rate)
                one = await chain.run(count, _EVENT_BYTES, rate)
                found = (one.delay_ms(50), one.delay_ms(99), relays.delay_ms(50))
                delays.append((run, *found, relays.delay_ms(99), found[0] / found[2]))
    speed = (
        Table(
            "Three hops over four brokers, against four plain relays",
            "speed",
            (
                Column("run"),
                Column("events/s, brokers"),
                Column("messages/s, relays"),
                Column("share", 2),
            ),
            tuple(rates),
            notes=(
                f"{parameters.events:,} events of 1 KB a run, runs of the two in turn, each with "
                "up to 256 under way. A relay pulls from one stream, stores in the next, which "
                "syncs every message, and then acknowledges."
            ),
        ),
        Table(
            "Delays over three hops at a quarter of the rate",
            "speed",
            (
                Column("run"),
                Column("brokers, median, ms", 1),
                Column("brokers, 99th percentile, ms", 1),
                Column("relays, median, ms", 1),
                Column("relays, 99th percentile, ms", 1),
                Column("medians, ratio", 2),
            ),
            tuple(delays),
            notes=f"{count:,} events a run, from before they are published until they arrive.",
        ),
    )
    share = statistics.median(row[3] for row in rates)
    slower = statistics.median(row[5] for row in delays)
    tail = statistics.median(row[2] / row[1] for row in delays)
    claims = (
        Claim("share of the relays' rate, median", share, ">=", _SHARE_MIN, "times the rate"),
        Claim("median delay against the relays'", slower, "<=", _SLOWER_MAX, "times as long"),
        Claim("99th percentile against the median", tail, "<=", _TAIL_MAX, "times as long"),
    )
    return Findings(speed, claims, result_hash([parameters.events, parameters.runs, list(way)]))


def _run(size: Size, progress: Progress) -> Findings:
    with tempfile.TemporaryDirectory(prefix="three-hops-") as folder:
        return asyncio.run(_compare(size, progress, Path(folder)))


STUDY = Study(
    "live-three-hops",
    "Real processes on this machine: publisher's home, root, a broker that only hands on, and "
    "subscriber's home, against as many processes of a plain relay with the same promise.",
    4.0,
    _run,
)
