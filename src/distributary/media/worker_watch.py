"""What a busy worker takes, as its caller sees it: memory, threads and temporary files.

The limits that a worker sets itself hold for converters that know nothing of them. One that
has been taken over can raise some of them, and can write many files where each is small. So
its caller looks too, now and then, and ends it. On Linux it sees all; elsewhere the files.
"""

from __future__ import annotations

import os
import resource
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

from distributary.media.failure import Unconvertible
from distributary.media.limits import Limits

__all__ = ["WorkerWatch"]

_SECONDS_BETWEEN = 0.1
_FILES_MAX = 1000
_THREADS_MAX = 500
# What a worker occupies beyond the content: packages, and what it may keep between two jobs.
_RESIDENT_BYTES = 768 << 20
_DELETED = "(deleted)"
_PAGE_BYTES = resource.getpagesize()


class WorkerWatch:
    """Looks at one worker during one conversion; raises `Unconvertible` when it takes too much.

    A conversion that is over before the first look costs nothing.
    """

    def __init__(self, pid: int, directory: Path, limits: Limits) -> None:
        self._pid = pid
        self._directory = directory
        self._limits = limits
        self._due = time.monotonic() + _SECONDS_BETWEEN

    def __call__(self) -> float:
        """Look if it is time to, and return in how many seconds to look again."""
        now = time.monotonic()
        if now >= self._due:
            self.look()
            now = time.monotonic()
            self._due = now + _SECONDS_BETWEEN
        return self._due - now

    def look(self) -> None:
        """Compare what it takes with what it may."""
        with suppress(OSError, ValueError, IndexError):
            self._look_at_process()
        self._look_at_files()

    def _look_at_process(self) -> None:
        # The name of the program, in parentheses, may hold anything.
        fields = Path("/proc", str(self._pid), "stat").read_text().rpartition(")")[2].split()
        thread_count, resident_bytes = int(fields[17]), int(fields[21]) * _PAGE_BYTES
        if fields[0] == "Z" and thread_count > 1:
            # What the others take is nowhere to be seen then.
            raise Unconvertible("crashed", "its converter has ended the main thread")
        if thread_count > _THREADS_MAX:
            raise Unconvertible("crashed", f"its converter has started {thread_count:,} threads")
        if resident_bytes > self._limits.memory_bytes + _RESIDENT_BYTES:
            allowed = f"{self._limits.memory_bytes:,}"
            raise Unconvertible("memory", f"it needs more than {allowed} bytes of memory")

    def _look_at_files(self) -> None:
        bytes_max = self._limits.input_bytes + self._limits.output_bytes
        too_much = Unconvertible("output", "it needs more temporary files than allowed")
        # How large these are is out of sight.
        count = self._mapped_count()
        taken_bytes = count * self._limits.file_bytes
        if taken_bytes > bytes_max:
            raise too_much
        try:
            for status in chain(self._named_files(), self._open_files()):
                count += 1
                taken_bytes += status.st_blocks * 512
                if count > _FILES_MAX or taken_bytes > bytes_max:
                    raise too_much
        except OSError:
            # Folders that are too deep to look into, or that keep us out.
            raise too_much from None

    def _named_files(self) -> Iterator[os.stat_result]:
        folders = [self._directory]
        while folders:
            # What goes while we look is no matter.
            with suppress(FileNotFoundError), os.scandir(folders.pop()) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        yield entry.stat(follow_symlinks=False)
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(Path(entry.path))

    def _open_files(self) -> Iterator[os.stat_result]:
        """Yield those that have lost their names, and take room for as long as they are open."""
        with suppress(OSError), os.scandir(f"/proc/{self._pid}/fd") as entries:
            for entry in entries:
                with suppress(OSError):
                    status = entry.stat()
                    if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                        yield status

    def _mapped_count(self) -> int:
        """Return how many files have neither a name nor somebody who has them open, but a map."""
        with suppress(OSError):
            lines = Path("/proc", str(self._pid), "maps").read_text(errors="replace").splitlines()
            mine = f" {self._directory}/"
            # A line is the range, modes, offset, device and number of a file, and its name.
            return len({line.split()[4] for line in lines if mine in line and _DELETED in line})
        return 0
