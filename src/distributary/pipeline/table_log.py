"""Versions of a table, kept in the log of Delta Lake: which files each has, and who made it.

Spark writes Parquet files and delta-rs the log, which takes no second Java. A commit is made at
the version that the run has seen, and never tried again by the library: with its own retries two
runs that replace the same rows both succeed, and the table holds the rows of both.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from distributary.delta import open_table
from distributary.errors import BadInput, TableBusy, first_line
from distributary.pipeline.arrow_types import type_name
from distributary.pipeline.days import NONE, Day, Days, day_list, read_day_list
from distributary.pipeline.table_files import DAY, DataFile, plain_files, sound_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

    from distributary.pipeline.schemas import TableSchema

__all__ = ["NO_LOG", "Draft", "TableLog", "TableVersion"]

NO_LOG = -1
"""The version of a table that is a folder of files and has no log yet."""

# So many commits of others, such as tidying, are looked past.
_NOTES_MAX = 20
# Commits that leave all rows as they are.
_TIDYING = frozenset({"OPTIMIZE", "VACUUM START", "VACUUM END"})
# How long commits are kept that say which days they have changed: without them nobody can tell
# whether what was made of a table is still up to date.
_LOG_KEPT = "interval 730 days"


@dataclass(frozen=True)
class TableVersion:
    """A table as it was at one time.

    Attributes
    ----------
    number
        Which version; `NO_LOG` for a folder of files that has no log.
    files
        Its files, in the order of their names.
    schema
        The columns in them.
    columns_version
        The version of our columns that it says it has; None when others wrote it.
    by_day
        Whether it is laid out by days.
    """

    number: int
    files: tuple[DataFile, ...]
    schema: pa.Schema = field(repr=False)
    columns_version: str | None = None
    by_day: bool = False

    @property
    def whole_schema(self) -> pa.Schema:
        """The columns in its files, and the day that only the log has."""
        import pyarrow as pa

        return self.schema.append(pa.field(DAY, pa.date32())) if self.by_day else self.schema

    def is_ours(self, declared: TableSchema) -> bool:
        """Whether files of a table as it is declared can be added to it."""
        if self.number == NO_LOG:
            return False
        columns = [(item.name, type_name(item.type)) for item in self.schema]
        wanted = [(item.name, type_name(item.type)) for item in declared.arrow]
        return columns == wanted and self.by_day == declared.by_day


@dataclass(frozen=True)
class Draft:
    """Rows that a run has written and not yet committed.

    Attributes
    ----------
    table
        The name of their table.
    folder
        Where in the folder of the table they are.
    seen
        The version of the table that the run has seen; None when there was none.
    files
        The files.
    """

    table: str
    folder: str
    seen: TableVersion | None
    files: tuple[DataFile, ...]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(item.rows or 0 for item in self.files)


class TableLog:
    """The log of the table in one folder."""

    def __init__(self, place: str, storage_options: Mapping[str, str] | None = None) -> None:
        self._place = place
        self._options = dict(storage_options or {}) or None

    def exists(self) -> bool:
        """Whether there is a table, be it one that cannot be read."""
        return self._open(None) is not None or bool(self._plain())

    def latest(self, version: int | None = None) -> TableVersion | None:
        """Return the table as it is, or was at a version; None when there is none.

        Raises `BadInput` when it cannot be read.
        """
        table = self._open(version)
        if table is None:
            return None if version is not None else self._without_log()
        import pyarrow as pa

        found = pa.table(table.get_add_actions(flatten=True)).to_pylist()
        files = [_data_file(item) for item in found]
        schema = pa.schema(table.schema().to_arrow())
        metadata = table.metadata()
        return TableVersion(
            table.version(),
            tuple(sorted(files, key=lambda item: item.path)),
            pa.schema([item for item in schema if item.name not in metadata.partition_columns]),
            metadata.description,
            metadata.partition_columns == [DAY],
        )

    def data_set(self, found: TableVersion, files: Collection[DataFile], where: Any = None) -> Any:
        """Return files of a version as a data set of Arrow, in the order of their names.

        Without those that cannot hold what `where` asks for, as the log says. The library's own
        data set is no good for that: where the log has no bounds of a column and has some of
        another, it takes every condition on the first to be false.
        """
        import pyarrow.dataset as pds
        from pyarrow import fs

        if Path(self._place).is_absolute():
            system = fs.SubTreeFileSystem(self._place, fs.LocalFileSystem())
        else:
            table = self._open(None)
            assert table is not None, "it was found"
            system = table.to_pyarrow_dataset().filesystem
        form = pds.ParquetFileFormat()
        parts = [
            form.make_fragment(unquote(item.path), system, partition_expression=item.promise)
            for item in files
        ]
        every = pds.FileSystemDataset(parts, found.whole_schema, form, system)
        if where is None:
            return every
        parts = list(every.get_fragments(filter=where))
        return pds.FileSystemDataset(parts, found.whole_schema, form, system)

    def commit(
        self,
        declared: TableSchema,
        seen: TableVersion | None,
        added: Sequence[DataFile],
        *,
        replaced: Days,
        read: Days = NONE,
        note: Mapping[str, str],
        batch: tuple[str, int] | None = None,
    ) -> int:
        """Make the next version and return its number: files are added, and `replaced` days go.

        When others have committed meanwhile, it is made after theirs if they have left alone
        the days that are replaced, and those that were `read` in the version that was `seen`.

        Raises
        ------
        TableBusy
            When they have not.
        """
        if not replaced.is_all and seen is not None and not seen.is_ours(declared):
            raise BadInput(
                self._place,
                "is laid out as no job lays it out, and can only be replaced as a whole",
                hint="distributary pipeline convert",
            )
        while True:
            there = seen.files if seen is not None and seen.number != NO_LOG else ()
            gone = [item for item in there if item.day in replaced]
            changed = {item.day for item in (*gone, *added)}
            own = {**note, "days": json.dumps(day_list(changed))}
            if self._committed(declared, seen, added, gone, own, batch):
                return 0 if seen is None else seen.number + 1
            latest = self.latest()
            before = None if seen is None else seen.number
            if latest is None or NO_LOG in (before, latest.number) or latest.number == before:
                raise self._busy()
            others = self.changes(-1 if before is None else before)
            if others is None:
                raise self._busy()
            for number, days in others.items():
                if any(day in replaced or day in read for day in days):
                    raise self._busy(number)
            seen = latest

    def changes(self, version: int) -> dict[int, frozenset[Day]] | None:
        """Return which days each version after one has changed; None when nobody knows any more.

        Commits of ours say it. For those of others the files before and after are compared.
        In tables without days, None is the only one. Tidying changes nothing.
        """
        table = self._open(None)
        if table is None or table.version() < version:
            return None
        count = table.version() - version
        notes = {item["version"]: item for item in table.history(count)} if count else {}
        numbers = range(version + 1, table.version() + 1)
        if any(number not in notes for number in numbers):
            return None
        return {number: self._changed_by(number, notes[number]) for number in numbers}

    def _changed_by(self, number: int, note: Mapping[str, Any]) -> frozenset[Day]:
        if note.get("operation") in _TIDYING:
            return frozenset()
        if "days" in note and "run" in note:
            return read_day_list(note["days"])
        before = self.latest(number - 1) if number else None
        after = self.latest(number)
        assert after is not None, "it was just there"
        files = {*after.files} ^ {*(() if before is None else before.files)}
        return frozenset(item.day for item in files)

    def compact(self) -> tuple[int, int]:
        """Put small files together, each day's for itself; return how many went and came."""
        table = self._open(None)
        if table is None:
            return 0, 0
        told = table.optimize.compact()
        return int(told["numFilesRemoved"]), int(told["numFilesAdded"])

    def versions(self) -> list[dict[str, Any]]:
        """Return what the log says about every version that it still has, newest first."""
        table = self._open(None)
        return [] if table is None else table.history()

    def batch(self, stream: str) -> int:
        """Return the last batch that a stream has committed; -1 before the first."""
        table = self._open(None)
        number = None if table is None else table.transaction_version(stream)
        return -1 if number is None else number

    def note(self) -> Mapping[str, Any]:
        """Return what the last commit of ours says about itself; nothing where there is none."""
        table = self._open(None)
        if table is None:
            return {}
        return next((item for item in table.history(_NOTES_MAX) if "run" in item), {})

    def vacuum(self, *, hours: int, dry_run: bool) -> list[str]:
        """Remove files that no version of the last hours has; return their names."""
        table = self._open(None)
        if table is None:
            return []
        return table.vacuum(
            retention_hours=hours, dry_run=dry_run, enforce_retention_duration=False, full=True
        )

    def _committed(
        self,
        declared: TableSchema,
        seen: TableVersion | None,
        added: Sequence[DataFile],
        gone: Sequence[DataFile],
        note: Mapping[str, str],
        batch: tuple[str, int] | None,
    ) -> bool:
        """Commit at the version that was seen; say whether nobody else was faster."""
        from deltalake import CommitProperties, Schema, Transaction
        from deltalake.exceptions import CommitFailedError, DeltaError
        from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

        now = int(time.time() * 1000)
        partitions = [DAY] if declared.by_day else []
        schema = Schema.from_arrow(declared.stored)
        properties = CommitProperties(
            custom_metadata=dict(note),
            max_commit_retries=0,
            app_transactions=None if batch is None else [Transaction(*batch)],
        )
        actions: list[Any] = [
            RemoveAction(item.path, True, now, item.size, _partition(declared, item))
            for item in gone
        ]
        new = [
            AddAction(item.path, item.size, _partition(declared, item), now, True, item.stats or "")
            for item in added
        ]
        try:
            if seen is None or not seen.is_ours(declared):
                if seen is not None and seen.number != self._number():
                    return False
                # A table that others laid out in another way is made anew, and keeps its log.
                create_table_with_add_actions(
                    self._place,
                    schema,
                    new,
                    mode="error" if seen is None or seen.number == NO_LOG else "overwrite",
                    partition_by=partitions,
                    name=declared.name,
                    description=f"version {declared.version}",
                    configuration={"delta.logRetentionDuration": _LOG_KEPT},
                    storage_options=self._options,
                    commit_properties=properties,
                )
            else:
                table = self._open(seen.number)
                assert table is not None, "it was seen"
                table.create_write_transaction(
                    [*actions, *new], "append", schema, partitions, commit_properties=properties
                )
        except CommitFailedError:
            return False
        except DeltaError as error:
            if "already exists" in str(error):
                return False
            raise BadInput(self._place, f"cannot be committed: {first_line(error)}") from error
        return True

    def _number(self) -> int:
        table = self._open(None)
        return NO_LOG if table is None else int(table.version())

    def _open(self, version: int | None) -> DeltaTable | None:
        return open_table(self._place, version, self._options)

    def _without_log(self) -> TableVersion | None:
        """Return the files that somebody put into a folder of this machine."""
        root = Path(self._place)
        files = self._plain()
        if not files:
            return None
        named = root / "_version"
        return TableVersion(
            NO_LOG,
            tuple(
                DataFile(path.relative_to(root).as_posix(), path.stat().st_size, None)
                for path in files
            ),
            sound_schema(files[0]),
            f"version {named.read_text().strip()}" if named.is_file() else None,
        )

    def _plain(self) -> list[Path]:
        root = Path(self._place)
        return plain_files(root) if root.is_absolute() else []

    def _busy(self, number: int | None = None) -> TableBusy:
        """Return the error that names who has made a version, or the last one."""
        made = (item for item in self.versions() if item["version"] == number and "run" in item)
        note = self.note() if number is None else next(made, {})
        who = f"{note['job']} {note['run']}" if note else "a writer that does not name itself"
        return TableBusy(self._place, who)


def _data_file(action: Mapping[str, Any]) -> DataFile:
    """Return a file as the log describes it."""
    names = [key.removeprefix("min.") for key in action if key.startswith("min.")]
    bounds = [(name, action[f"min.{name}"], action.get(f"max.{name}")) for name in names]
    return DataFile(
        action["path"],
        action["size_bytes"],
        action.get("num_records"),
        action.get(f"partition.{DAY}"),
        bounds=tuple(
            (name, low, high)
            for name, low, high in bounds
            # A value that is not there meets no condition, and yet some ask for it.
            if low is not None and high is not None and action.get(f"null_count.{name}") == 0
        ),
    )


def _partition(declared: TableSchema, item: DataFile) -> dict[str, str | None]:
    if not declared.by_day:
        return {}
    return {DAY: None if item.day is None else item.day.isoformat()}
