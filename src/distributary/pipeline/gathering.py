"""Tables that a job needs whole on the driver, to plan with or to send to every executor.

That is for tables of users, brokers and subscriptions. What grows with time, publications
above all, never comes here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from distributary.errors import BadInput
from distributary.pipeline.schemas import table

if TYPE_CHECKING:
    import pyarrow as pa

    from distributary.pipeline.store import Store

__all__ = ["gathered"]


def gathered(store: Store, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Return a table, or some of its columns, in Arrow; raise `BadInput` as `Store.read` does.

    The files of a folder of this machine are read without Spark, in the order of their
    names, as `wiring.problem_tables` reads them: brokers have an order that matters. From
    elsewhere the rows come through the driver's Java.
    """
    frame = store.read(name)
    wanted = list(columns or table(name).column_names)
    if urlsplit(store.path(name)).scheme:
        return frame.select(*wanted).toArrow()
    return _read(Path(store.path(name)), wanted)


def _read(folder: Path, columns: list[str]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = [folder] if folder.is_file() else sorted(folder.rglob("*.parquet"))
    parts = []
    for path in files:
        # What begins like this is hidden from Spark, and so from everybody.
        if any(part[0] in "._" for part in path.relative_to(folder).parts):
            continue
        try:
            with pq.ParquetFile(path) as file:
                parts.append(file.read(columns=columns).select(columns))
        except (pa.ArrowException, OSError, KeyError):
            raise BadInput(str(path), "is not Parquet, or only half of it") from None
    return pa.concat_tables(parts, promote_options="permissive")
