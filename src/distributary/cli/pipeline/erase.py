"""`distributary pipeline erase`: one user's rows out of all tables."""

from __future__ import annotations

from typing import Annotated

import typer

from distributary.cli.pipeline.options import JobOptions, check_there, command

__all__ = ["erase"]


@command(
    "Remove one user's rows.",
    "erase ann --data market --dry-run",
    "erase ann --data market",
    output=False,
)
def erase(
    user: Annotated[str, typer.Argument(metavar="USER", help="Whose rows.", show_default=False)],
    job: JobOptions,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would go, and remove nothing.")
    ] = False,
) -> None:
    """Remove all rows about a user: what the user is, subscribes to, publishes and receives.

    Deliveries and plans of what the user has published go, too, and lines in quarantine that have
    the name in them. Older versions of the tables keep the rows until vacuum removes their files.
    """
    check_there(job.data)
    from distributary.pipeline.jobs import erase as jobs

    job.run(
        "erase",
        lambda running: jobs.erase(running.target, user, dry_run=dry_run),
        frames=lambda running: jobs.frames(running.target, user),
    )
