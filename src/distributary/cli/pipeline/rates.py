"""`distributary pipeline rates`: how often servers need updates of quoted objects."""

from __future__ import annotations

from typing import Annotated

import typer

from distributary.cli.pipeline.options import DayJobOptions, command

__all__ = ["QuoteSource", "QuoteType", "QuoteValue", "rates"]

QuoteSource = Annotated[
    str, typer.Option("--source", metavar="URI", help="The source of the quoted objects' events.")
]
QuoteType = Annotated[
    str, typer.Option("--type", metavar="TYPE", help="The type of the quoted objects' events.")
]
QuoteValue = Annotated[
    str | None,
    typer.Option(
        "--value",
        metavar="POINTER",
        help="Where in the events the quoted value is.",
        show_default="as tolerances say",
    ),
]


@command(
    "Updates that servers need.",
    "rates --data market",
    "rates --data market --since 2026-01-05",
    "rates --data market --source /exchange --type quote --value /price",
    "rates --data market -o results --json",
)
def rates(
    job: DayJobOptions,
    source: QuoteSource = "/exchange",
    event_type: QuoteType = "quote",
    value: QuoteValue = None,
) -> None:
    """Count the updates that each server needs of each quoted object, per second.

    Versions of an object are compared with the one that was sent last, as brokers do. What
    a server needs follows from the tolerances of the subscriptions of users at home there.
    A subscription follows an object when its filters pass an event with this --source and
    --type, and the object as its subject.

    Days are counted one after the other, each from where the one before has ended, and kept in
    rate_days. Of the days that are named, and of those after them until one ends as it did
    before, all are counted again; rates are sums over the days that are named.
    """
    from distributary.pipeline.jobs import rates as jobs
    from distributary.pipeline.transforms.followers import ObjectEvents

    events = ObjectEvents(source, event_type, value)
    days = job.days
    job.run(
        "rates",
        lambda running: jobs.rates(running.source, running.target, days, events=events),
        frames=lambda running: jobs.frames(running.source, days, events=events),
    )
