"""`distributary pipeline convert`: older tables into what tables are now."""

from __future__ import annotations

from typing import Annotated

import typer

from distributary.cli.pipeline.options import JobOptions, check_there, command

__all__ = ["convert"]


@command(
    "Bring older tables up to date.",
    "convert --data market",
    "convert --data market --table deliveries",
    output=False,
)
def convert(
    job: JobOptions,
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this table; may be repeated.", show_default=False),
    ] = None,
) -> None:
    """Make Delta tables by day of folders of Parquet files, and of tables with older columns.

    Tables that are as they should be are left alone. The figures say what was done to which.
    """
    check_there(job.data)
    from distributary.pipeline.jobs import convert as jobs

    job.run(
        "convert",
        lambda running: jobs.convert(running.target, table),
        frames=lambda running: jobs.frames(running.target, table),
    )
