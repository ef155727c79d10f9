"""The Parquet files of a table: which there are, and what their footers say without a scan."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from distributary.errors import BadInput

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from pyspark.sql import SparkSession

__all__ = ["DAY", "RUN", "DataFile", "day_folder", "draft_files", "plain_files", "sound_schema"]

DAY = "day"
"""The column by which tables that grow are laid out; it is in the log and not in the files."""

RUN = "run-"
"""What folders begin with that a run writes its files into."""

_NO_DAY = "__HIVE_DEFAULT_PARTITION__"
_TEXT_MAX = 64
_GREATEST = "\U0010ffff"


@dataclass(frozen=True)
class DataFile:
    """A file of a table.

    Attributes
    ----------
    path
        Where it is in the folder of the table.
    size
        How many bytes it has.
    rows
        How many rows, if that is known.
    day
        The day of all its rows; None for rows without one, and in tables without days.
    stats
        What the log is to say about values in it, as JSON.
    bounds
        What the log says: columns in which every row has a value, the least and the greatest.
    """

    path: str
    size: int
    rows: int | None
    day: date | None = None
    stats: str | None = None
    bounds: tuple[tuple[str, Any, Any], ...] = ()

    @property
    def promise(self) -> Any:
        """What holds for all its rows, as an expression of Arrow."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found = pc.scalar(True)
        if self.day is not None:
            found &= pc.field(DAY) == pa.scalar(self.day, pa.date32())
        for name, low, high in self.bounds:
            found &= (pc.field(name) >= low) & (pc.field(name) <= high)
        return found


def plain_files(folder: Path) -> list[Path]:
    """Return the files that somebody put into a folder, in the order of their names.

    What begins with a dot or an underscore is hidden from Spark, and so from everybody; what
    a run has written is not in the table before it is in the log.
    """
    return sorted(
        path
        for path in folder.rglob("*.parquet")
        if not any(
            part[0] in "._" or part.startswith(RUN) for part in path.relative_to(folder).parts
        )
    )


def draft_files(place: str, folder: str, spark: SparkSession | None) -> list[DataFile]:
    """Return the files that a run has written into a folder of a table.

    In a folder of this machine their footers are read here. Elsewhere Spark counts rows,
    which is to read footers, too.
    """
    root = Path(place)
    if root.is_absolute():
        return [_described(path, root) for path in sorted((root / folder).rglob("*.parquet"))]
    assert spark is not None, "only Spark writes to other places"
    return _seen_by_spark(place, folder, spark)


def _seen_by_spark(place: str, folder: str, spark: SparkSession) -> list[DataFile]:
    from pyspark.sql import functions as f

    reader = spark.read.option("recursiveFileLookup", "true")
    seen = (
        reader.parquet(f"{place}/{folder}")
        .groupBy(
            f.col("_metadata.file_path").alias("path"), f.col("_metadata.file_size").alias("size")
        )
        .agg(f.count(f.lit(1)).alias("rows"))
    )
    found = []
    for path, size, rows in seen.collect():
        inside = unquote(folder + path.partition(f"/{folder}")[2])
        found.append(
            DataFile(inside, size, rows, _day_of(inside), json.dumps({"numRecords": rows}))
        )
    return sorted(found, key=lambda item: item.path)


def _described(path: Path, root: Path) -> DataFile:
    import pyarrow.parquet as pq

    inside = path.relative_to(root).as_posix()
    footer = pq.read_metadata(path)
    rows = int(footer.num_rows)
    return DataFile(inside, path.stat().st_size, rows, _day_of(inside), _stats(footer))


def day_folder(day: date | None) -> str:
    """Return the folder of a day's files, as Spark names it."""
    return f"{DAY}={_NO_DAY if day is None else day.isoformat()}"


def _day_of(path: str) -> date | None:
    for part in path.split("/"):
        if part.startswith(f"{DAY}=") and not part.endswith(_NO_DAY):
            return date.fromisoformat(part.partition("=")[2])
    return None


def _stats(footer: pq.FileMetaData) -> str:
    """Return what a footer says about values, as the log has it.

    Bounds of all columns, or of none: delta-rs takes a column without them, beside others that
    have some, for one in which nothing meets a condition, and its readers miss rows.
    """
    told: dict[str, Any] = {"numRecords": int(footer.num_rows)}
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    least: dict[str, object] = {}
    most: dict[str, object] = {}
    nulls: dict[str, int] = {}
    columns = [(index, footer.schema.column(index)) for index in range(footer.num_columns)]
    for index, column in columns:
        # What is inside of maps and lists has no bounds in any log.
        if column.max_repetition_level:
            continue
        known = [group.column(index).statistics for group in groups]
        bounds = _bounds(known)
        if bounds is None:
            return json.dumps(told)
        least[column.path], most[column.path] = bounds
        nulls[column.path] = sum(int(item.null_count) for item in known)
    return json.dumps(told | {"minValues": least, "maxValues": most, "nullCount": nulls})


def _bounds(known: Sequence[Any]) -> tuple[object, object] | None:
    """Return the bounds of a column as the log writes them; None where they are not known."""
    if not known or any(item is None or not item.has_null_count for item in known):
        return None
    some = [item for item in known if item.num_values]
    if not some or not all(item.has_min_max for item in some):
        return None
    first, last = min(item.min for item in some), max(item.max for item in some)
    if isinstance(first, datetime):
        # To the millisecond, and so that nothing is outside.
        first, last = (item.astimezone(UTC) for item in (first, last))
        first -= timedelta(microseconds=first.microsecond % 1_000)
        last += timedelta(microseconds=-last.microsecond % 1_000)
        return _time_text(first), _time_text(last)
    if isinstance(first, str):
        # Longer texts are cut: the greatest to something that is greater.
        return first[:_TEXT_MAX], last if len(last) <= _TEXT_MAX else last[:_TEXT_MAX] + _GREATEST
    # Numbers with a fraction may be none, which no footer tells.
    return (first, last) if isinstance(first, int) else None


def _time_text(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1_000:03d}Z"


def sound_schema(path: Path) -> Any:
    """Return the columns of a Parquet file as Arrow has them, or raise `BadInput`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError):
        raise BadInput(str(path), "is not Parquet, or only half of it") from None
