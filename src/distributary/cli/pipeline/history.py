"""`distributary pipeline history`: which runs have made what, and what became of them."""

from __future__ import annotations

from typing import Annotated

import typer

from distributary.cli.output import write_documents
from distributary.cli.pipeline.options import Tables, command

__all__ = ["history"]


@command(
    "List runs of jobs.",
    "history --data market",
    "history deliveries --data market --json",
)
def history(
    tables: Tables,
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="[TABLE]", help="Only what has made versions of it.", show_default=False
        ),
    ] = None,
) -> None:
    """List the runs of jobs on a folder: what they have read, made and done, in their order.

    Of a table, all versions are listed that its log still has, also those that others have made or
    a run that was killed. Spark is not started.
    """
    from distributary.pipeline.days import shown_days
    from distributary.pipeline.history import history_of

    runs = history_of(tables.store(), table)
    if tables.as_json:
        write_documents([item.document() for item in runs])
        return
    for item in runs:
        made = ", ".join(f"{name} {number}" for name, number in item.outputs.items()) or "nothing"
        which = "" if item.days is None else f"  {shown_days(item.days)}"
        print(
            f"{item.began:%Y-%m-%d %H:%M:%S}  {item.job:<10}{item.seconds:>9.1f} s  {made}{which}"
        )
        if item.outcome != "done":
            print(f"{'':<21}{item.outcome}")
