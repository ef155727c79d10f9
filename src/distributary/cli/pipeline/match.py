"""`distributary pipeline match`: who gets which publication, and in which format."""

from __future__ import annotations

from distributary.cli.pipeline.options import (
    AsJson,
    Data,
    DriverMemory,
    Explain,
    Graph,
    Master,
    Output,
    Remote,
    job,
    print_plans,
    print_report,
)

__all__ = ["EXAMPLES", "match"]

EXAMPLES = """\
\b
Examples:
  distributary pipeline match --data data
  distributary pipeline match --data data --graph calibration.json -o results
"""


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
