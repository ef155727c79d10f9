"""Telemetry: what it costs a broker at full load to be watched."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.live.brokers import Chain, one_hop, running_chain
from benchmarks.live.server import running_server
from benchmarks.study import Claim, Column, Findings, Progress, Size, Study, Table, result_hash
from distributary.network.views import look

__all__ = ["STUDY"]

_EVENT_BYTES = 1024
_PERCENT_MAX = 2.0
# What is asked while somebody looks at the console, with how often in a second; Prometheus asks
# for the figures alone, every fifteen seconds.
_LOOKS: Mapping[str, float] = {
    "broker": 0.5,
    "measured": 0.5,
    "figures": 0.5,
    "members": 0.1,
    "plans": 1.0,
    "moves": 1.0,
}


@dataclass(frozen=True)
class _Parameters:
    """How many events there are, and how often each view is looked at."""

    events: int
    looks: int


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(200, 5),
    "large": _Parameters(10_000, 100),
}


async def _looked(chain: Chain, way: Sequence[str], count: int) -> list[float]:
    """Return for each broker what share of a processor it takes to be looked at."""
    gate = chain.gate
    shares = [0.0 for _ in way]
    for view, rate in _LOOKS.items():
        before = await chain.told("cpu_s")
        for _ in range(count):
            for name in way:
                await look(gate.connection, gate.subjects.to_host(name, gate.name), view)
        for k, after in enumerate(await chain.told("cpu_s")):
            shares[k] += rate * (after - before[k]) / count
    return shares


async def _measure(size: Size, progress: Progress, folder: Path) -> Findings:
    parameters = _SIZES[size]
    way = one_hop()
    with running_server(folder, streams=False) as url:
        async with running_chain(folder, url, way, witnessed=True) as chain:
            progress(f"{parameters.events:,} events")
            before = await chain.told("cpu_s")
            rate = (await chain.run(parameters.events, _EVENT_BYTES)).rate
            used_s = [b - a for a, b in zip(before, await chain.told("cpu_s"), strict=True)]
            progress("looking")
            looked = await _looked(chain, way, parameters.looks)
    rows: list[tuple[str, float, float, float, float, float]] = []
    for place, name, cpu_s, look_share in zip(("root", "home"), way, used_s, looked, strict=True):
        told = json.loads((folder / f"{name}.witnessed.json").read_text(encoding="utf-8"))
        noting_s = told["calls"] * told["call_s"]
        each = (cpu_s / parameters.events * 1e6, noting_s / parameters.events * 1e6)
        share = noting_s / max(cpu_s, 1e-9)
        rows.append((place, *each, 100 * share, 100 * look_share, 100 * (share + look_share)))
    table = Table(
        "What it costs a broker to be watched",
        "speed",
        (
            Column("broker"),
            Column("CPU for an event, us", 1),
            Column("of it to count and note, us", 2),
            Column("share, %", 2),
            Column("to be looked at, % of a processor", 2),
            Column("together, %", 2),
        ),
        tuple(rows),
        notes=(
            f"{parameters.events:,} events of 1 KB over one hop at {rate:,.0f} a second. Calls are "
            "counted under load, and the last 5,000 of them made again and timed. Somebody looks "
            "at the console all the time."
        ),
    )
    worst = max(row[-1] for row in rows)
    claim = Claim("telemetry at full load", worst, "<=", _PERCENT_MAX, "% of a broker's CPU")
    return Findings((table,), (claim,), result_hash([parameters.events, parameters.looks]))


def _run(size: Size, progress: Progress) -> Findings:
    with tempfile.TemporaryDirectory(prefix="telemetry-") as folder:
        return asyncio.run(_measure(size, progress, Path(folder) / "brokers"))


STUDY = Study(
    "live-telemetry",
    "Real processes on this machine: what a host counts and notes of every message, and what it "
    "is asked by whoever watches, as a share of the CPU of its broker.",
    0.5,
    _run,
)
