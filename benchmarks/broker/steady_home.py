"""One source at a steady rate: what a publication costs its home as time goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from benchmarks.broker.metered import Client, MeteredWorld, event_of, route_of_three_hops
from benchmarks.broker.replay import recorded, replay
from benchmarks.study import Claim, Column, Findings, Progress, Size, Study, Table, result_hash
from distributary.broker.client import Publish
from distributary.broker.settings import ContentSettings, PublishingSettings, Settings

__all__ = ["STUDY"]

_RATE = 300
_RETENTIONS = 3
_QUARTERS = 4
_RATIO_MAX = 1.2


@dataclass(frozen=True)
class _Parameters:
    """How long publications are kept, in seconds, and how often the home's turns are timed."""

    retention_s: float
    repeats: int


_SIZES: Mapping[Size, _Parameters] = {"small": _Parameters(1.0, 2), "large": _Parameters(60.0, 3)}


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    settings = replace(
        Settings(),
        content=ContentSettings(retention_s=parameters.retention_s),
        publishing=PublishingSettings(dedupe_s=2.0 * parameters.retention_s),
    )
    found, home, way = route_of_three_hops(settings, brokers=8)
    seconds = _RETENTIONS * parameters.retention_s
    count = round(_RATE * seconds)
    progress(f"{count:,} publications")
    with recorded(home) as recording:
        world = MeteredWorld(8, settings, seed=found.world.seed)
        subscriber = Client(world, "s", way[-1], every=16)
        subscriber.subscribe("s", [{"exact": {"type": "load"}}])
        publisher = Client(world, "p", home)
        world.run(5.0)
        recording.from_here()
        for number in range(count):
            event = event_of(number, size=1024)
            world.at(number / _RATE, publisher.say, Publish(event, None, "session", number + 1, 1))
        world.run(seconds)
    progress("timing the home")
    times = replay(recording, portions=_QUARTERS, repeats=parameters.repeats).seconds
    each = [quarter / count * _QUARTERS for quarter in times]
    return Findings(
        tables=(
            Table(
                f"A home of which one source publishes {_RATE} events a second in one cell",
                "speed",
                (Column("quarter"), Column("kept at its end"), Column("microseconds each")),
                tuple(
                    (
                        at + 1,
                        round(_RATE * min(parameters.retention_s, (at + 1) * seconds / _QUARTERS)),
                        1e6 * one,
                    )
                    for at, one in enumerate(each)
                ),
                notes=(
                    f"{_RETENTIONS} times as long as publications are kept, which are "
                    f"{parameters.retention_s:g} s. Time of the processor for the home's turns "
                    "alone. What is kept is forgotten from the second quarter on, which is work "
                    "that the first does not have."
                ),
            ),
        ),
        claims=(
            Claim(
                "a publication in the last quarter, against the first",
                each[-1] / each[0],
                "<=",
                _RATIO_MAX,
                "times as long",
            ),
        ),
        result_hash=result_hash([count, len(subscriber.got), len(recording.calls)]),
    )


STUDY = Study(
    name="home-steady",
    about="A publisher's home that keeps what one source publishes, for three retention times.",
    minutes=4,
    run=_run,
)
