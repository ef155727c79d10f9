"""The Parquet files of a table in a folder of this machine, looked at without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from distributary.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql.types import DataType

T = TypeVar("T")

__all__ = ["data_files", "read_files", "row_count", "stored_types"]


def data_files(folder: Path) -> list[Path]:
    """Return the files of a table, in the order of their names."""
    if folder.is_file():
        return [folder]
    # What begins like this is hidden from Spark, and so from everybody.
    return sorted(
        path
        for path in folder.rglob("*.parquet")
        if not any(part[0] in "._" for part in path.relative_to(folder).parts)
    )


def read_files(folder: Path, columns: list[str]) -> pa.Table:
    """Return some columns of a table, in the order of its files, or raise `BadInput`."""
    import pyarrow as pa

    parts = _of_each(folder, lambda file: file.read(columns=columns).select(columns))
    return pa.concat_tables(parts, promote_options="permissive")


def row_count(folder: Path) -> int:
    """Return how many rows a table has, as its files say, or raise `BadInput`."""
    return sum(_of_each(folder, lambda file: int(file.metadata.num_rows)))


def _of_each(folder: Path, take: Callable[[pq.ParquetFile], T]) -> list[T]:
    """Return something of each file of a table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = []
    for path in data_files(folder):
        try:
            with pq.ParquetFile(path) as file:
                found.append(take(file))
        except (pa.ArrowException, OSError, KeyError):
            raise BadInput(str(path), "is not Parquet, or only half of it") from None
    return found


def stored_types(folder: Path) -> dict[str, DataType]:
    """Return the types of a table's columns as Spark would find them in the first file.

    Empty where it would find others than Arrow does, or nothing. Spark takes a job to find
    them, which is a tenth of a second.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_schema

    first = next(iter(data_files(folder)), None)
    if first is None:
        return {}
    try:
        schema = pq.read_schema(first)
        if any(pa.types.is_timestamp(item) and item.unit == "ns" for item in schema.types):
            return {}
        found = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    except (pa.ArrowException, OSError, PySparkException):
        return {}
    return {field.name: field.dataType for field in found.fields}
