"""One writer at a time: a lock on a table in a folder of this machine.

A writer removes what unfinished ones left, so two at once would remove each other's work. The
system releases the lock of a job that was killed. Other file systems have no such locks, and
nothing keeps two jobs apart there.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from distributary.errors import TableBusy

__all__ = ["lock_table", "unlock_table"]

# By path: this process may lock a table again, as one job after a failed one does.
_HELD: dict[Path, int] = {}


def lock_table(folder: Path, name: str) -> None:
    """Lock a table for this process, or raise `TableBusy` if another one has it."""
    path = _path(folder, name)
    folder.mkdir(parents=True, exist_ok=True)
    while path not in _HELD:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
                os.truncate(descriptor, 0)
                os.write(descriptor, str(os.getpid()).encode())
                _HELD[path] = descriptor
                return
        except BlockingIOError:
            other = os.read(descriptor, 20).decode("ascii", "replace")
            os.close(descriptor)
            raise TableBusy(str(folder / name), other) from None
        except BaseException:
            os.close(descriptor)
            raise
        # Whoever had it has removed the file since.
        os.close(descriptor)


def unlock_table(folder: Path, name: str) -> None:
    """Let others have it."""
    path = _path(folder, name)
    descriptor = _HELD.pop(path, None)
    if descriptor is not None:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _path(folder: Path, name: str) -> Path:
    return folder.absolute() / f".lock.{name}"
