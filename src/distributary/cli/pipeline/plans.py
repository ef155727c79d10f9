"""`distributary pipeline plans`: where the conversions of every publication should run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from distributary.cli.options import PlacementMethod, Seed
from distributary.cli.pipeline.options import DayJobOptions, Graph, command

__all__ = ["plans"]


@command(
    "Plan every publication.",
    "plans --data market",
    "plans --data market --since 2026-01-05",
    "plans --data market --graph calibrated.json --beta 2",
    "plans --data market --link-cost delay -o results --json",
)
def plans(
    job: DayJobOptions,
    graph: Graph = None,
    space: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="The content space whose cells have rendezvous brokers.",
            show_default="that of the channels",
        ),
    ] = None,
    method: Annotated[PlacementMethod, typer.Option(help="How to plan.")] = "auto",
    seed: Seed = 0,
    alpha: Annotated[float, typer.Option(help="Worth of a unit of transmission.")] = 1.0,
    beta: Annotated[float, typer.Option(help="Worth of a unit of conversion.")] = 1.0,
    link_cost: Annotated[
        Literal["equal", "delay"],
        typer.Option("--link-cost", help="What links cost: all the same, or by their delay."),
    ] = "equal",
    tasks: Annotated[
        int | None,
        typer.Option(min=1, help="Tasks to plan in.", show_default="a few per core"),
    ] = None,
) -> None:
    """Decide for every publication at which brokers it is converted.

    Its tree leads from the rendezvous broker of its cell to the home brokers of those who
    get it. Every plan stands beside what its three baselines cost and a lower bound; a
    publication that cannot be planned has a row that says why.
    """
    from distributary.pipeline.jobs import plans as jobs
    from distributary.pipeline.transforms.publication_plans import PlanOptions

    options = PlanOptions(method, seed, alpha, beta, link_cost)
    days = job.days
    asked: dict[str, Any] = {"graph": graph, "space": space, "options": options, "tasks": tasks}
    job.run(
        "plans",
        lambda running: jobs.plans(running.source, running.target, days, **asked),
        frames=lambda running: jobs.frames(running.source, days, **asked),
    )
