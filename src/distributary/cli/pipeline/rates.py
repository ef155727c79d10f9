"""`distributary pipeline rates`: how often servers need updates of quoted objects."""

from __future__ import annotations

from typing import Annotated

import typer

from distributary.cli.pipeline.options import (
    AsJson,
    Data,
    DriverMemory,
    Explain,
    Master,
    Output,
    Remote,
    job,
    print_plans,
    print_report,
)

__all__ = ["EXAMPLES", "QuoteSource", "QuoteType", "QuoteValue", "rates"]

EXAMPLES = """\
\b
Examples:
  distributary pipeline rates --data market
  distributary pipeline rates --data market --source /exchange --type quote --value /price
  distributary pipeline rates --data market -o results --json
"""

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


def rates(
    data: Data,
    output: Output = None,
    source: QuoteSource = "/exchange",
    event_type: QuoteType = "quote",
    value: QuoteValue = None,
    master: Master = None,
    remote: Remote = None,
    driver_memory: DriverMemory = "2g",
    as_json: AsJson = False,
    explain: Explain = False,
) -> None:
    """Count the updates that each server needs of each quoted object, per second.

    Versions of an object are compared with the one that was sent last, as brokers do. What
    a server needs follows from the tolerances of the subscriptions of users at home there.
    A subscription follows an object when its filters pass an event with this --source and
    --type, and the object as its subject.
    """
    from distributary.pipeline.jobs import rates as jobs
    from distributary.pipeline.transforms.followers import ObjectEvents

    events = ObjectEvents(source, event_type, value)
    with job(
        "rates",
        data=data,
        output=output,
        master=master,
        remote=remote,
        driver_memory=driver_memory,
    ) as started:
        if explain:
            print_plans(jobs.frames(started.source, events=events))
            return
        report = jobs.rates(started.source, started.target, events=events)
    print_report(report, as_json=as_json)
