"""The directory of a worker: the one place it writes to, gone when the worker is.

Its caller removes it. A caller that was killed cannot, so the next one of the same user
does: each holds a lock on its directories, which the system releases when it ends.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

__all__ = ["WorkerDirectory", "empty"]

_PREFIX = "distributary-worker-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class WorkerDirectory:
    """A new directory under the system's temporary one, locked until it is removed."""

    def __init__(self) -> None:
        _remove_stale(tempfile.gettempdir())
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            try:
                self._lock = os.open(self.path, _FOLDER)
            except FileNotFoundError:
                continue
            except OSError:
                self.path.rmdir()
                raise
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            if self.path.exists():
                return
            # Another process took it for one that nobody wants, in the moment before the lock.
            os.close(self._lock)

    def remove(self) -> None:
        """Remove it with all that is in it. The worker has to be gone."""
        with suppress(OSError):
            empty(self.path)
            self.path.rmdir()
        self.let_go()

    def let_go(self) -> None:
        """Release the lock, or this process's share in it, and leave the directory."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


@lru_cache(maxsize=8)
def _remove_stale(parent: str) -> None:
    """Remove directories whose callers are gone; once a process, for it reads all names."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX):
                with suppress(OSError):
                    _remove_if_stale(Path(entry.path))


def _remove_if_stale(path: Path) -> None:
    descriptor = os.open(path, _FOLDER)
    try:
        # Also directories of other users can be locked by who may read them.
        if os.fstat(descriptor).st_uid == os.getuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            empty(path)
            path.rmdir()
    finally:
        os.close(descriptor)


def empty(directory: Path) -> bool:
    """Remove what is in a directory, however deep and whatever its modes; say if all is gone.

    One folder at a time is open, and each is left through its parent. To hold all of them, as
    `shutil.rmtree` does, takes as much stack and as many open files as somebody has made them
    deep. Nobody else may be at work in there.
    """
    here = os.open(directory, _FOLDER)
    try:
        done, names = _remove_files(here)
        # For each folder above `here`, and for it: the folders inside that are left to remove.
        left = [names]
        above: list[str] = []
        while left[-1] or above:
            if left[-1]:
                name = left[-1].pop()
                inner = _opened(name, here)
                if inner is None:
                    done &= _removed(name, here)
                    continue
                os.close(here)
                here = inner
                removed, names = _remove_files(here)
                done &= removed
                above.append(name)
                left.append(names)
            else:
                parent = os.open("..", _FOLDER, dir_fd=here)
                os.close(here)
                here = parent
                left.pop()
                done &= _removed(above.pop(), here)
        return done
    finally:
        os.close(here)


def _remove_files(folder: int) -> tuple[bool, list[str]]:
    """Remove files from an open folder; return whether all went, and the folders that stay."""
    done, folders = True, []
    with os.scandir(folder) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
                continue
            try:
                os.unlink(entry.name, dir_fd=folder)
            except OSError:
                done = False
    return done, folders


def _opened(name: str, folder: int) -> int | None:
    """Open a folder inside another, or None: inside a worker no mode can be changed."""
    with suppress(OSError):
        os.chmod(name, 0o700, dir_fd=folder)
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except OSError:
        return None


def _removed(name: str, folder: int) -> bool:
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError:
        return False
    return True
