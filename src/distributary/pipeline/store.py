"""The data folder: a subfolder of Parquet files per table, replaced whole or not at all."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from distributary.arguments import checked
from distributary.errors import BadInput, quoted
from distributary.pipeline.counting import RowCount
from distributary.pipeline.folder import Folder, open_folder
from distributary.pipeline.parquet_folder import row_count, stored_types
from distributary.pipeline.schemas import TableSchema, table_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

__all__ = ["BATCH", "Store"]

BATCH = "batch"
"""The column by which streams partition what they add to a table."""

_PREVIOUS = ".previous"
_VERSION = "_version"


class Store:
    """The tables in one folder.

    The location is a path, or a URL of a file system that Spark knows.
    """

    @checked
    def __init__(self, spark: SparkSession, location: str) -> None:
        self.spark = spark
        self.folder: Folder = open_folder(spark, location)

    def has(self, name: str) -> bool:
        """Whether there is a table of this name."""
        self._recover(name)
        return self.folder.exists(name)

    def path(self, name: str) -> str:
        """Return where the table is, for Spark."""
        return self.folder.path(name)

    def read(self, name: str) -> DataFrame:
        """Return a table with exactly its declared columns, or raise `BadInput`.

        Columns may be stored in any order and among others. What a stream added in
        batches is part of the table.
        """
        declared = table_schema(name)
        place = self.folder.path(name)
        if self._is_as_declared(declared):
            frame = self.spark.read.schema(declared.struct_type).parquet(place)
            return frame.select(*declared.column_names)
        try:
            frame = self.spark.read.parquet(place)
            found = {field.name: field.dataType for field in frame.schema.fields}
        except Exception as error:
            raise BadInput(place, _unreadable(error)) from None
        check_columns(place, declared, found)
        return frame.select(*declared.column_names)

    def check(self, name: str) -> None:
        """Raise `BadInput` where `read` does."""
        if not self._is_as_declared(table_schema(name)):
            self.read(name)

    def row_count(self, name: str) -> int:
        """Return how many rows a table has, as its files say; raise `BadInput` as `read` does."""
        if urlsplit(self.path(name)).scheme:
            return self.read(name).count()
        self.check(name)
        return row_count(Path(self.path(name)))

    def _is_as_declared(self, declared: TableSchema) -> bool:
        """Whether the columns of a table are right; where that is not certain, False.

        Raises `BadInput` for a table that is not there, or has other columns by design.
        """
        place = self.folder.path(declared.name)
        if not self.has(declared.name):
            raise BadInput(
                place,
                "there is no such table",
                hint=f"distributary pipeline ingest {declared.name} FILES... makes it from files",
            )
        self._check_version(declared)
        if urlsplit(place).scheme:
            return False
        try:
            check_columns(place, declared, stored_types(Path(place)))
        except BadInput:
            return False
        return True

    def write(self, name: str, frame: DataFrame, *, in_batches: bool = False) -> None:
        """Put a frame in the place of a table.

        It is written beside the old table and then takes its place: a job that is killed
        leaves the old one, and what it had written is removed by the next. Of two jobs that
        write a table at once, the second is refused: `TableBusy`.

        Rows `in_batches` have a column `batch`, by which they are laid out as a stream laid
        them out.
        """
        self.remove_drafts(name)
        self.publish(name, self.draft(name, frame, in_batches=in_batches))

    def write_counted(self, name: str, frame: DataFrame) -> int:
        """Put a frame in the place of a table, and return how many rows it had."""
        count = RowCount()
        self.write(name, count.of(frame))
        return count.rows

    def draft(self, name: str, frame: DataFrame, *, in_batches: bool = False) -> str:
        """Write a frame beside a table and return what `read_draft` and `publish` call it."""
        declared = table_schema(name)
        draft = f".{name}.{uuid.uuid4().hex}"
        try:
            columns = declared.column_names
            writer = frame.select(*columns, *([BATCH] if in_batches else [])).write
            if in_batches:
                writer = writer.partitionBy(BATCH)
            writer.mode("overwrite").parquet(self.folder.path(draft))
            self.folder.write_text(f"{draft}/{_VERSION}", f"{declared.version}\n")
        except BaseException:
            self.folder.remove(draft)
            self.folder.unlock(name)
            raise
        return draft

    def read_draft(self, name: str, draft: str) -> DataFrame:
        """Return the rows of a draft of a table."""
        declared = table_schema(name)
        frame = self.spark.read.schema(declared.struct_type).parquet(self.folder.path(draft))
        return frame.select(*declared.column_names)

    def publish(self, name: str, draft: str) -> None:
        """Put a draft in the place of its table."""
        try:
            self._recover(name)
            self._swap(name, draft)
        except BaseException:
            self.folder.remove(draft)
            raise
        finally:
            self.folder.unlock(name)

    def remove_drafts(self, name: str) -> None:
        """Remove what earlier jobs left unfinished beside a table, which is then this job's.

        Others cannot write it until this job publishes a draft, fails to make one, or ends.
        """
        self.folder.lock(name)
        self._recover(name)
        self.folder.remove_drafts(f".{name}.")

    def write_batch(self, name: str, frame: DataFrame, batch: int) -> None:
        """Put a stream's batch in its place in a table; the same batch again replaces it."""
        declared = table_schema(name)
        target = f"{name}/{BATCH}={batch}"
        draft = f".{name}.{BATCH}={batch}"
        self.folder.remove(draft)
        frame.select(*declared.column_names).write.mode("overwrite").parquet(
            self.folder.path(draft)
        )
        self.folder.make(name)
        self.folder.write_text(f"{name}/{_VERSION}", f"{declared.version}\n")
        self.folder.remove(target)
        self.folder.rename(draft, target)

    def read_batch(self, name: str, batch: int) -> DataFrame:
        """Return the rows that a batch of a stream has put into a table."""
        declared = table_schema(name)
        place = self.folder.path(f"{name}/{BATCH}={batch}")
        frame = self.spark.read.schema(declared.struct_type).parquet(place)
        return frame.select(*declared.column_names)

    def has_batches(self, name: str) -> bool:
        """Whether a stream has put batches into a table."""
        inside = open_folder(self.spark, self.path(name)).names()
        return any(item.startswith(f"{BATCH}=") for item in inside)

    def _swap(self, name: str, draft: str) -> None:
        previous = f".{name}{_PREVIOUS}"
        self.folder.remove(previous)
        if self.folder.exists(name):
            self.folder.rename(name, previous)
        self.folder.rename(draft, name)
        self.folder.remove(previous)

    def _recover(self, name: str) -> None:
        """Bring back the old table if a job died between taking it away and replacing it."""
        previous = f".{name}{_PREVIOUS}"
        if self.folder.exists(previous) and not self.folder.exists(name):
            self.folder.rename(previous, name)

    def _check_version(self, declared: TableSchema) -> None:
        text = self.folder.read_text(f"{declared.name}/{_VERSION}")
        # Files that somebody else put there have no version; their columns are checked.
        if text is not None and text.strip() != str(declared.version):
            raise BadInput(
                self.folder.path(declared.name),
                f"has version {quoted(text.strip())} of its columns, and this is version "
                f"{declared.version}",
                hint="run the job that makes it, or ingest it, again",
            )


def check_columns(place: str, declared: TableSchema, found: dict[str, DataType]) -> None:
    """Raise `BadInput` naming the first column that is missing or of another type."""
    for field in declared.struct_type.fields:
        if field.name not in found:
            raise BadInput(
                place,
                f"column {quoted(field.name)} is missing",
                hint=f"{declared.name} has the columns {', '.join(declared.column_names)}",
            )
        kind = found[field.name]
        if kind.simpleString() != field.dataType.simpleString():
            raise BadInput(
                place,
                f"column {quoted(field.name)} is {kind.simpleString()}, and must be "
                f"{field.dataType.simpleString()}",
            )


def _unreadable(error: Exception) -> str:
    text = str(error)
    for sign, problem in (
        ("UNABLE_TO_INFER_SCHEMA", "holds no Parquet files"),
        ("not a Parquet file", "holds a file that is not Parquet, or only half of one"),
        ("CANNOT_READ_FILE_FOOTER", "holds a file that is not Parquet, or only half of one"),
    ):
        if sign in text:
            return problem
    first: Sequence[str] = text.strip().splitlines() or [type(error).__name__]
    return f"cannot be read: {first[0]}"
