"""Files that arrive: which table each is for, and how executors share them out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distributary.content.documents import parse_document
from distributary.errors import BadInput
from distributary.pipeline.sources.csv_lines import read_header
from distributary.pipeline.sources.files import (
    CSV,
    PARQUET,
    SourceFile,
    format_of,
    open_bytes,
    open_file,
    plain_path,
)
from distributary.pipeline.sources.source_rows import Layout
from distributary.pipeline.sources.splits import Split, SplitPlan, planned_splits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ARRIVING", "BatchFiles", "arrivals_plan", "arriving_files", "table_told_by"]

ARRIVING = ("publications", "quotes")
"""The tables that a stream is fed with; files in folders of these names are theirs."""

_FILES = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
# A file that was put there years after it was written is new all the same.
_AGE_MAX = "36500d"
_BEGIN_BYTES = 2**16


def arriving_files(spark: SparkSession, folder: str, *, files_max: int) -> DataFrame:
    """Return the files below a folder, as a stream of `path` and `length`.

    Names that begin with a dot or an underscore are passed over.
    """
    return (
        spark.readStream.format("binaryFile")
        .schema(_FILES)
        .option("recursiveFileLookup", "true")
        .option("maxFilesPerTrigger", str(files_max))
        .option("maxFileAge", _AGE_MAX)
        .load(folder)
        .select("path", "length")
    )


@dataclass(frozen=True)
class BatchFiles:
    """The files of a batch, by the table that they are for.

    `others` is the table of files that are in no folder of a table's name; None while there
    were no such files.
    """

    files: dict[str, list[SourceFile]]
    others: str | None

    @classmethod
    def of(cls, found: Iterable[SourceFile], folder: str, *, others: str | None) -> BatchFiles:
        """Sort files of a batch.

        When the table of `others` is not known, the first such file that tells decides.
        """
        root = plain_path(folder).rstrip("/") + "/"
        files: dict[str, list[SourceFile]] = {}
        elsewhere: list[SourceFile] = []
        for path, length in sorted((plain_path(item.path), item.length) for item in found):
            below = path.removeprefix(root).split("/")
            inside = len(below) > 1 and below[0] in ARRIVING
            some = files.setdefault(below[0], []) if inside else elsewhere
            some.append(SourceFile(path, length))
        if elsewhere:
            others = others or _told_by_first(elsewhere)
            files[others] = sorted([*files.get(others, []), *elsewhere])
        return cls(files, others)


def table_told_by(path: str) -> str:
    """Return the table that a file is for, judging by its columns or its first line.

    Raises `BadInput` when it tells neither.
    """
    names = _names(path)
    if {"object", "value"} <= names:
        return "quotes"
    if "event_id" in names or "specversion" in names:
        return "publications"
    raise BadInput(
        path,
        "does not tell whether it is for publications or for quotes",
        hint="give --table, or put files into folders of these names",
    )


def _told_by_first(files: Sequence[SourceFile]) -> str:
    """Return what the first file tells that tells anything; raise `BadInput` if none does."""
    for file in files:
        try:
            return table_told_by(file.path)
        except BadInput as error:
            problem = error
    raise problem


def arrivals_plan(files: Sequence[SourceFile], layout: Layout) -> SplitPlan:
    """Share files out as `planned_splits` does; those that cannot be read are one part each.

    Reading such a part answers with a row that says what is wrong with the file.
    """
    try:
        return planned_splits(files, layout)
    except BadInput:
        splits: list[Split] = []
        tasks: list[int] = []
        for task, file in enumerate(files):
            try:
                parts: Iterable[Split] = planned_splits([file], layout).splits
            except BadInput:
                parts = [Split(file.path, 0, file.length, 1)]
            for part in parts:
                splits.append(part)
                tasks.append(task)
        return SplitPlan(tuple(splits), tuple(tasks))


def _names(path: str) -> set[str]:
    import pyarrow as pa
    from pyarrow import parquet

    kind, compression = format_of(path)
    if kind == CSV:
        header = read_header(path, compression)
        return set() if header is None else set(header.names)
    if kind == PARQUET:
        try:
            with open_file(path) as file:
                return set(parquet.read_schema(file).names)
        except pa.ArrowException:
            return set()
    with open_bytes(path, compression) as file:
        begin = file.read(_BEGIN_BYTES)
    text = next((line for line in begin.splitlines() if line.strip()), b"").decode(errors="replace")
    try:
        document = parse_document(text)
    except BadInput:
        # A first line that is cut, or broken, may still tell.
        return {name for name in ("specversion", "event_id") if f'"{name}"' in text}
    return set(document) if isinstance(document, dict) else set()
