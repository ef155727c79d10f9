"""What subscriptions cost while nothing is published: records written and erased."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.broker.metered import Client, Counts, MeteredWorld, metered
from benchmarks.study import Claim, Column, Findings, Progress, Size, Study, Table, result_hash
from distributary.broker.settings import Settings

__all__ = ["STUDY"]

_BROKERS = 8
_SUBSCRIPTIONS = 400
_CLIENTS = 40
_SETTLED_S = 60.0
_PER_SECOND_MAX = 1.0


@dataclass(frozen=True)
class _Parameters:
    """For how many seconds nothing happens."""

    seconds: float


_SIZES: Mapping[Size, _Parameters] = {"small": _Parameters(60.0), "large": _Parameters(600.0)}


def _run(size: Size, progress: Progress) -> Findings:
    seconds = _SIZES[size].seconds
    progress(f"{_SUBSCRIPTIONS} subscriptions for {seconds:g} s")
    with metered() as meter:
        world = MeteredWorld(_BROKERS, Settings())
        clients = [
            Client(world, f"c{number}", world.members[number % _BROKERS])
            for number in range(_CLIENTS)
        ]
        for number in range(_SUBSCRIPTIONS):
            client = clients[number % _CLIENTS]
            client.subscribe(f"s{number}", [{"exact": {"type": f"type {number}"}}])
        world.run(_SETTLED_S)
        assert sum(client.answers["Subscribed"] for client in clients) == _SUBSCRIPTIONS
        meter.counts = counts = Counts()
        world.run(seconds)
    written = counts.persisted + counts.erased
    messages = sum(counts.sends.values())
    return Findings(
        tables=(
            Table(
                f"{_SUBSCRIPTIONS} subscriptions at {_BROKERS} brokers, nothing published, "
                "per second",
                "speed",
                (Column("durable operations", 2), Column("messages without pings", 2)),
                ((written / seconds, messages / seconds),),
            ),
        ),
        claims=(
            Claim(
                "durable operations of idle subscriptions",
                written / seconds,
                "<=",
                _PER_SECOND_MAX,
                "a second",
            ),
        ),
        result_hash=result_hash([written, messages]),
    )


STUDY = Study(
    name="idle-subscriptions",
    about="Subscriptions that wait for something to be published.",
    minutes=1,
    run=_run,
)
