"""Writing wiring problems as a folder of Parquet tables; see `problem_tables`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from distributary.arrays import FloatArray
from distributary.errors import BadInput, quoted
from distributary.wiring.columns import arrow
from distributary.wiring.positions import Positions
from distributary.wiring.problem import WiringProblem
from distributary.wiring.tables import write_columns

__all__ = ["write_problem_tables"]

# From so many channels on a table of what is not zero is smaller than lists.
_LISTED_CHANNELS_MAX = 256
_TABLES = (
    "brokers",
    "users",
    "access_costs",
    "core_costs",
    "rates_published",
    "interests",
    "access_cost",
    "core_cost",
)


def write_problem_tables(
    problem: WiringProblem, folder: Path | str, *, positions: Positions | None = None
) -> None:
    """Write a problem as the tables that `read_problem_tables` reads back.

    The folder is made if it is not there; tables of the same names are replaced.
    """
    pa = arrow("writing Parquet tables")
    folder = Path(folder)
    _prepare(folder)
    capacities = pa.array(problem.capacities, mask=np.isinf(problem.capacities))
    at_brokers = None if positions is None else positions.brokers
    write_columns(
        folder / "brokers.parquet",
        {"broker": problem.brokers, "capacity": capacities, **_coordinates(at_brokers)},
    )
    columns: dict[str, Any] = {"user": problem.users}
    columns |= _coordinates(None if positions is None else positions.users)
    if problem.channel_count <= _LISTED_CHANNELS_MAX:
        columns["publishes"] = problem.publishes
        columns["subscribes"] = problem.subscribes.astype(np.int8)
    else:
        names = np.array(problem.users, dtype=object)
        write_columns(
            folder / "rates_published.parquet",
            {
                "user": names[problem.publisher],
                "cell": problem.publish_channel,
                "rate": problem.publish_rate,
            },
        )
        write_columns(
            folder / "interests.parquet",
            {"user": names[problem.reader], "cell": problem.interest_channel},
        )
    write_columns(folder / "users.parquet", columns)
    write_columns(
        folder / "access_costs.parquet", {"user": problem.users, "costs": problem.access_prices}
    )
    write_columns(
        folder / "core_costs.parquet", {"broker": problem.brokers, "costs": problem.core_prices}
    )


def _prepare(folder: Path) -> None:
    """Make the folder, and see to it that what is in it cannot be mistaken for this problem."""
    folder.mkdir(exist_ok=True)
    for name in _TABLES:
        if (folder / name).exists():
            raise BadInput(str(folder), f"has a table {quoted(name)} in files of its own already")
    for name in _TABLES:
        (folder / f"{name}.parquet").unlink(missing_ok=True)


def _coordinates(points: FloatArray | None) -> dict[str, FloatArray]:
    return {} if points is None else {"x": points[:, 0], "y": points[:, 1]}
