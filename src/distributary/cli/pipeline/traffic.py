"""`distributary pipeline traffic`: how much traffic users have, with whom, and brokers pass on."""

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

__all__ = ["EXAMPLES", "Partners", "traffic"]

EXAMPLES = """\
\b
Examples:
  distributary pipeline traffic --data data
  distributary pipeline traffic --data data --partners 3 --json
"""

Partners = Annotated[
    int, typer.Option("--partners", metavar="K", help="Partners of each user that are kept.")
]


def traffic(
    data: Data,
    output: Output = None,
    partners: Partners = 10,
    master: Master = None,
    remote: Remote = None,
    driver_memory: DriverMemory = "2g",
    as_json: AsJson = False,
    explain: Explain = False,
) -> None:
    """Add up the traffic of users, of pairs of brokers, and of those who exchange most.

    Reads rates_published and interests, which `pipeline channels` writes, and users; writes
    traffic and partners. With brokers and core_costs it also writes broker_traffic: what
    passes between brokers when all users are attached to their home brokers.
    """
    from distributary.pipeline.jobs import traffic as jobs

    with job(
        "traffic",
        data=data,
        output=output,
        master=master,
        remote=remote,
        driver_memory=driver_memory,
    ) as started:
        if explain:
            print_plans(jobs.frames(started.source, partners=partners))
            return
        report = jobs.traffic(started.source, started.target, partners=partners)
    print_report(report, as_json=as_json)
