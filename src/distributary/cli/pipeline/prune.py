"""`distributary pipeline prune`: old rows out of the tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from distributary.cli.pipeline.durations import microseconds
from distributary.cli.pipeline.options import JobOptions, check_there, command
from distributary.content.timestamps import parse_timestamp
from distributary.errors import BadInput, quoted

__all__ = ["prune"]


@command(
    "Remove old rows.",
    "prune --data market --keep 30d",
    "prune --data market --before 2026-01-31T00:00:00Z --dry-run",
    "prune --data market --keep 12h --table quotes",
    output=False,
)
def prune(
    job: JobOptions,
    before: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Remove rows of an earlier time, as in 2026-01-31T12:00:00Z.",
            show_default=False,
        ),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="Remove rows that are older than this: 30d, 12h or 90m.",
            show_default=False,
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this table; may be repeated.", show_default=False),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would go, and remove nothing.")
    ] = False,
) -> None:
    """Remove old publications, quotes and decisions, and what belongs to them.

    Deliveries and plans go with their publications. Rows without a time stay. Stop the
    streams that write to the folder first.
    """
    limit = _limit(before, keep)
    check_there(job.data)
    from distributary.pipeline.jobs import prune as jobs

    job.run(
        "prune",
        lambda running: jobs.prune(running.target, before=limit, tables=table, dry_run=dry_run),
        frames=lambda running: jobs.frames(running.target, before=limit, tables=table),
    )


def _limit(before: str | None, keep: str | None) -> datetime:
    if (before is None) == (keep is None):
        raise BadInput("--before", "or --keep must be given, and not both")
    if before is not None:
        return datetime.fromisoformat(parse_timestamp("--before", before))
    age = microseconds("--keep", str(keep))
    try:
        return datetime.now(UTC) - timedelta(microseconds=age)
    except OverflowError:
        raise BadInput("--keep", f"{quoted(keep)} goes back too far") from None
