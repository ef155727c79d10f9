"""Where versions of tables came from: the runs on record, and what only the log knows of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from distributary.errors import BadInput
from distributary.pipeline.days import in_order, read_day_list
from distributary.pipeline.runs import Run, runs_in
from distributary.pipeline.schemas import table_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from distributary.pipeline.store import Store

__all__ = ["NOT_ON_RECORD", "history_of"]

NOT_ON_RECORD = "not on record: the run was killed, or still runs, or somebody else has written"
"""The outcome of what is in the log of a table and in no row of `runs`."""


def history_of(store: Store, table: str | None = None) -> list[Run]:
    """Return the runs on a folder, or those that have made versions of a table, in their order.

    Of a table, whatever else has made versions is among them.
    """
    runs = runs_in(store)
    if table is None:
        return runs
    table_schema(table)
    if not store.has(table):
        raise BadInput(store.path(table), "there is no such table")
    found = [run for run in runs if table in run.outputs]
    known = {run.run for run in found}
    found += [
        _of_log(table, note) for note in store.versions(table) if note.get("run") not in known
    ]
    return sorted(found, key=lambda run: (run.began, run.outputs[table]))


def _of_log(table: str, note: Mapping[str, Any]) -> Run:
    days = read_day_list(note["days"]) if "days" in note and "run" in note else None
    return Run(
        run=str(note.get("run", "")),
        job=str(note.get("job", note.get("operation", "?"))),
        code="",
        source=None,
        began=datetime.fromtimestamp(note["timestamp"] / 1000, UTC),
        seconds=0.0,
        since=None,
        until=None,
        days=None if days is None else in_order(days),
        options="{}",
        inputs={},
        outputs={table: int(note["version"])},
        rows_in={},
        rows_out={},
        outcome=NOT_ON_RECORD,
    )
