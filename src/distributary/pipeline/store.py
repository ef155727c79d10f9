"""The data folder: a Delta table per subfolder, each with its versions.

A run writes files into a folder of its own in the table's, and then commits them: until then
nobody sees them, and whoever reads an earlier version goes on reading that. What a killed run
has written is in no version.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from distributary.arguments import checked
from distributary.errors import BadInput, PipelineFailed, quoted
from distributary.pipeline.arrow_types import type_name
from distributary.pipeline.counting import RowCount
from distributary.pipeline.folder import Folder, open_folder
from distributary.pipeline.schemas import TableSchema, table_schema
from distributary.pipeline.table_files import DAY, RUN, DataFile, day_folder, draft_files
from distributary.pipeline.table_log import Draft, TableLog, TableVersion

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Store"]


class Store:
    """The tables in one folder.

    The location is a path, or a URL of a file system that Spark and delta-rs know. Reading
    into Arrow needs no Spark.
    """

    @checked
    def __init__(
        self,
        location: str,
        spark: SparkSession | None = None,
        *,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        self._spark = spark
        self._options = storage_options
        self.folder: Folder = open_folder(spark, location)
        self.run = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
        self.job = "a job"
        # What this run has read, or has not found: it must be as it was when it is replaced.
        self._read: dict[str, TableVersion | None] = {}

    def begin(self, job: str) -> None:
        """Note which job works here from now on, and that it has not read anything yet."""
        self.job = job
        self._read.clear()

    @property
    def spark(self) -> SparkSession:
        """The session."""
        assert self._spark is not None, "this needs Spark, and the store was opened without"
        return self._spark

    def has(self, name: str) -> bool:
        """Whether there is a table of this name."""
        there = self._log(name).exists()
        if not there:
            self._read.setdefault(name, None)
        return there

    def path(self, name: str) -> str:
        """Return where the table is."""
        return self.folder.path(name)

    def frame(
        self, name: str, *, since: date | None = None, until: date | None = None
    ) -> DataFrame:
        """Return a table with exactly its declared columns, or raise `BadInput`.

        Columns may be stored in any order and among others. With `since` or `until`, rows of
        the days from the one until before the other, and no rows without a day.
        """
        declared, found = self._found(name)
        files = [item for item in found.files if is_within(item.day, since, until)]
        return self._of_files(declared, files)

    def read(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        *,
        since: date | None = None,
        until: date | None = None,
        version: int | None = None,
        where: Any = None,
        limit: int | None = None,
    ) -> pa.Table:
        """Return a table, or some of its columns, in Arrow; raise `BadInput` as `frame` does.

        Rows are in the order of the files' names: brokers have an order that matters. No Spark
        takes part. `where` is an expression of Arrow that rows have to meet, and `limit` how
        many are read at most; files that cannot have such rows are not opened.
        """
        import pyarrow as pa

        declared, found = self._found(name, version)
        rows = self._data_set(declared, found, since=since, until=until, where=where)
        scanner = rows.scanner(columns=list(columns or declared.column_names), filter=where)
        try:
            return scanner.to_table() if limit is None else scanner.head(limit)
        except (pa.ArrowException, OSError) as error:
            raise BadInput(self.path(name), _unreadable(error)) from None

    def check(self, name: str) -> None:
        """Raise `BadInput` where `frame` does."""
        self._found(name)

    def version(self, name: str) -> int | None:
        """Return the number of a table's version; None when there is no such table."""
        found = self._log(name).latest()
        return None if found is None else found.number

    def row_count(self, name: str) -> int:
        """Return how many rows a table has, as its files say; raise `BadInput` as `frame` does."""
        declared, found = self._found(name)
        rows = found.rows()
        return int(self._data_set(declared, found).count_rows()) if rows is None else rows

    def write(
        self,
        name: str,
        rows: DataFrame | pa.Table,
        *,
        days: Collection[date | None] | None = None,
    ) -> int:
        """Put rows in the place of a table, or of some of its days; return how many there are.

        A run that is killed leaves the table as it was. Of two that replace the same, one is
        refused: `TableBusy`.
        """
        draft = self.draft(name, rows)
        self.publish(draft, days=days)
        return draft.rows

    def draft(self, name: str, rows: DataFrame | pa.Table) -> Draft:
        """Write rows where nobody sees them yet; `read_draft` and `publish` take the result."""
        declared = table_schema(name)
        seen = self._read[name] if name in self._read else self._log(name).latest()
        folder = f"{RUN}{self.run}-{secrets.token_hex(4)}"
        place = f"{self.path(name)}/{folder}"
        try:
            counted = self._written(declared, rows, place)
            files = tuple(draft_files(self.path(name), folder, self._spark))
        except BaseException:
            self.folder.remove(f"{name}/{folder}")
            raise
        draft = Draft(name, folder, seen, files)
        if counted is not None and draft.rows != counted:
            raise PipelineFailed(
                "writing",
                self.path(name),
                f"{counted:,} rows were written, and the files that are seen from here have "
                f"{draft.rows:,}; do all machines have the same folder there?",
            )
        return draft

    def read_draft(self, draft: Draft) -> DataFrame:
        """Return the rows of a draft."""
        return self._of_files(table_schema(draft.table), draft.files)

    def publish(
        self,
        draft: Draft,
        *,
        days: Collection[date | None] | None = None,
        append: bool = False,
        batch: tuple[str, int] | None = None,
        stream: str | None = None,
    ) -> None:
        """Put a draft in the place of its table, or of some of its days; or add it.

        `batch` is the id of a stream and the number of its batch, which is committed once
        however often it is done. `stream` is the id of one that goes on writing the table.
        """
        name = draft.table
        if batch is not None and self._log(name).batch(batch[0]) >= batch[1]:
            return
        note: dict[str, object] = {"run": self.run, "job": self.job}
        if batch is not None or stream is not None:
            note["stream"] = stream if batch is None else batch[0]
        replaced = () if append else days
        declared = table_schema(name)
        strange = {item.day for item in draft.files} - set(days) if days is not None else set()
        assert not strange, f"rows of {strange} are not of the days that are replaced"
        self._read.pop(name, None)
        try:
            self._log(name).commit(
                declared, draft.seen, draft.files, replaced=replaced, note=note, batch=batch
            )
        except BaseException:
            self.discard(draft)
            raise

    def discard(self, draft: Draft) -> None:
        """Remove what was written."""
        self.folder.remove(f"{draft.table}/{draft.folder}")

    def vacuum(self, name: str, *, hours: int, dry_run: bool = False) -> list[str]:
        """Remove files that no version of the last hours has; return their names.

        What a run is still writing is younger, unless it runs for longer.
        """
        return self._log(name).vacuum(hours=hours, dry_run=dry_run)

    def stream_of(self, name: str) -> str | None:
        """Return the id of the stream that has written a table last; None if none has."""
        stream = self._log(name).note().get("stream")
        return None if stream is None else str(stream)

    def _log(self, name: str) -> TableLog:
        return TableLog(self.path(name), self._options)

    def _found(self, name: str, version: int | None = None) -> tuple[TableSchema, TableVersion]:
        """Return a table as it is declared and as it is, or raise `BadInput` where they differ."""
        declared = table_schema(name)
        place = self.path(name)
        found = self._log(name).latest(version)
        if found is None:
            raise BadInput(
                place,
                "there is no such table",
                hint=f"distributary pipeline ingest {name} FILES... makes it from files",
            )
        if version is None:
            self._read.setdefault(name, found)
        _check_columns(place, declared, found)
        return declared, found

    def _written(self, declared: TableSchema, rows: DataFrame | pa.Table, place: str) -> int | None:
        """Write rows into a folder, by day if the table is; return how many, if it was counted."""
        import pyarrow as pa

        names = list(declared.column_names)
        if isinstance(rows, pa.Table):
            _write_arrow(declared, rows, Path(place))
            return int(rows.num_rows)
        # On one machine all see the same files, and counting many rows on their way takes long.
        count = None if _is_one_machine(self.spark) else RowCount()
        frame = _with_day(rows, declared) if declared.by_day else rows.select(*names)
        writer = (frame if count is None else count.of(frame)).write
        if declared.by_day:
            writer = writer.partitionBy(DAY)
        writer.parquet(place)
        return None if count is None else count.rows

    def _of_files(self, declared: TableSchema, files: Sequence[DataFile]) -> DataFrame:
        if not files:
            empty: DataFrame = self.spark.createDataFrame([], declared.struct_type)
            return empty
        place = self.path(declared.name)
        paths = [f"{place}/{unquote(item.path)}" for item in files]
        frame = self.spark.read.schema(declared.struct_type).parquet(*paths)
        return frame.select(*declared.column_names)

    def _data_set(
        self,
        declared: TableSchema,
        found: TableVersion,
        *,
        since: date | None = None,
        until: date | None = None,
        where: Any = None,
    ) -> Any:
        """Return rows of a version as a data set of Arrow, in the order of its files' names."""
        files = [item for item in found.files if is_within(item.day, since, until)]
        return self._log(declared.name).data_set(found, files, where)


def is_within(day: date | None, since: date | None, until: date | None) -> bool:
    """Whether a day is in a range; rows without one are in none but that of all."""
    if since is None and until is None:
        return True
    return day is not None and (since is None or day >= since) and (until is None or day < until)


def _is_one_machine(spark: SparkSession) -> bool:
    """Whether this process and those that write are surely on the same machine."""
    return hasattr(spark, "_jvm") and str(spark.sparkContext.master).startswith("local")


def _with_day(rows: DataFrame, declared: TableSchema) -> DataFrame:
    """Return rows with the day they belong to: the one they come with, or that of their time."""
    from pyspark.sql import functions as f

    if DAY in rows.columns:
        day = f.col(DAY)
    else:
        # The session's time zone is UTC.
        day = f.to_date(declared.time) if declared.time else f.lit(None)
    return rows.select(*declared.column_names, day.cast("date").alias(DAY))


def _write_arrow(declared: TableSchema, rows: pa.Table, folder: Path) -> None:
    """Write rows into a folder of this machine as Spark would."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    def write(part: pa.Table, place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        pq.write_table(part, place / "part-00000.parquet", compression="zstd")

    chosen = rows.select(list(declared.column_names)).cast(declared.arrow)
    if not declared.by_day:
        write(chosen, folder)
        return
    if DAY in rows.column_names:
        days = rows[DAY].cast(pa.date32())
    elif declared.time is not None:
        days = chosen[declared.time].cast(pa.date32())
    else:
        days = pa.chunked_array([pa.nulls(rows.num_rows, pa.date32())])
    for day in pc.unique(days).to_pylist():
        part = chosen.filter(pc.is_null(days) if day is None else pc.equal(days, day))
        write(part, folder / day_folder(day))


def _check_columns(place: str, declared: TableSchema, found: TableVersion) -> None:
    """Raise `BadInput` naming the first column that is missing or of another type."""
    # Others who write it say nothing about our versions; their columns are checked.
    version = (found.columns_version or "").removeprefix("version ")
    if found.columns_version is not None and version != str(declared.version):
        raise BadInput(
            place,
            f"has version {quoted(version)} of its columns, and this is version {declared.version}",
            hint="run the job that makes it, or ingest it, again",
        )
    kinds = {item.name: type_name(item.type) for item in found.schema}
    for item in declared.arrow:
        if item.name not in kinds:
            raise BadInput(
                place,
                f"column {quoted(item.name)} is missing",
                hint=f"{declared.name} has the columns {', '.join(declared.column_names)}",
            )
        if kinds[item.name] != type_name(item.type):
            raise BadInput(
                place,
                f"column {quoted(item.name)} is {kinds[item.name]}, and must be "
                f"{type_name(item.type)}",
            )


def _unreadable(error: Exception) -> str:
    text = str(error)
    if "Parquet" in text:
        return "holds a file that is not Parquet, or only half of one"
    if isinstance(error, FileNotFoundError):
        return "misses a file that its log has; was it removed while it was read?"
    return f"cannot be read: {next(iter(text.strip().splitlines()), type(error).__name__)}"
