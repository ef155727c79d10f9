"""Wirings as Parquet tables: `wiring` (user, broker) and `wiring_summary` (one row)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from distributary.errors import BadInput, quoted
from distributary.wiring.columns import arrow
from distributary.wiring.problem import WiringProblem
from distributary.wiring.tables import find_table, write_columns
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

    The folder is made if it is not there, and may be that of the problem. Rows are in `user_order`;
    that of the problem unless given.
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
    write_columns(
        folder / "wiring.parquet",
        {
            "user": users.take(pa.array(rows)),
            "broker": brokers.take(pa.array(wiring.broker_of[rows])),
        },
    )
    figures = wiring_figures(problem, wiring)
    write_columns(
        folder / "wiring_summary.parquet", {name: [value] for name, value in figures.items()}
    )


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
