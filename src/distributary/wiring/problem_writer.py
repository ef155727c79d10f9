"""Writing wiring problems as a folder of Parquet tables; see `problem_tables`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from distributary.arrays import FloatArray
from distributary.errors import BadInput, quoted
from distributary.wiring.columns import arrow
from distributary.wiring.positions import Positions
from distributary.wiring.problem import WiringProblem
from distributary.wiring.tables import write_table

__all__ = ["write_problem_tables"]

# From so many channels on a table of what is not zero is smaller than lists.
_LISTED_CHANNELS_MAX = 256
_BLOCK_NUMBERS = 2_000_000
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

    Parameters
    ----------
    problem
        The problem.
    folder
        Where to; made if it is not there. Tables of the same names are replaced.
    positions
        Where its users and brokers are, if that is to be in the tables.
    """
    pa = arrow("writing Parquet tables")
    folder = Path(folder)
    _prepare(folder)
    capacities = pa.array(problem.capacities, mask=np.isinf(problem.capacities))
    at_brokers = None if positions is None else positions.brokers
    _write(
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
        _write(
            folder / "rates_published.parquet",
            {
                "user": names[problem.publisher],
                "cell": problem.publish_channel,
                "rate": problem.publish_rate,
            },
        )
        _write(
            folder / "interests.parquet",
            {"user": names[problem.reader], "cell": problem.interest_channel},
        )
    _write(folder / "users.parquet", columns)
    _write(folder / "access_costs.parquet", {"user": problem.users, "costs": problem.access_prices})
    _write(folder / "core_costs.parquet", {"broker": problem.brokers, "costs": problem.core_prices})


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


def _write(path: Path, columns: dict[str, Any]) -> None:
    """Write columns: names, numbers, or tables of numbers that become lists."""
    pa = arrow("writing Parquet tables")
    count = len(next(iter(columns.values())))
    width = max(
        values.shape[1] if isinstance(values, np.ndarray) and values.ndim == 2 else 1
        for values in columns.values()
    )
    rows = max(1, _BLOCK_NUMBERS // max(width, 1))

    def column(values: Any) -> Any:
        if isinstance(values, np.ndarray) and values.ndim == 2:
            starts = np.arange(len(values) + 1, dtype=np.int32) * np.int32(values.shape[1])
            return pa.ListArray.from_arrays(starts, pa.array(values.ravel()))
        return values if isinstance(values, pa.Array) else pa.array(values)

    def block(first: int) -> list[Any]:
        return [column(values[first : first + rows]) for values in columns.values()]

    def blocks() -> Iterator[list[Any]]:
        for first in range(0, count, rows):
            yield block(first)

    kinds = [array.type for array in block(0)]
    write_table(path, pa.schema(list(zip(columns, kinds, strict=True))), blocks)
