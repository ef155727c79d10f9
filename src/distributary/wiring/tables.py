"""Parquet tables in a folder, as Spark writes them: every complaint names file and column.

A table `users` is a file `users.parquet`, or a folder `users` of files. Needs pyarrow, which
is imported when a function is called.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distributary.delta import open_table
from distributary.errors import BadInput, quoted
from distributary.files import drafted
from distributary.wiring.columns import ParquetColumn, arrow

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ParquetTable", "find_table", "write_columns"]

_FILES_MAX = 100_000
# So many numbers of a list column are in memory at a time beside the table they go to.
_BLOCK_NUMBERS = 4_000_000
_WRITTEN_NUMBERS = 2_000_000
_GROUP_BYTES_MAX = 256 * 2**20


@dataclass(frozen=True, eq=False)
class ParquetTable:
    """The files of one table.

    Files are in the order of their names, and the rows follow one another; columns are those that
    all files have.
    """

    name: str
    files: tuple[Path, ...]
    row_count: int
    columns: frozenset[str]

    def need(self, *columns: str) -> None:
        """Raise `BadInput` unless the table has a column of each of these names."""
        for column in columns:
            if column not in self.columns:
                raise BadInput(str(self.files[0]), f"has no column {quoted(column)}")

    def blocks(
        self, *columns: str, width: int = 1
    ) -> Iterator[tuple[int, tuple[ParquetColumn, ...]]]:
        """Yield the columns block by block, each with the number of its first row.

        A row has about `width` numbers: blocks are of so many rows that they stay small whatever
        the files are cut into.
        """
        self.need(*columns)
        parquet = arrow("reading Parquet").parquet
        first = 0
        for path in self.files:
            with _naming(path), parquet.ParquetFile(path) as file:
                for name in columns:
                    if file.schema_arrow.names.count(name) > 1:
                        raise BadInput(str(path), f"has two columns {quoted(name)}")
                row = 0
                rows = max(1, _BLOCK_NUMBERS // max(width, 1))
                for batch in _batches(file, list(columns), rows):
                    yield (
                        first + row,
                        tuple(
                            ParquetColumn(str(path), name, row, batch.column(name))
                            for name in columns
                        ),
                    )
                    row += batch.num_rows
                first += row


def _batches(file: Any, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield a file's rows, a few at a time.

    Groups of rows are read whole unless they are large: in pieces it takes much longer.
    """
    metadata = file.metadata
    sizes = [metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)]
    if max(sizes, default=0) > _GROUP_BYTES_MAX:
        yield from file.iter_batches(batch_size=rows, columns=columns)
        return
    for group in range(len(sizes)):
        yield from file.read_row_group(group, columns=columns).to_batches()


def find_table(folder: Path, *names: str) -> ParquetTable | None:
    """Return the table in `folder` that has one of the names, or None.

    Hidden files and those that begin with an underscore, such as Spark's marks of success,
    are no part of a table.
    """
    candidates = [folder / each for name in names for each in (f"{name}.parquet", name)]
    found = [path for path in candidates if path.exists()]
    if not found:
        return None
    if len(found) > 1:
        raise BadInput(str(folder), f"has both {quoted(found[0].name)} and {quoted(found[1].name)}")
    (path,) = found
    files = _files(path) if path.is_dir() else (path,)
    parquet = arrow("reading Parquet").parquet
    rows = 0
    columns: frozenset[str] | None = None
    for file in files:
        with _naming(file), parquet.ParquetFile(file) as opened:
            rows += opened.metadata.num_rows
            present = frozenset(opened.schema_arrow.names)
            columns = present if columns is None else columns & present
    assert columns is not None
    return ParquetTable(path.name.removesuffix(".parquet"), files, rows, columns)


def _files(folder: Path) -> tuple[Path, ...]:
    """Return the files of a table that is a folder: those that its log has, if there is one.

    Without a log, folders in it are read if they are named as Spark names parts of a table, as
    in `batch=7`.
    """
    if (folder / "_delta_log").is_dir():
        files = tuple(sorted(map(Path, _logged(folder))))
    else:
        files = tuple(path for path in _visible(folder) if path.suffix == ".parquet")
    if not files:
        raise BadInput(str(folder), "has no Parquet files in it")
    if len(files) > _FILES_MAX:
        raise BadInput(str(folder), f"has {len(files):,} files; at most {_FILES_MAX:,} are read")
    return files


def _logged(folder: Path) -> list[str]:
    table = open_table(str(folder))
    return [] if table is None else table.file_uris()


def _visible(folder: Path) -> Iterator[Path]:
    with _naming(folder):
        entries = sorted(path for path in folder.iterdir() if path.name[0] not in "._")
    for path in entries:
        if not path.is_dir():
            yield path
        elif "=" in path.name:
            yield from _visible(path)
        else:
            raise BadInput(str(path), "is a directory inside of a table, which is not read")


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn whatever is wrong with a file into a `BadInput` that names it."""
    pa = arrow("reading Parquet")
    try:
        yield
    except BadInput:
        raise
    except MemoryError:
        raise BadInput(str(path), "does not fit into memory") from None
    except (pa.ArrowException, OSError) as error:
        number = getattr(error, "errno", None)
        reason = os.strerror(number).lower() if number else "is not a sound Parquet file"
        raise BadInput(str(path), f"cannot be read: {reason}") from None


def write_columns(path: Path, columns: dict[str, Any]) -> None:
    """Write a table block by block, whole or not at all; one that is there is replaced.

    Columns are names, numbers, or tables of numbers that become lists.
    """
    pa = arrow("writing Parquet")
    count = len(next(iter(columns.values())))
    width = max(
        values.shape[1] if isinstance(values, np.ndarray) and values.ndim == 2 else 1
        for values in columns.values()
    )
    rows = max(1, _WRITTEN_NUMBERS // max(width, 1))

    def column(values: Any) -> Any:
        if isinstance(values, np.ndarray) and values.ndim == 2:
            starts = np.arange(len(values) + 1, dtype=np.int32) * np.int32(values.shape[1])
            return pa.ListArray.from_arrays(starts, pa.array(values.ravel()))
        return values if isinstance(values, pa.Array) else pa.array(values)

    def block(first: int) -> list[Any]:
        return [column(values[first : first + rows]) for values in columns.values()]

    schema = pa.schema([(name, array.type) for name, array in zip(columns, block(0), strict=True)])
    # Prices hardly repeat: a dictionary of them would be as large as they are.
    with (
        drafted(path) as draft,
        pa.parquet.ParquetWriter(draft, schema, use_dictionary=False) as writer,
    ):
        for first in range(0, count, rows):
            writer.write_batch(pa.record_batch(block(first), schema=schema))
