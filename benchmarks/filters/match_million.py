"""A million subscriptions of ten ranges: time of an event, memory, and changes."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from benchmarks.filters.range_workload import (
    CONDITIONS,
    KEYS,
    event_batch,
    events,
    range_subscriptions,
)
from benchmarks.filters.timing import seconds_per_event
from benchmarks.process import peak_memory_bytes
from benchmarks.study import (
    Claim,
    Column,
    Findings,
    Progress,
    Size,
    Study,
    Table,
    result_hash,
)
from distributary.filters.index import Index

__all__ = ["STUDY"]

_SEED = 1
_GIB = 2**30

_MEMORY = """
import pyarrow as pa
from distributary.filters.index import Index

with pa.OSFile({path!r}) as file:
    table = pa.ipc.open_file(file).read_all()
index = Index.from_arrow(table)
assert len(index) == table.num_rows
"""

# Logs of the authors of HEM (Shi and Qian, DASFAA 2022) in their repository shiwanghua/HEM,
# in C++, for a million subscriptions of 10 ranges over 20 attributes, of width 0.3.
# Milliseconds per event, the least and the most, of engines in C++. From logs in the
# repository shiwanghua/HEM (Shi, Qian and others, DASFAA 2022), not measured by us.
_PUBLISHED = (
    ("REIN", 7.6, 8.6),
    ("TAMA", 3.2, 3.2),
    ("HEM", 0.40, 1.26),
    ("HEM with vector instructions", 0.46, 0.53),
)


@dataclass(frozen=True)
class _Parameters:
    subscriptions: int
    matches: float
    singles: int
    batch: int
    changes: int
    repeats: int
    single_ms_max: float
    batch_ms_max: float
    memory_gib_max: float
    change_ms_max: float


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(20_000, 20.0, 20, 50, 1_000, 2, 0.8, 0.3, 1.5, 0.05),
    "large": _Parameters(1_000_000, 100.0, 500, 2_000, 20_000, 5, 0.8, 0.3, 1.5, 0.05),
}


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        return _measure(parameters, progress)
    finally:
        pa.set_cpu_count(threads)


def _measure(parameters: _Parameters, progress: Progress) -> Findings:
    progress("subscriptions")
    share = parameters.matches / parameters.subscriptions
    table = range_subscriptions(seed=_SEED, count=parameters.subscriptions, share=share)
    Index.from_arrow(table.slice(0, 2000)).match_batch(event_batch(seed=_SEED, count=1))
    progress("memory")
    memory = _peak_memory(table)
    progress("index")
    began = time.perf_counter()
    index = Index.from_arrow(table)
    build = time.perf_counter() - began
    progress("events")
    batch = event_batch(seed=_SEED, count=parameters.batch)
    singles = events(seed=_SEED, count=parameters.singles)
    found = index.match_batch(batch)
    _check(index, found)
    single = seconds_per_event(
        lambda portion: [index.match(event) for event in portion],
        [singles[begin : begin + 10] for begin in range(0, len(singles), 10)],
        events=len(singles),
        repeats=parameters.repeats,
    )
    batched = seconds_per_event(
        index.match_batch,
        [batch.slice(begin, 1000) for begin in range(0, batch.num_rows, 1000)],
        events=batch.num_rows,
        repeats=parameters.repeats,
    )
    progress("changes")
    added, removed = _changes(index, parameters, share)
    assert index.match_batch(batch).equals(found), "changes that are undone leave a trace"
    matches = found.num_rows / parameters.batch
    count = f"{parameters.subscriptions:,}"
    return Findings(
        tables=(
            Table(
                f"{count} subscriptions of {CONDITIONS} ranges over {KEYS} numbers, on one core",
                "speed",
                (Column("what"), Column("result", 3), Column("unit")),
                (
                    ("match an event by itself", 1e3 * single, "ms"),
                    ("match an event of a batch", 1e3 * batched, "ms"),
                    ("matches of an event", matches, ""),
                    ("add in batches", added, "per second"),
                    ("remove in batches", removed, "per second"),
                    ("build from an Arrow table of JSON", build, "s"),
                    ("peak memory of a process that builds it", memory / _GIB, "GiB"),
                ),
                notes=(
                    f"{parameters.singles:,} events by themselves, ten after the other, and "
                    f"{parameters.batch:,} in batches of 1,000, each at the best of "
                    f"{parameters.repeats} times, in time of the processor; "
                    f"{parameters.changes:,} changes in a batch. "
                    "Memory includes the table."
                ),
            ),
            Table(
                "The same beside published engines in C++",
                "speed",
                (Column("engine"), Column("least ms per event", 2), Column("most", 2)),
                (
                    *_PUBLISHED,
                    ("distributary, an event by itself", 1e3 * single, 1e3 * single),
                    ("distributary, an event of a batch", 1e3 * batched, 1e3 * batched),
                ),
                notes=(
                    "Figures of the others are from the logs in the repository of HEM (Shi, Qian "
                    "and others, DASFAA 2022), on another machine: a million subscriptions of 10 "
                    "ranges over 20 attributes, with about 6 matches of an event."
                ),
            ),
        ),
        claims=(
            Claim("an event by itself", 1e3 * single, "<", parameters.single_ms_max, "ms"),
            Claim("an event of a batch", 1e3 * batched, "<", parameters.batch_ms_max, "ms"),
            Claim("peak memory", memory / _GIB, "<", parameters.memory_gib_max, "GiB"),
            Claim("an addition in a batch", 1e3 / added, "<=", parameters.change_ms_max, "ms"),
            Claim("a removal in a batch", 1e3 / removed, "<=", parameters.change_ms_max, "ms"),
        ),
        result_hash=result_hash(
            [found["event_index"].to_pylist()[:1000], found["subscription_id"].to_pylist()[:1000]]
        ),
    )


def _peak_memory(table: pa.Table) -> int:
    """Return the peak memory of a process that reads the table and builds an index."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "subscriptions.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        return peak_memory_bytes(["-c", _MEMORY.format(path=str(path))])


def _changes(index: Index, parameters: _Parameters, share: float) -> tuple[float, float]:
    """Return how many subscriptions are added and removed in a second."""
    first = parameters.subscriptions
    more = range_subscriptions(seed=_SEED + 1, count=parameters.changes, share=share, first=first)
    ids = more["subscription_id"].combine_chunks()
    added, removed = [], []
    for _ in range(parameters.repeats):
        began = time.perf_counter()
        index.add_batch(more)
        added.append(time.perf_counter() - began)
        began = time.perf_counter()
        index.remove_batch(ids)
        removed.append(time.perf_counter() - began)
    return parameters.changes / min(added), parameters.changes / min(removed)


def _check(index: Index, found: pa.RecordBatch) -> None:
    """Make sure that the first events have the same matches by themselves."""
    pairs = found.to_pydict()
    for number, event in enumerate(events(seed=_SEED, count=5)):
        names = [
            name
            for row, name in zip(pairs["event_index"], pairs["subscription_id"], strict=True)
            if row == number
        ]
        assert index.match(event) == sorted(names), "a batch is matched differently"


STUDY = Study(
    name="match-million",
    about=(
        "How long an event takes among many subscriptions of ranges, how much memory that "
        "needs, and how fast subscriptions come and go."
    ),
    minutes=2,
    run=_run,
)
