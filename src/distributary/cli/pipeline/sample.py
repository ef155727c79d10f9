"""`distributary pipeline sample`: realistic data of any size, the same for the same seed."""

from __future__ import annotations

from typing import Annotated

import typer

from distributary.cli.options import Seed
from distributary.cli.pipeline.options import JobOptions, command

__all__ = ["sample"]


@command(
    "Make realistic tables.",
    "sample --data data --publications 10000 --subscriptions 1000 --seed 7",
    "sample --data data --users 100000 --brokers 1024 --matches 20",
    "sample --data data --objects 100 --seconds 23400 --servers 256",
    output=False,
)
def sample(
    job: JobOptions,
    publications: Annotated[int, typer.Option(help="Publications.")] = 10_000,
    subscriptions: Annotated[int, typer.Option(help="Subscriptions.")] = 1_000,
    seed: Seed = 0,
    users: Annotated[int, typer.Option(help="Users.")] = 1_000,
    brokers: Annotated[int, typer.Option(help="Brokers.")] = 64,
    objects: Annotated[int, typer.Option(help="Quoted objects.")] = 20,
    seconds: Annotated[int, typer.Option(help="Quotes of each object, one a second.")] = 3_600,
    servers: Annotated[
        int | None,
        typer.Option(help="Brokers whose users follow quotes.", show_default="all brokers"),
    ] = None,
    matches: Annotated[
        float, typer.Option(help="Subscriptions that an event matches, on average.")
    ] = 10.0,
    days: Annotated[float, typer.Option(help="Days over which publications are spread.")] = 1.0,
) -> None:
    """Write tables of realistic data, to try the other jobs with.

    Publications, subscriptions, users, brokers, prices, an overlay and quotes, skewed as
    such things are. Whatever the number of subscriptions, an event matches about
    --matches of them.
    """
    from distributary.pipeline.jobs import sample as jobs
    from distributary.pipeline.sample import SampleSizes

    sizes = SampleSizes(
        publications=publications,
        subscriptions=subscriptions,
        users=users,
        brokers=brokers,
        objects=objects,
        seconds=seconds,
        servers=servers,
        matches=matches,
        days=days,
    )
    job.run(
        "sample",
        lambda running: jobs.sample(running.target, sizes, seed=seed),
        frames=lambda running: jobs.frames(running.target.spark, sizes, seed=seed),
    )
