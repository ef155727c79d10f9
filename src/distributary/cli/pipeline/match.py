"""`distributary pipeline match`: who gets which publication, and in which format."""

from __future__ import annotations

from pathlib import Path
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

__all__ = ["EXAMPLES", "Graph", "match"]

EXAMPLES = """\
\b
Examples:
  distributary pipeline match --data data
  distributary pipeline match --data data --graph calibration.json -o results
"""

Graph = Annotated[
    Path | None,
    typer.Option(
        "--graph",
        metavar="FILE",
        help="The adaptation graph, as `distributary calibrate` writes it.",
        show_default="those that come with distributary",
    ),
]


def match(
    data: Data,
    output: Output = None,
    graph: Graph = None,
    master: Master = None,
    remote: Remote = None,
    driver_memory: DriverMemory = "2g",
    as_json: AsJson = False,
    explain: Explain = False,
) -> None:
    """Find the subscriptions that each publication matches.

    Reads publications, subscriptions and, for the home brokers, users; writes deliveries.
    Each row has the format that the subscriber's device gets, none if nothing that it can
    use can be made.
    """
    from distributary.pipeline.jobs import match as jobs

    with job(
        "match",
        data=data,
        output=output,
        master=master,
        remote=remote,
        driver_memory=driver_memory,
    ) as started:
        if explain:
            print_plans(jobs.frames(started.source, graph=graph))
            return
        report = jobs.match(started.source, started.target, graph=graph)
    print_report(report, as_json=as_json)
