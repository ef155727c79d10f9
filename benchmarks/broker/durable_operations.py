"""Ten subscribers at five homes: how many records are written and erased for a publication."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.broker.metered import Client, Counts, MeteredWorld, event_of, metered
from benchmarks.study import Claim, Column, Findings, Progress, Size, Study, Table, result_hash
from distributary.broker.client import Publish
from distributary.broker.settings import Settings

__all__ = ["STUDY"]

_BROKERS, _HOMES, _SUBSCRIBERS = 8, 5, 10
_EVENT_BYTES = 1024
_ACKNOWLEDGED_EVERY = 16
_RATE = 50
# Long enough for registrations to have been renewed, and for the next renewal to be far.
_BEGINS_S = 45.0
_REST_S = 5.0
_OPERATIONS_MAX = 30.0
_FIRST_VERSION = 62


@dataclass(frozen=True)
class _Parameters:
    """How many publications; all of them within the time for which they are kept."""

    publications: int


_SIZES: Mapping[Size, _Parameters] = {"small": _Parameters(160), "large": _Parameters(1_600)}


def _run(size: Size, progress: Progress) -> Findings:
    count = _SIZES[size].publications
    with metered() as meter:
        world = MeteredWorld(_BROKERS, Settings())
        subscribers = [
            Client(world, f"s{k}", world.members[k % _HOMES], every=_ACKNOWLEDGED_EVERY)
            for k in range(_SUBSCRIBERS)
        ]
        for k, subscriber in enumerate(subscribers):
            subscriber.subscribe(f"s{k}", [{"exact": {"type": "load"}}])
        publisher = Client(world, "p", world.members[-1])
        world.run(_BEGINS_S)
        progress(f"{count} publications, {_RATE} a second")
        meter.counts = Counts()
        for k in range(count):
            world.at(k / _RATE, publisher.say, Publish(event_of(k, size=_EVENT_BYTES)))
        world.run(count / _RATE + _REST_S)
        assert all(len(subscriber.got) >= count for subscriber in subscribers)
        counts = meter.counts
    row = (
        counts.persisted / count,
        counts.erased / count,
        (counts.persisted + counts.erased) / count,
        counts.persisted_bytes / count,
    )
    table = Table(
        "A publication of 1 KB for ten subscribers at five homes of eight brokers",
        "quality",
        (
            Column("written", 1),
            Column("erased", 1),
            Column("operations", 1),
            Column("bytes written"),
        ),
        (row,),
        notes=(
            f"Clients acknowledge every {_ACKNOWLEDGED_EVERY}; without what is erased after "
            f"retention. The first version took {_FIRST_VERSION} operations."
        ),
    )
    claim = Claim("durable operations for a publication", row[2], "<=", _OPERATIONS_MAX)
    return Findings((table,), (claim,), result_hash(row))


STUDY = Study(
    "durable-operations",
    "Ten subscribers at five homes of an overlay of eight brokers: how many records all brokers "
    "together write and erase for one publication.",
    1.0,
    _run,
)
