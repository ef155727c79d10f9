"""Everything that looks at history, or at everybody at once: jobs on Spark.

Transforms are functions from DataFrame to DataFrame, the same for batch and for streams;
jobs read tables, apply transforms and write tables. Rules are those of `filters`, `content`,
`placement`, `fidelity` and `wiring`: nothing here implements one anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributary.exports import on_demand

if TYPE_CHECKING:
    from distributary.pipeline.reading import plot_table, read_table
    from distributary.pipeline.store import Store

__all__ = ["Store", "plot_table", "read_table"]

__getattr__, __dir__ = on_demand(
    __name__,
    {"reading": ("plot_table", "read_table"), "store": ("Store",)},
)
