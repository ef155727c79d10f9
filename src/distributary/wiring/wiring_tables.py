"""Wirings as Parquet tables: `wiring` (user, broker) and `wiring_summary` (one row)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from distributary.errors import BadInput, quoted
from distributary.wiring.columns import arrow
from distributary.wiring.problem import WiringProblem
from distributary.wiring.tables import find_table, write_table
from distributary.wiring.wiring import Wiring
from distributary.wiring.wiring_file import Assignment, resolved, wiring_figures

__all__ = ["read_wiring_tables", "write_wiring_tables"]


def write_wiring_tables(
    problem: WiringProblem,
    wiring: Wiring,
    folder: Path | str,
    user_order: Sequence[str] | None = None,
) -> None:
    """Write a wiring as two tables; a broker per user, and the figures of the whole.

    Parameters
    ----------
    problem
        The problem that was solved.
    wiring
        The result.
    folder
        Where to; made if it is not there. It may be the folder of the problem.
    user_order
        The order of the rows; that of the problem unless given.
    """
    pa = arrow("writing Parquet tables")
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    for name in ("wiring", "wiring_summary"):
        if (folder / name).exists():
            raise BadInput(str(folder), f"has a table {quoted(name)} in files of its own already")
    users = pa.array(problem.users, pa.string())
    rows = np.arange(problem.user_count)
    if user_order is not None:
        order = pa.array(user_order, pa.string())
        rows = pa.compute.index_in(order, value_set=users).to_numpy(zero_copy_only=False)
    brokers = pa.array(problem.brokers, pa.string())
    names = pa.schema([("user", pa.string()), ("broker", pa.string())])

    def assignment() -> Iterator[list[Any]]:
        yield [users.take(pa.array(rows)), brokers.take(pa.array(wiring.broker_of[rows]))]

    write_table(folder / "wiring.parquet", names, assignment)
    figures = wiring_figures(problem, wiring)
    columns = {name: pa.array([value]) for name, value in figures.items()}
    kinds = pa.schema([(name, column.type) for name, column in columns.items()])

    def summary() -> Iterator[list[Any]]:
        yield list(columns.values())

    write_table(folder / "wiring_summary.parquet", kinds, summary)


def read_wiring_tables(folder: Path | str, problem: WiringProblem) -> Assignment:
    """Return the assignment in a folder with a table `wiring`, as `read_wiring` does."""
    table = find_table(Path(folder), "wiring")
    if table is None:
        raise BadInput(str(folder), "has no table 'wiring'")
    broker_of: dict[str, str] = {}
    for _, (user, broker) in table.blocks("user", "broker"):
        for row, (name, home) in enumerate(zip(user.names(), broker.names(), strict=True)):
            if name in broker_of:
                raise user.fault(row, f"user {quoted(name)} is given twice")
            broker_of[name] = home
    try:
        return resolved(broker_of, problem)
    except BadInput as error:
        raise error.within(str(table.files[0])) from None
