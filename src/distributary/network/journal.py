"""Journals: where a broker's records are when its process is gone.

A commit is durable when `commit` returns, all of it or nothing. The driver gathers what comes
while one is under way, so that a journal need not be clever about many small ones.

SQLite keeps to that with a write-ahead log that is synced at every commit. Its pages have no
checksums, and a record that a disk has changed may still be a record; so each has one of its own.

Records stand in the order in which they were first written, and where each stands is known in
memory. By their keys, which are digests for the most part, nearly every record of a commit would
be on a page of its own: three times the work, and ten times the bytes to sync.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from zlib import crc32

from distributary.errors import BadInput, JournalDamaged, quoted

__all__ = ["JournalInUse", "SqliteJournal", "check_path", "is_full"]

_APPLICATION = int.from_bytes(b"dstr", "big")
_VERSION = 2
# By their keys, in the version before.
_BY_KEY = 1
# How many pages the log has before they go to the file itself, with two further syncs.
_LOG_PAGES = 4_000
_TABLE = (
    "CREATE TABLE record(place INTEGER PRIMARY KEY, key TEXT NOT NULL, sum INTEGER NOT NULL,"
    " data BLOB NOT NULL)"
)

# SQLite takes no longer paths than 512 bytes, and adds to the name for its log.
_PATH_BYTES_MAX = 500


class JournalInUse(BadInput):
    """Another process has a journal open."""


def check_path(path: Path) -> None:
    """See that a journal can be at a path."""
    if len(os.fsencode(path.resolve())) > _PATH_BYTES_MAX:
        raise BadInput(
            str(path),
            f"is a path of more than {_PATH_BYTES_MAX} bytes, which SQLite does not take",
            hint="give a folder with a shorter one",
        )


def is_full(error: Exception) -> bool:
    """Whether a commit failed because there is no room, which may pass."""
    if isinstance(error, sqlite3.OperationalError):
        return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


class SqliteJournal:
    """A journal in a file of SQLite.

    The file is locked as long as it is open: two processes for one broker would each go on from
    what the other does not know of.

    Parameters
    ----------
    path
        The file; it is made if it is not there.
    broker
        Whose journal it is.
    vfs
        How SQLite reaches the disk; for tests that look at it.
    """

    def __init__(self, path: Path, broker: str, *, vfs: str | None = None) -> None:
        self._path = path
        self._broker = broker
        # Where records stand, by key, once they were read.
        self._places: dict[str, int] | None = None
        self._next = 1
        check_path(path)
        uri = f"{path.absolute().as_uri()}{f'?vfs={vfs}' if vfs else ''}"
        try:
            # Transactions are begun and ended here, by the thread that commits.
            self._db = sqlite3.connect(
                uri, uri=True, timeout=0.0, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise BadInput(str(path), f"cannot be opened: {error}") from None
        try:
            self._open()
        except sqlite3.Error as error:
            self._db.close()
            raise self._described(error) from None
        except JournalDamaged:
            self._db.close()
            raise

    def _open(self) -> None:
        db = self._db
        db.execute("PRAGMA locking_mode=EXCLUSIVE")
        # As FULL, and the log in which the file itself is begun is gone for good as well: were it
        # found again after a crash, it would take back all that has come since.
        db.execute("PRAGMA synchronous=EXTRA")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not tables and not application:
            self._create()
        elif application != _APPLICATION:
            raise JournalDamaged(self._broker, "", "it is not a journal")
        elif version == _BY_KEY:
            self._put_in_order()
        elif version != _VERSION:
            problem = f"it has version {version}, and this program reads {_VERSION}"
            raise JournalDamaged(self._broker, "", problem)
        (owner,) = db.execute("SELECT broker FROM owner").fetchone() or ("nobody",)
        if owner != self._broker:
            raise JournalDamaged(self._broker, "", f"it is that of {quoted(owner)}")

    def _create(self) -> None:
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        db.execute("CREATE TABLE owner(broker TEXT NOT NULL)")
        db.execute("INSERT INTO owner VALUES(?)", (self._broker,))
        db.execute(_TABLE)
        db.execute(f"PRAGMA application_id={_APPLICATION}")
        db.execute(f"PRAGMA user_version={_VERSION}")
        db.execute("COMMIT")

    def _put_in_order(self) -> None:
        """Make a journal of this version out of one of the version before."""
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        db.execute("ALTER TABLE record RENAME TO by_key")
        db.execute(_TABLE)
        db.execute("INSERT INTO record(key, sum, data) SELECT key, sum, data FROM by_key")
        db.execute("DROP TABLE by_key")
        db.execute(f"PRAGMA user_version={_VERSION}")
        db.execute("COMMIT")

    def read(self) -> dict[str, bytes]:
        """Return all records, or raise `JournalDamaged` where they are not what was written."""
        records: dict[str, bytes] = {}
        places: dict[str, int] = {}
        place = 0
        try:
            for place, key, wanted, data in self._db.execute("SELECT * FROM record ORDER BY place"):
                if _sum(key, data) != wanted:
                    raise JournalDamaged(self._broker, key, "the disk has changed it")
                records[key] = data
                places[key] = place
        except sqlite3.Error as error:
            raise self._described(error) from None
        self._places, self._next = places, place + 1
        return records

    def commit(self, writes: Mapping[str, bytes | None]) -> None:
        """Make records durable, all or none: bytes by key; None erases what is there.

        It may be called from another thread than `read`, by one at a time. Whatever it raises,
        nothing of the commit is durable.
        """
        if self._places is None:
            self.read()
        assert self._places is not None
        db, places = self._db, self._places
        kept: list[tuple[int, str, int, bytes]] = []
        new: dict[str, int] = {}
        gone: dict[str, int] = {}
        for key, data in writes.items():
            place = places.get(key)
            if data is not None:
                if place is None:
                    place = new[key] = self._next + len(new)
                kept.append((place, key, _sum(key, data), data))
            elif place is not None:
                gone[key] = place
        db.execute("BEGIN IMMEDIATE")
        try:
            if kept:
                db.executemany("INSERT OR REPLACE INTO record VALUES(?, ?, ?, ?)", kept)
            if gone:
                db.executemany("DELETE FROM record WHERE place = ?", zip(gone.values()))
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        self._next += len(new)
        places.update(new)
        for key in gone:
            del places[key]

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def _described(self, error: sqlite3.Error) -> JournalDamaged | BadInput:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return JournalInUse(
                str(self._path),
                "is in use",
                hint=f"broker {self._broker} runs already; look for its process",
            )
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            return BadInput(str(self._path), f"cannot be opened: {error}")
        return JournalDamaged(self._broker, "", str(error))


def _sum(key: str, data: bytes) -> int:
    # Under its key, so that one record in the place of another is noticed too.
    return crc32(data, crc32(key.encode()))
