"""`distributary pipeline vacuum`: files that no table has any more."""

from __future__ import annotations

from typing import Annotated

import typer

from distributary.cli.output import write_document
from distributary.cli.pipeline.durations import microseconds
from distributary.cli.pipeline.options import Tables, command
from distributary.errors import BadInput

__all__ = ["vacuum"]

_HOUR = 3_600_000_000


@command(
    "Remove files of old versions.",
    "vacuum --data market",
    "vacuum --data market --older-than 30d --dry-run",
)
def vacuum(
    tables: Tables,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="Keep younger files: 7d or 12h.")
    ] = "7d",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would go, and remove nothing.")
    ] = False,
) -> None:
    """Remove the files that no version of the last days has, and what killed runs have left.

    Versions older than that can no longer be read. Spark is not started.
    """
    hours = microseconds("--older-than", older_than) // _HOUR
    if hours < 1:
        raise BadInput("--older-than", "must be at least 1h, or files of running jobs would go")
    from distributary.pipeline.schemas import TABLES

    store = tables.store()
    there = [name for name in TABLES if store.has(name)]
    removed = {name: len(store.vacuum(name, hours=hours, dry_run=dry_run)) for name in there}
    if tables.as_json:
        write_document({"files": sum(removed.values()), "tables": removed}, None)
        return
    for name, count in removed.items():
        print(f"{name:<16}{count:>10,} files")
