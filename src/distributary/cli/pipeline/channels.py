"""`distributary pipeline channels`: what is published and wanted in each cell."""

from __future__ import annotations

from pathlib import Path
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

__all__ = ["EXAMPLES", "Bins", "By", "Dimensions", "Space", "channels"]

EXAMPLES = """\
\b
Examples:
  distributary pipeline channels --data data
  distributary pipeline channels --data data --dimension /lat --dimension /lon --bins 8 --by mass
  distributary pipeline channels --data data --space space.json
"""

Space = Annotated[
    Path | None,
    typer.Option(
        "--space",
        metavar="FILE",
        help='The content space: {"dimensions": [{"name": ..., "edges": [...]}, ...]}.',
        show_default="the attribute type in 64 buckets",
    ),
]
Dimensions = Annotated[
    list[str] | None,
    typer.Option(
        "--dimension",
        metavar="NAME",
        help="An attribute or a JSON Pointer that the space looks at; may be repeated.",
        show_default=False,
    ),
]
Bins = Annotated[int, typer.Option("--bins", metavar="N", help="Bins of every --dimension.")]
By = Annotated[
    str,
    typer.Option(
        "--by",
        metavar="width|mass",
        help="Divide numbers into bins equally wide, or with equally many publications.",
    ),
]


def channels(
    data: Data,
    output: Output = None,
    space: Space = None,
    dimension: Dimensions = None,
    bins: Bins = 16,
    by: By = "width",
    master: Master = None,
    remote: Remote = None,
    driver_memory: DriverMemory = "2g",
    as_json: AsJson = False,
    explain: Explain = False,
) -> None:
    """Sort publications and subscriptions into the cells of a content space.

    Reads publications and subscriptions; writes channels (the cells), rates_published (what
    each user publishes in each cell, in bytes per second from the first to the last
    publication) and interests (the cells that each user's subscriptions can touch).
    """
    from distributary.pipeline.jobs import channels as jobs

    with job(
        "channels",
        data=data,
        output=output,
        master=master,
        remote=remote,
        driver_memory=driver_memory,
    ) as started:
        chosen = jobs.space_for(
            started.source, file=space, dimensions=dimension or (), bins=bins, by=by
        )
        if explain:
            print_plans(jobs.frames(started.source, chosen))
            return
        report = jobs.channels(started.source, started.target, chosen)
    print_report(report, as_json=as_json)
