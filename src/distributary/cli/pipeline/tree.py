"""`distributary pipeline tree`: which trees the quoted objects should follow."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from distributary.cli.options import FidelityMethod, Seed, TimeLimit, check_number
from distributary.cli.pipeline.options import JobOptions, command

__all__ = ["tree"]


@command(
    "Build the trees of streams.",
    "tree --data market",
    "tree --data market --source broker-07 --objects tree-each",
    "tree --data market --method greedy --no-baselines --json",
)
def tree(
    job: JobOptions,
    source: Annotated[
        str | None,
        typer.Option(
            metavar="BROKER",
            help="The broker that all objects come from.",
            show_default="their publishers' homes",
        ),
    ] = None,
    method: Annotated[FidelityMethod, typer.Option(help="How to build the tree.")] = "auto",
    objects: Annotated[
        Literal["one-tree", "tree-each"],
        typer.Option(help="One tree for all objects of a source, or a tree for each."),
    ] = "one-tree",
    filter_time: Annotated[
        float, typer.Option(help="Seconds to find out whether a child needs an update.")
    ] = 0.005,
    send_time: Annotated[float, typer.Option(help="Seconds to send it to one.")] = 0.001,
    source_filter_time: Annotated[float, typer.Option(help="The same at a source.")] = 0.001,
    source_send_time: Annotated[float, typer.Option(help="The same at a source.")] = 0.000125,
    seed: Seed = 0,
    time_limit: TimeLimit = None,
    baselines: Annotated[
        bool, typer.Option("--baselines/--no-baselines", help="Compare with simpler trees.")
    ] = True,
) -> None:
    """Decide from whom each broker receives updates, at the least loss of fidelity.

    Reads the rates that `rates` counted and the delays of the overlay. Objects that come
    from one broker are planned together. Planning itself runs on this machine.
    """
    check_number("--time-limit", time_limit, positive=True)
    from distributary.pipeline.jobs import tree as jobs
    from distributary.pipeline.stream_problems import ServerTimes

    times = ServerTimes(filter_time, send_time, source_filter_time, source_send_time)
    job.run(
        "tree",
        lambda running: jobs.tree(
            running.source,
            running.target,
            root=source,
            method=method,
            objects=objects,
            times=times,
            seed=seed,
            time_limit=time_limit,
            baselines=baselines,
            observe=running.observe,
        ),
        frames=lambda running: jobs.frames(running.source),
    )
