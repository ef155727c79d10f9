"""`distributary pipeline match`: who gets which publication, and in which format."""

from __future__ import annotations

from distributary.cli.pipeline.options import DayJobOptions, Graph, command

__all__ = ["match"]


@command(
    "Publications to subscriptions.",
    "match --data data",
    "match --data data --since 2026-01-05 --until 2026-01-06",
    "match --data data --graph calibration.json -o results",
)
def match(job: DayJobOptions, graph: Graph = None) -> None:
    """Find the subscriptions that each publication matches.

    Reads publications, subscriptions and, for the home brokers, users; writes deliveries.
    Each row has the format that the subscriber's device gets, none if nothing that it can
    use can be made.
    """
    from distributary.pipeline.jobs import match as jobs

    days = job.days
    job.run(
        "match",
        lambda running: jobs.match(running.source, running.target, days, graph=graph),
        frames=lambda running: jobs.frames(running.source, days, graph=graph),
    )
