"""The data folder: a Delta table per subfolder, each with its versions.

A run writes files into a folder of its own in the table's, and then commits them: until then
nobody sees them, and whoever reads an earlier version goes on reading that. What a killed run
has written is in no version.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from distributary.arguments import checked
from distributary.errors import BadInput, PipelineFailed, first_line, quoted
from distributary.pipeline.arrow_types import type_name
from distributary.pipeline.counting import RowCount
from distributary.pipeline.days import ALL, NONE, Day, Days
from distributary.pipeline.folder import Folder, open_folder
from distributary.pipeline.running import oldest_running
from distributary.pipeline.schemas import TableSchema, table_schema
from distributary.pipeline.table_files import DAY, RUN, DataFile, day_folder, draft_files
from distributary.pipeline.table_log import Draft, TableLog, TableVersion

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["Store", "is_among"]


# After so many batches of a stream their small files are put together.
_BATCHES_COMPACTED = 64


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
        # What this run has read, or has not found: it must be as it was when it is replaced.
        self._read: dict[str, TableVersion | None] = {}
        self._written: dict[str, int] = {}
        self.begin("a job")

    def begin(self, job: str) -> None:
        """Begin a run of a job, which has not read or written anything yet."""
        self.job = job
        self.run = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
        self._read.clear()
        self._written.clear()

    @property
    def read_versions(self) -> dict[str, int | None]:
        """The versions of the tables that this run has read; None for those it has not found."""
        return {name: None if found is None else found.number for name, found in self._read.items()}

    @property
    def written_versions(self) -> dict[str, int]:
        """The versions of tables that this run has made."""
        return dict(self._written)

    @property
    def spark(self) -> SparkSession:
        """The session that reads and writes; a store that was opened without one has none."""
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

    def frame(self, name: str, days: Days = ALL, *, with_day: bool = False) -> DataFrame:
        """Return rows of some days of a table with its declared columns, or raise `BadInput`.

        Columns may be stored in any order and among others. On demand rows have their day.
        """
        declared, found = self._found(name)
        if found.by_day:
            files = [item for item in found.files if item.day in days]
            return self._of_files(declared, files, with_day=with_day)
        rows = self._of_files(declared, found.files, with_day=True)
        if not days.is_all:
            rows = rows.filter(is_among(days))
        return rows if with_day else rows.drop(DAY)

    def days(self, name: str) -> frozenset[Day]:
        """Return the days of which a table has rows; raise `BadInput` as `frame` does."""
        import pyarrow as pa
        import pyarrow.compute as pc

        declared, found = self._found(name)
        if found.by_day or declared.time is None:
            return frozenset(item.day for item in found.files)
        times = self.read(name, [declared.time])[declared.time]
        return frozenset(pc.unique(times.cast(pa.date32())).to_pylist())

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

        Rows are in the order of the files' names: brokers have an order that matters. Those of
        tables that are laid out by days have a column `day`. With `since` or `until`, they are of
        the days from the one until before the other. No Spark takes part. `where` is an
        expression of Arrow that rows have to meet, and `limit` how many are read at most; files
        that cannot have such rows are not opened.
        """
        import pyarrow as pa

        declared, found = self._found(name, version)
        days = Days(since, until)
        if not found.by_day and not days.is_all:
            where = _within(declared, days, where)
        names = declared.stored.names if found.by_day else declared.column_names
        rows = self._data_set(declared, found, days if found.by_day else ALL, where)
        scanner = rows.scanner(columns=list(columns or names), filter=where)
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

    def row_count(self, name: str, days: Days = ALL) -> int:
        """Return how many rows a table has, as its files say; raise `BadInput` as `frame` does."""
        declared, found = self._found(name)
        if not found.by_day and not days.is_all:
            return self.frame(name, days).count()
        counts = [item.rows for item in found.files if item.day in days]
        if None in counts:
            return int(self._data_set(declared, found, days).count_rows())
        return sum(count or 0 for count in counts)

    def versions(self, name: str) -> list[dict[str, Any]]:
        """Return what the log of a table says about its versions, newest first."""
        return self._log(name).versions()

    def columns_version(self, name: str) -> int | None:
        """Return which version of its columns a table has; None when there is no such table.

        Those of others are taken for ours.
        """
        found = self._log(name).latest()
        if found is None:
            return None
        text = (found.columns_version or "").removeprefix("version ")
        return int(text) if text.isdecimal() else table_schema(name).version

    def is_current(self, name: str) -> bool:
        """Whether a table has a log, and the columns and the layout that it is declared with."""
        found = self._log(name).latest()
        declared = table_schema(name)
        return (
            found is not None
            and found.is_ours(declared)
            and self.columns_version(name) == declared.version
        )

    def as_stored(self, name: str) -> DataFrame:
        """Return all rows of a table with the columns that it has, be they older ones."""
        found = self._log(name).latest()
        assert found is not None, "it is there"
        self._read.setdefault(name, found)
        place = self.path(name)
        return self.spark.read.parquet(*(f"{place}/{unquote(item.path)}" for item in found.files))

    def compact(self, name: str) -> tuple[int, int]:
        """Put small files of a table together, by day; return how many went and came."""
        return self._log(name).compact()

    def changes(self, name: str, version: int) -> dict[int, frozenset[Day]] | None:
        """Return which days of a table each version after one has changed; None if unknown.

        In tables that are not laid out by days, None is the only one.
        """
        return self._log(name).changes(version)

    def write(self, name: str, rows: DataFrame | pa.Table, days: Days = ALL) -> int:
        """Put rows in the place of a table, or of some of its days; return how many there are.

        A run that is killed leaves the table as it was. Of two that replace the same, one is
        refused: `TableBusy`.
        """
        draft = self.draft(name, rows)
        self.publish(draft, days)
        return draft.rows

    def draft(self, name: str, rows: DataFrame | pa.Table, *, onto: Draft | None = None) -> Draft:
        """Write rows where nobody sees them yet; `read_draft` and `publish` take the result.

        With `onto`, they are put to those of an earlier draft, to be published together.
        """
        declared = table_schema(name)
        seen = self._read[name] if name in self._read else self._log(name).latest()
        folder = f"{RUN}{self.run}-{secrets.token_hex(4)}"
        if onto is not None:
            seen, folder = onto.seen, f"{onto.folder}/more-{len(onto.files)}"
        place = f"{self.path(name)}/{folder}"
        try:
            counted = self._put(declared, rows, place)
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
        return draft if onto is None else replace(onto, files=(*onto.files, *files))

    def read_draft(self, draft: Draft, *, with_day: bool = False) -> DataFrame:
        """Return the rows of a draft; on demand with their days."""
        return self._of_files(table_schema(draft.table), draft.files, with_day=with_day)

    def publish(
        self,
        draft: Draft,
        days: Days = ALL,
        *,
        append: bool = False,
        read: Days = NONE,
        batch: tuple[str, int] | None = None,
        stream: str | None = None,
    ) -> None:
        """Put a draft in the place of its table, or of some of its days; or add it.

        What is added may depend on days as they were `read`, which must not have changed since.
        `batch` is the id of a stream and the number of its batch, which is committed once
        however often it is done. `stream` is the id of one that goes on writing the table.
        """
        name = draft.table
        if batch is not None and self._log(name).batch(batch[0]) >= batch[1]:
            return
        note = {"run": self.run, "job": self.job}
        if batch is not None or stream is not None:
            note["stream"] = str(stream if batch is None else batch[0])
        strange = {item.day for item in draft.files if item.day not in days}
        assert not strange, f"rows of {strange} are not of the days that are replaced"
        self._read.pop(name, None)
        try:
            self._written[name] = self._log(name).commit(
                table_schema(name),
                draft.seen,
                draft.files,
                replaced=NONE if append else days,
                read=read,
                note=note,
                batch=batch,
            )
        except BaseException:
            self.discard(draft)
            raise
        if batch is not None and batch[1] % _BATCHES_COMPACTED == _BATCHES_COMPACTED - 1:
            self.compact(name)

    def discard(self, draft: Draft) -> None:
        """Remove what was written."""
        self.folder.remove(f"{draft.table}/{draft.folder}")

    def vacuum(self, name: str, *, hours: int, dry_run: bool = False) -> list[str]:
        """Remove files that no version of the last hours has; return their names.

        Nothing goes that is younger than the oldest run which is still going on.
        """
        running = oldest_running(self.folder)
        if running is not None:
            hours = max(hours, ceil((datetime.now(UTC) - running) / timedelta(hours=1)))
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

    def _put(self, declared: TableSchema, rows: DataFrame | pa.Table, place: str) -> int | None:
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

    def _of_files(
        self, declared: TableSchema, files: Sequence[DataFile], *, with_day: bool = False
    ) -> DataFrame:
        from pyspark.sql import functions as f

        names: list[Any] = list(declared.column_names)
        if not files:
            empty: DataFrame = self.spark.createDataFrame([], declared.struct_type)
            return empty.withColumn(DAY, f.lit(None).cast("date")) if with_day else empty
        place = self.path(declared.name)
        reader = self.spark.read.schema(declared.struct_type)
        if not with_day:
            return reader.parquet(*(f"{place}/{unquote(item.path)}" for item in files)).select(
                *names
            )
        parts: list[DataFrame] = []
        for day, some in _by_known_day(declared, files):
            found = reader.parquet(*(f"{place}/{unquote(item.path)}" for item in some))
            parts.append(found.select(*names, day.cast("date").alias(DAY)))
        return reduce(lambda one, other: one.unionAll(other), parts)

    def _data_set(
        self, declared: TableSchema, found: TableVersion, days: Days = ALL, where: Any = None
    ) -> Any:
        """Return rows of a version as a data set of Arrow, in the order of its files' names."""
        files = [item for item in found.files if item.day in days]
        return self._log(declared.name).data_set(found, files, where)


@checked
def is_among(days: Days) -> Column:
    """Return whether a row is of one of some days, by its column `day`."""
    from pyspark.sql import functions as f

    day = f.col(DAY)
    if days.chosen is not None:
        known = day.isin([_literal(item) for item in days.chosen if item is not None])
        return (known | day.isNull()) if None in days.chosen else known
    found = day.isNotNull()
    if days.since is not None:
        found &= day >= _literal(days.since)
    return found if days.until is None else found & (day < _literal(days.until))


def _literal(day: Day) -> Column:
    """Return a day for Spark, as text: what PySpark makes of a date fails before the year 1000."""
    from pyspark.sql import functions as f

    return f.lit(day and day.isoformat()).cast("date")


def _within(declared: TableSchema, days: Days, where: Any) -> Any:
    """Return what rows have to meet that are of a range, in a table that is not laid out by it."""
    import pyarrow.compute as pc

    if declared.time is None:
        return pc.scalar(False)
    time = pc.field(declared.time)
    for bound, met in ((days.since, time.__ge__), (days.until, time.__lt__)):
        if bound is not None:
            asked = met(datetime.combine(bound, datetime.min.time(), UTC))
            where = asked if where is None else where & asked
    return where


def _by_known_day(
    declared: TableSchema, files: Sequence[DataFile]
) -> list[tuple[Column, list[DataFile]]]:
    """Return files together with a column that is the day of each of their rows.

    It follows from the time, or from the folder of the file. Others may name folders as they
    like: then the log has it.
    """
    from pyspark.sql import functions as f

    if declared.time is not None:
        # The session's time zone is UTC.
        return [(f.to_date(declared.time), list(files))]
    others: dict[Day, list[DataFile]] = {}
    told: list[DataFile] = []
    for item in files:
        named = f"/{day_folder(item.day)}/" in f"/{item.path}"
        (told if named and item.day is not None else others.setdefault(item.day, [])).append(item)
    found = [(_literal(day), some) for day, some in others.items()]
    if told:
        folder = f.substring_index(f.col("_metadata.file_path"), f"{DAY}=", -1)
        found.append((f.substring(folder, 1, 10), told))
    return found


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
            hint="distributary pipeline convert, or make it again",
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
    if "Parquet" in str(error):
        return "holds a file that is not Parquet, or only half of one"
    if isinstance(error, FileNotFoundError):
        return "misses a file that its log has; was it removed while it was read?"
    return f"cannot be read: {first_line(error)}"
