"""Tables as frames of pandas, Polars or Arrow, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from distributary.arguments import checked
from distributary.drawing.chart import Charts
from distributary.frames import frame_of_table
from distributary.pipeline.charts import table_charts
from distributary.pipeline.row_conditions import conditions
from distributary.pipeline.schemas import table_schema
from distributary.pipeline.store import Store

__all__ = ["plot_table", "read_table"]


@checked
def read_table(
    data: Path | str,
    table: str,
    *,
    where: Sequence[str] = (),
    limit: int | None = None,
    version: int | None = None,
    library: str = "pandas",
) -> Any:
    """Return a table of a folder, or some of its rows, as a frame.

    Parameters
    ----------
    data
        The folder of tables.
    table
        One of the tables in the guide.
    where
        Conditions that rows meet, as `distributary pipeline show` takes them: `"user=ann"`.
    limit
        How many rows at most.
    version
        The table as it was; the latest unless given.
    library
        "pandas", "polars" or "arrow".

    Raises
    ------
    BadInput
        When there is no such table, or a condition is not one.
    MissingPackage
        When the library is not installed; says how to install it.
    """
    met = conditions(table_schema(table), where)
    rows = Store(str(data)).read(table, where=met, version=version, limit=limit)
    return frame_of_table(rows, library)


@checked
def plot_table(
    data: Path | str, table: str, *, where: Sequence[str] = (), version: int | None = None
) -> Charts:
    """Return the charts of a table of a folder, or of some of its rows; notebooks show them.

    `write` puts them into a file, as `distributary pipeline plot` does. The other arguments are
    those of `read_table`.
    """
    met = conditions(table_schema(table), where)
    return table_charts(Store(str(data)), table, where=met, version=version)
