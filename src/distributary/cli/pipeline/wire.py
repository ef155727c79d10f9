"""`distributary pipeline wire`: which broker every user should attach to."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from distributary.cli.options import Seed, TimeLimit, WiringMethod, check_number
from distributary.cli.pipeline.options import JobOptions, command
from distributary.errors import BadInput

__all__ = ["wire"]


@command(
    "Attach users to brokers.",
    "wire --data market",
    "wire --data market --method mixing --no-baselines",
    "wire --data market --from-homes --moves 50 --json",
)
def wire(
    job: JobOptions,
    method: Annotated[WiringMethod, typer.Option(help="How to attach users.")] = "auto",
    core: Annotated[
        Literal["mst", "steiner", "one-tree"],
        typer.Option(help="How traffic travels between brokers."),
    ] = "mst",
    seed: Seed = 0,
    time_limit: TimeLimit = None,
    from_homes: Annotated[
        bool, typer.Option("--from-homes", help="Re-wire from the homes in the table users.")
    ] = False,
    moves: Annotated[
        int | None,
        typer.Option(min=0, help="With --from-homes: most users to move.", show_default="all"),
    ] = None,
    baselines: Annotated[
        bool, typer.Option("--baselines/--no-baselines", help="Compare with simpler wirings.")
    ] = True,
) -> None:
    """Attach every user to a broker, at the least cost of the traffic that was measured.

    Reads what `channels` wrote, and the prices. Planning itself runs on this machine.
    """
    check_number("--time-limit", time_limit, positive=True)
    if moves is not None and not from_homes:
        raise BadInput("--moves", "needs --from-homes", hint="moves count from a wiring")
    if from_homes and method not in ("auto", "search"):
        raise BadInput("--from-homes", f"is for auto and search, not for {method}")
    from distributary.pipeline.jobs import wire as jobs

    job.run(
        "wire",
        lambda running: jobs.wire(
            running.source,
            running.target,
            method=method,
            core=core,
            seed=seed,
            time_limit=time_limit,
            from_homes=from_homes,
            moves=moves,
            baselines=baselines,
            observe=running.observe,
        ),
        frames=lambda running: jobs.frames(running.source),
    )
