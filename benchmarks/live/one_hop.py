"""One hop: a publisher and a subscriber at two brokers, against one stream of plain NATS."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.live.brokers import one_hop, running_chain
from benchmarks.live.server import running_server
from benchmarks.live.streams import running_streams
from benchmarks.study import Claim, Column, Findings, Progress, Size, Study, Table, result_hash

__all__ = ["STUDY"]

_EVENT_BYTES = 1024
_SHARE_MIN = 0.6
# In order of the way.
_ROLES = ("publisher's home and root", "subscriber's home")


@dataclass(frozen=True)
class _Parameters:
    """How many events in a run, and how many runs of each."""

    events: int
    runs: int


_SIZES: Mapping[Size, _Parameters] = {"small": _Parameters(200, 1), "large": _Parameters(3_000, 5)}


def _journal_bytes(folder: Path) -> list[int]:
    states = [folder / "brokers" / name for name in one_hop()]
    return [sum(one.stat().st_size for one in state.glob("journal*")) for state in states]


async def _compare(size: Size, progress: Progress, folder: Path) -> Findings:
    parameters = _SIZES[size]
    rows: list[tuple[int, float, float, float]] = []
    with (
        running_server(folder / "brokers", streams=False) as ours,
        running_server(folder / "plain", streams=True) as theirs,
    ):
        async with (
            running_chain(folder / "brokers", ours, one_hop()) as chain,
            running_streams(theirs, 0) as streams,
        ):
            # What is compiled or opened at first is no part of it.
            await chain.run(parameters.events // 4, _EVENT_BYTES)
            await streams.run(parameters.events // 4, _EVENT_BYTES)
            memory, disk = chain.private_bytes(), _journal_bytes(folder)
            for run in range(1, parameters.runs + 1):
                progress(f"run {run} of {parameters.runs}")
                plain = (await streams.run(parameters.events, _EVENT_BYTES)).rate
                brokers = (await chain.run(parameters.events, _EVENT_BYTES)).rate
                rows.append((run, brokers, plain, brokers / plain))
            events = parameters.events * parameters.runs
            grown = [
                ((after - before) / events, (size - size_before) / events)
                for after, before, size, size_before in zip(
                    chain.private_bytes(), memory, _journal_bytes(folder), disk, strict=True
                )
            ]
    share = statistics.median(row[3] for row in rows)
    table = Table(
        "One hop, against one stream of plain NATS",
        "speed",
        (
            Column("run"),
            Column("events/s, brokers"),
            Column("messages/s, plain NATS"),
            Column("share", 2),
        ),
        tuple(rows),
        notes=(
            f"{parameters.events:,} events of 1 KB a run, runs of the two in turn, each with up to "
            "256 under way. Plain NATS is nats-py with one stream that syncs every message, a "
            "publisher, and a subscriber that pulls and acknowledges."
        ),
    )
    kept = Table(
        "What an event takes while it is kept",
        "speed",
        (Column("broker"), Column("bytes of memory"), Column("bytes of the journal")),
        tuple((name, *bytes_each) for name, bytes_each in zip(_ROLES, grown, strict=True)),
        notes=(
            f"Of 1 KB each, after {events:,} of them: what each process has more than before, and "
            "what its journal is longer by. They are forgotten after `retention_s`, and what is "
            "known of them after `dedupe_s`."
        ),
    )
    claim = Claim(
        "share of plain NATS over one hop, median", share, ">=", _SHARE_MIN, "times the rate"
    )
    return Findings((table, kept), (claim,), result_hash([parameters.events, parameters.runs]))


def _run(size: Size, progress: Progress) -> Findings:
    with tempfile.TemporaryDirectory(prefix="one-hop-") as folder:
        return asyncio.run(_compare(size, progress, Path(folder)))


STUDY = Study(
    "live-one-hop",
    "Real processes on this machine: a publisher at the root, a subscriber at another broker. "
    "Accepted means on disk on both sides.",
    2.0,
    _run,
)
