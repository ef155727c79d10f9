"""`distributary pipeline traffic`: how much traffic users have, with whom, and brokers pass on."""

from __future__ import annotations

from typing import Annotated

import typer

from distributary.cli.pipeline.options import Job, command

__all__ = ["traffic"]


@command(
    "Traffic of users and brokers.",
    "traffic --data data",
    "traffic --data data --partners 3 --json",
)
def traffic(
    job: Job,
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
    """
    from distributary.pipeline.jobs import traffic as jobs

    job.run(
        "traffic",
        lambda running: jobs.traffic(running.source, running.target, partners=partners),
        frames=lambda running: jobs.frames(running.source, partners=partners),
    )
