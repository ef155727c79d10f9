"""`distributary pipeline show`: rows of a table, without Spark."""

from __future__ import annotations

import csv
import json
import math
import sys
from datetime import date
from typing import Annotated, Any

import typer

from distributary.cli.output import print_aligned, write_document
from distributary.cli.pipeline.options import (
    Data,
    Since,
    StorageOption,
    Until,
    Version,
    Where,
    command,
    opened,
)
from distributary.errors import BadInput

__all__ = ["show"]

_WIDTH_MAX = 40


@command(
    "Show rows of a table.",
    "show plans --data market --where 'failure!=null'",
    "show deliveries --data market --where user=ann --where 'bytes>=1000' --csv",
    "show quarantine --data market --limit 5",
    "show users --data market --version 0",
    "show plans --data market --since 2026-01-05 --until 2026-01-06",
)
def show(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="The table to show.", show_default=False)
    ],
    data: Data,
    where: Where = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option(help="How many rows at most.", min=1)] = 20,
    version: Version = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    storage_option: StorageOption = None,
) -> None:
    """Show the first rows of a table that meet all conditions. Spark is not started."""
    if as_csv and as_json:
        raise BadInput("--csv", "cannot be combined with --json")
    from distributary.pipeline.days import parse_days
    from distributary.pipeline.row_conditions import conditions
    from distributary.pipeline.schemas import table_schema

    declared = table_schema(table)
    met = conditions(declared, where or ())
    # One more than is shown, to know whether there are more.
    days = parse_days(since, until)
    found = opened(data, storage_option).read(
        table, since=days.since, until=days.until, version=version, where=met, limit=limit + 1
    )
    names = found.column_names
    rows = [[_plain(value) for value in row.values()] for row in found.slice(0, limit).to_pylist()]
    if as_json:
        listed = [dict(zip(names, row, strict=True)) for row in rows]
        write_document({"table": table, "rows": listed}, None)
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([_text(value, "") for value in row] for row in rows)
    else:
        print_aligned([names, *([_cut(_text(value, "-")) for value in row] for row in rows)])
    if found.num_rows > limit:
        print(f"there are more; --limit {10 * limit} shows more of them", file=sys.stderr)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; maps come from Arrow as lists of pairs."""
    if isinstance(value, date):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list) and value and all(isinstance(item, tuple) for item in value):
        return dict(value)
    return value


def _text(value: Any, nothing: str) -> str:
    if value is None:
        return nothing
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    line = text if text.isprintable() else json.dumps(text)
    return line if len(line) <= _WIDTH_MAX else line[: _WIDTH_MAX - 3] + "..."
