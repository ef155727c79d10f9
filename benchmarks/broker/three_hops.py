"""A publication over three hops: how many messages it takes, and how many bytes are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from benchmarks.broker.metered import Client, Counts, event_of, metered, route_of_three_hops
from benchmarks.study import Claim, Column, Findings, Progress, Size, Study, Table, result_hash
from distributary.broker.client import Publish
from distributary.broker.settings import Settings

__all__ = ["STUDY"]

_EVENT_BYTES = 1024
_REST_S = 5.0
_MESSAGES_MAX = {1: 8.0, 100: 6.0}
_FIRST_VERSION = {"messages": 10.0, "bytes": 9.7 * 1024}
_PERSISTED_BYTES_MAX = 4.0 * 1024


@dataclass(frozen=True)
class _Parameters:
    """How many publications, by how many there are in a second."""

    publications: Mapping[int, int]


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters({1: 10, 100: 200}),
    "large": _Parameters({1: 100, 100: 5_000}),
}


def _settings() -> Settings:
    settings = Settings()
    # What is renewed every so often is not a publication's.
    quiet = replace(settings.subscriptions, registration_s=36_000.0)
    return replace(settings, subscriptions=quiet)


def _run(size: Size, progress: Progress) -> Findings:
    rows = []
    claims = []
    with metered() as meter:
        progress("looks for a route of three hops")
        world, home, way = route_of_three_hops(_settings())
        subscriber, publisher = Client(world, "s", way[-1]), Client(world, "p", home)
        subscriber.subscribe("s", [{"exact": {"type": "load"}}])
        world.run(_REST_S)
        number = 0
        for rate, count in _SIZES[size].publications.items():
            progress(f"{count} publications, {rate} a second")
            meter.counts, before = Counts(), len(subscriber.got)
            for k in range(count):
                number += 1
                event = event_of(number, size=_EVENT_BYTES)
                world.at(k / rate, publisher.say, Publish(event))
            world.run(count / rate + _REST_S)
            assert len(subscriber.got) - before == count, "something is under way"
            counts = meter.counts
            messages = sum(counts.sends.values()) / count
            persisted_bytes = counts.persisted_bytes / count
            rows.append((rate, messages, counts.persisted / count, persisted_bytes))
            claims += [
                Claim(
                    f"messages for a publication, {rate} a second",
                    messages,
                    "<=",
                    _MESSAGES_MAX[rate],
                ),
                Claim(
                    f"bytes written for a publication, {rate} a second",
                    persisted_bytes,
                    "<=",
                    _PERSISTED_BYTES_MAX,
                    "bytes",
                ),
            ]
    table = Table(
        "A publication of 1 KB over three hops to one subscriber",
        "quality",
        (
            Column("publications a second"),
            Column("messages", 2),
            Column("records written", 2),
            Column("bytes written"),
        ),
        tuple(rows),
        notes=(
            "Messages between brokers without those of membership, and what all brokers write. "
            f"The first version took {_FIRST_VERSION['messages']:.0f} messages and "
            f"{_FIRST_VERSION['bytes']:,.0f} bytes."
        ),
    )
    return Findings((table,), tuple(claims), result_hash(rows))


STUDY = Study(
    "three-hops",
    "From the publisher's home to the root, and by way of a broker that only hands it on to the "
    "subscriber's home: how many messages brokers send each other for one publication, and how "
    "much they write. Acknowledgements and confirmations are gathered for 20 ms.",
    1.0,
    _run,
)
