"""`distributary pipeline compact`: many small files into fewer."""

from __future__ import annotations

from typing import Annotated

import typer

from distributary.cli.output import write_document
from distributary.cli.pipeline.options import (
    AsJson,
    Data,
    StorageOption,
    app,
    check_there,
    examples,
    opened,
)

__all__ = ["compact"]


@app.command(
    "compact",
    short_help="Put small files together.",
    epilog=examples("compact --data market", "compact --data market --table quotes --json"),
)
def compact(
    data: Data,
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this table; may be repeated.", show_default=False),
    ] = None,
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Put the small files of tables together, those of a day for themselves.

    That makes a version with the same rows: nothing is stale after it. Spark is not started.
    """
    from distributary.pipeline.schemas import TABLES, table_schema

    check_there(data)
    store = opened(data, storage_option)
    chosen = [table_schema(name).name for name in table or ()] or [*TABLES]
    done = {name: store.compact(name) for name in chosen if store.has(name)}
    if as_json:
        found: dict[str, object] = {
            name: {"removed": gone, "added": new} for name, (gone, new) in done.items()
        }
        write_document({"tables": found}, None)
        return
    for name, (gone, new) in done.items():
        print(f"{name:<16}{gone:>10,} files became {new:,}")
