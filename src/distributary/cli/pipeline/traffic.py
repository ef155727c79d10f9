"""`distributary pipeline traffic`: how much traffic users have, with whom, and brokers pass on."""

from __future__ import annotations

from typing import Annotated

import typer

from distributary.cli.pipeline.options import DayJobOptions, command

__all__ = ["traffic"]


@command(
    "Traffic of users and brokers.",
    "traffic --data data",
    "traffic --data data --partners 3 --json",
    "traffic --data data --since 2026-01-05 --until 2026-01-12",
)
def traffic(
    job: DayJobOptions,
    partners: Annotated[
        int, typer.Option(metavar="K", help="Partners of each user that are kept.")
    ] = 10,
) -> None:
    """Add up the traffic of users, of pairs of brokers, and of those who exchange most.

    Reads rates_published and interests, which `pipeline channels` writes, deliveries, which
    `pipeline match` writes, publications and users; writes traffic and partners. What users
    receive is counted from deliveries; the figures say by how much cells over-count it. With
    brokers and core_costs it also writes broker_traffic: what passes between brokers when
    all users are attached to their home brokers.

    What users receive is counted by day, in received_days. With --since or --until, traffic is
    that of the days that are named.
    """
    from distributary.pipeline.jobs import traffic as jobs

    days = job.days
    job.run(
        "traffic",
        lambda running: jobs.traffic(running.source, running.target, days, partners=partners),
        frames=lambda running: jobs.frames(running.source, days, partners=partners),
    )
