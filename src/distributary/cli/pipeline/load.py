"""`distributary pipeline load`: a folder of files into all tables at once."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from distributary.cli.pipeline.ingest import AnyPublisher, Publisher
from distributary.cli.pipeline.options import JobOptions, command

__all__ = ["load"]


@command(
    "Read a folder into all its tables.",
    "load exports --data market",
    "load exports --publisher clientid --data market",
    output=False,
)
def load(
    folder: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER",
            help="Files that are called after tables: users.csv, quotes-monday.csv.gz, or "
            "anything in a folder publications.",
            show_default=False,
        ),
    ],
    job: JobOptions,
    publisher: Publisher = None,
    any_publisher: AnyPublisher = False,
) -> None:
    """Read every file of a folder into the table that it is called after.

    Each table is read as `pipeline ingest` reads it, users first, and replaced. A file that
    is called after no table is refused before anything is read.
    """
    from distributary.pipeline.jobs import load as jobs

    # Before Spark is started, which takes seconds.
    jobs.check(folder, publisher=publisher, any_publisher=any_publisher)
    job.run(
        "load",
        lambda running: jobs.load(
            running.target,
            folder,
            publisher=publisher,
            any_publisher=any_publisher,
            warn=lambda text: print(f"warning: {text}", file=sys.stderr),
        ),
        frames=lambda running: jobs.frames(
            running.target, folder, publisher=publisher, any_publisher=any_publisher
        ),
    )
