"""Disk space: when there is little left, publications are refused in good time."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from distributary.broker.host import StorageLow, StorageRecovered

__all__ = ["DiskSpace"]


class DiskSpace:
    """How much disk space is free, as its broker is told.

    Parameters
    ----------
    folder
        On the disk.
    least_bytes
        With less than this there is too little; with twice as much there is enough again.
    tell
        Called with what the broker is to be told.

    Attributes
    ----------
    folder
        On the disk.
    is_low
        Whether there is too little.
    """

    def __init__(self, folder: Path, least_bytes: int, tell: Callable[[object], None]) -> None:
        self.folder = folder
        self._least_bytes = least_bytes
        self._tell = tell
        self.is_low = False

    def free_bytes(self) -> int:
        """Return how much is free."""
        there = os.statvfs(self.folder)
        return there.f_bavail * there.f_frsize

    def look(self) -> None:
        """See how much room there is, and tell if that is news."""
        free = self.free_bytes()
        if free < self._least_bytes:
            self.set_low(True)
        elif free > 2 * self._least_bytes:
            self.set_low(False)

    def set_low(self, low: bool) -> None:
        """Have there be too little, or enough."""
        if low != self.is_low:
            self.is_low = low
            self._tell(StorageLow() if low else StorageRecovered())
