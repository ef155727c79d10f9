"""The index beside evaluating every filter: conditions of every kind, skewed values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from benchmarks.filters.mixed_workload import mixed_events, mixed_subscriptions
from benchmarks.filters.timing import seconds_per_event
from benchmarks.study import (
    Claim,
    Column,
    Findings,
    Progress,
    Size,
    Study,
    Table,
    mean,
    result_hash,
)
from distributary.content.publication import Publication
from distributary.content.publication_table import to_arrow
from distributary.filters.filter import Filter
from distributary.filters.index import Index

__all__ = ["STUDY"]

_SEED = 1


@dataclass(frozen=True)
class _Parameters:
    subscriptions: int
    events: int
    evaluated: int
    repeats: int
    speedup_min: float


# Against few subscriptions an index has less to gain.
_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(2_000, 50, 4, 2, 5.0),
    "large": _Parameters(100_000, 2_000, 10, 5, 50.0),
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
    documents = mixed_subscriptions(seed=_SEED, count=parameters.subscriptions)
    events = mixed_events(seed=_SEED, count=parameters.events)
    filters = {name: Filter.parse(document) for name, document in documents.items()}
    table = pa.table(
        {
            "subscription_id": list(documents),
            "filters": [json.dumps(document) for document in documents.values()],
        }
    )
    progress("index")
    index = Index.from_arrow(table)
    batch = to_arrow(events)
    matched = [index.match(event) for event in events]
    assert list(index.match_each(events)) == matched, "a portion is matched differently"
    _check_batch(index, batch, matched)
    progress("every filter")
    evaluated = events[: parameters.evaluated]
    expected = [_evaluated(filters, event) for event in evaluated]
    assert expected == matched[: parameters.evaluated], "the index is wrong"
    seconds = {
        "every filter": seconds_per_event(
            lambda event: _evaluated(filters, event),
            evaluated,
            events=len(evaluated),
            repeats=parameters.repeats,
        ),
        "index, one event at a time": seconds_per_event(
            lambda portion: [index.match(event) for event in portion],
            [events[begin : begin + 20] for begin in range(0, len(events), 20)],
            events=len(events),
            repeats=parameters.repeats,
        ),
        "index, 500 events at a time": seconds_per_event(
            lambda portion: list(index.match_each(portion)),
            [events[begin : begin + 500] for begin in range(0, len(events), 500)],
            events=len(events),
            repeats=parameters.repeats,
        ),
        "index, in a batch": seconds_per_event(
            index.match_batch,
            [batch.slice(begin, 500) for begin in range(0, batch.num_rows, 500)],
            events=batch.num_rows,
            repeats=parameters.repeats,
        ),
    }
    share = mean([len(names) for names in matched]) / parameters.subscriptions
    slowest = seconds["every filter"]
    return Findings(
        tables=(
            Table(
                f"{parameters.subscriptions:,} subscriptions of 1 to 5 conditions, on one core",
                "speed",
                (
                    Column("method"),
                    Column("µs per event", 1),
                    Column("events per second"),
                    Column("times as fast", 1),
                    Column("% of subscriptions match", 3),
                ),
                tuple(
                    (name, 1e6 * time_, 1 / time_, slowest / time_, 100 * share)
                    for name, time_ in seconds.items()
                ),
                notes=(
                    "20 attributes and places in the data; texts that are equal (also in SQL), "
                    "one of three, or begin or end with a text of a skewed vocabulary of 10,000, "
                    "and ranges. Every "
                    "filter is evaluated by compiled `Filter.matches`. Portions of 20 events, and "
                    f"batches of 500, each at the best of {parameters.repeats} times, in time of "
                    "the processor; answers are compared."
                ),
            ),
        ),
        claims=tuple(
            Claim(
                f"every filter beside {name}",
                slowest / time_,
                ">=",
                parameters.speedup_min,
                "times as long",
            )
            for name, time_ in seconds.items()
            if name != "every filter"
        ),
        result_hash=result_hash(matched[: parameters.evaluated]),
    )


def _evaluated(filters: Mapping[str, Filter], event: Publication) -> list[str]:
    return sorted(name for name, filter_ in filters.items() if filter_.matches(event))


def _check_batch(index: Index, batch: pa.RecordBatch, matched: list[list[str]]) -> None:
    found: list[list[str]] = [[] for _ in matched]
    pairs = index.match_batch(batch).to_pydict()
    for event, name in zip(pairs["event_index"], pairs["subscription_id"], strict=True):
        found[event].append(name)
    assert [sorted(names) for names in found] == matched, "a batch is matched differently"


STUDY = Study(
    name="match-mixed",
    about=(
        "How much faster the index finds who gets an event than evaluating every filter, with "
        "conditions of every kind on skewed values."
    ),
    minutes=1.5,
    run=_run,
)
