"""`distributary pipeline sample`: realistic data of any size, the same for the same seed."""

from __future__ import annotations

from typing import Annotated

import typer

from distributary.cli.options import Seed
from distributary.cli.pipeline.options import (
    AsJson,
    Data,
    DriverMemory,
    Explain,
    Master,
    Remote,
    job,
    print_plans,
    print_report,
)

__all__ = ["EXAMPLES", "sample"]

EXAMPLES = """\
\b
Examples:
  distributary pipeline sample --data data --publications 10000 --subscriptions 1000 --seed 7
  distributary pipeline sample --data data --users 100000 --brokers 1024 --matches 20
  distributary pipeline sample --data data --objects 100 --seconds 23400 --servers 256
"""


def sample(
    data: Data,
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
    master: Master = None,
    remote: Remote = None,
    driver_memory: DriverMemory = "2g",
    explain: Explain = False,
    as_json: AsJson = False,
) -> None:
    """Write tables of realistic data, to try the other jobs with.

    Publications, subscriptions, users, brokers, prices, an overlay and quotes, skewed as
    such things are. Whatever the number of subscriptions, an event matches about
    --matches of them.
    """
    from distributary.pipeline.jobs.sample import frames
    from distributary.pipeline.jobs.sample import sample as run
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
    with job(
        "sample",
        data=data,
        output=None,
        master=master,
        remote=remote,
        driver_memory=driver_memory,
    ) as running:
        if explain:
            print_plans(frames(running.source.spark, sizes, seed=seed))
            return
        report = run(running.target, sizes, seed=seed)
    print_report(report, as_json=as_json)
