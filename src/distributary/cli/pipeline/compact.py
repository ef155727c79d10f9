"""`distributary pipeline compact`: many small files into fewer."""

from __future__ import annotations

from typing import Annotated

import typer

from distributary.cli.output import write_document
from distributary.cli.pipeline.options import Tables, command

__all__ = ["compact"]


@command(
    "Put small files together.",
    "compact --data market",
    "compact --data market --table quotes --json",
)
def compact(
    tables: Tables,
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this table; may be repeated.", show_default=False),
    ] = None,
) -> None:
    """Put the small files of tables together, those of a day for themselves.

    That makes a version with the same rows: nothing is stale after it. Spark is not started.
    """
    from distributary.pipeline.schemas import TABLES, table_schema

    store = tables.store()
    chosen = [table_schema(name).name for name in table or ()] or [*TABLES]
    done = {name: store.compact(name) for name in chosen if store.has(name)}
    if tables.as_json:
        found: dict[str, object] = {
            name: {"removed": gone, "added": new} for name, (gone, new) in done.items()
        }
        write_document({"tables": found}, None)
        return
    for name, (gone, new) in done.items():
        print(f"{name:<16}{gone:>10,} files became {new:,}")
