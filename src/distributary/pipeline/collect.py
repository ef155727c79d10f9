"""Tables that a job needs whole on the driver, to plan with or to send to every executor.

That is for tables of users, brokers and subscriptions. What grows with time, publications
above all, never comes here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from distributary.pipeline.parquet_folder import read_files
from distributary.pipeline.schemas import table_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from distributary.pipeline.store import Store

__all__ = ["collect"]

# Where a row stands, as Spark calls it.
_PLACE = ("_metadata.file_path", "_metadata.row_index")


def collect(store: Store, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Return a table, or some of its columns, in Arrow; raise `BadInput` as `Store.read` does.

    The files of a folder of this machine are read without Spark, in the order of their
    names, as `wiring.problem_tables` reads them: brokers have an order that matters. From
    elsewhere the rows come through the driver's Java, and are put into the same order.
    """
    wanted = list(columns or table_schema(name).column_names)
    if urlsplit(store.path(name)).scheme:
        found = store.read(name).select(*wanted, *_PLACE).toArrow()
        order = [(column.rsplit(".", 1)[1], "ascending") for column in _PLACE]
        return found.sort_by(order).select(wanted)
    store.check(name)
    return read_files(Path(store.path(name)), wanted)
