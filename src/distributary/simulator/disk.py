"""Disks: how much room there is, and what a host says when there is little."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from distributary.broker.host import StorageLow, StorageRecovered

__all__ = ["Disk"]

# From which share on a disk counts as nearly full, and below which it has recovered.
_LOW = 0.5
_RECOVERED = 0.4


class Disk:
    """A disk that takes so many bytes more than are on it, and no more.

    Parameters
    ----------
    journal
        What is on it, which changes with every commit that fits.
    room_bytes
        How much more it takes.
    say
        Told what the host is to say to its broker.

    Attributes
    ----------
    low
        Whether it is nearly full.
    failed
        How many commits did not fit.
    stopped
        Whether the broker has failed too often for that.
    """

    def __init__(
        self, journal: Mapping[str, bytes], room_bytes: int, say: Callable[[object], None]
    ) -> None:
        self._journal = journal
        self._used_bytes = 0
        self._room_bytes = room_bytes
        self._say = say
        self.low = False
        self.failed = 0
        self.stopped = False

    def takes(self, writes: Mapping[str, bytes | None]) -> bool:
        """Whether a commit fits; one that makes room always does."""
        more = 0
        for key, record in writes.items():
            before = self._journal.get(key)
            more -= 0 if before is None else len(key) + len(before)
            more += 0 if record is None else len(key) + len(record)
        if more > 0 and self._used_bytes + more > self._room_bytes:
            self.failed += 1
            return False
        self._used_bytes += more
        share = self._used_bytes / self._room_bytes
        if not self.low and share > _LOW:
            self.low = True
            self._say(StorageLow())
        elif self.low and share < _RECOVERED:
            self.recover()
        return True

    def recover(self) -> None:
        """Say that there is room again, if there was none."""
        if self.low:
            self.low = False
            self._say(StorageRecovered())
