"""Results of conversions, kept on disk: the same content is not converted twice.

Several processes may share a directory. Files are written beside their place and renamed
into it, so that each sees whole entries or none. They agree on nothing else: each adds up
what it has written itself since it last looked at the directory, and looks again after an
eighth of the limit. With n processes that write at once the directory can therefore grow to
about 1 + (n - 1)/8 times the limit before the next of them looks; one alone keeps it exactly.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path

from distributary.arguments import checked
from distributary.errors import BadInput
from distributary.media.cache_entry import DamagedEntry, decode_entry, encode_entry
from distributary.media.cache_files import CachedFile, CacheFiles, disk_bytes
from distributary.media.cache_key import CacheKey
from distributary.media.failure import ConversionFailed
from distributary.media.limits import Limits
from distributary.media.result import ConversionResult

__all__ = ["Cache", "default_directory"]

# When the cache is full, this much is kept: to make room entry by entry, every one that
# comes would have to look at the whole directory.
_LOW_WATER_SHARE = 7 / 8


def default_directory() -> Path:
    """Return where a user's conversions are kept unless another place is given."""
    # The XDG Base Directory Specification ignores a path that is not absolute.
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():
        base = Path.home() / ".cache"
    return base / "distributary" / "media"


class Cache:
    """What conversions made, and how they failed, by content, formats and version.

    Nothing here raises because of the disk: a cache that cannot be read is empty, and one
    that cannot be written to keeps nothing. Threads may share it.

    Parameters
    ----------
    directory
        Where entries are kept; made, for its owner alone, with the first of them.
    bytes_max
        How much they may take on disk, in blocks of 4 KiB. Beyond it those go that were not
        used for longest, until an eighth is free.
    """

    @checked
    def __init__(self, directory: Path, *, bytes_max: int) -> None:
        if bytes_max < 1:
            raise BadInput("bytes_max", f"must be at least 1, not {bytes_max}")
        # Absolute, as the process may go to another directory.
        self._files = CacheFiles(Path(directory).absolute())
        self.bytes_max = bytes_max
        self._last_ns = 0
        self._reset()
        _CACHES.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._evicting = threading.Lock()
        self._found_bytes: int | None = None
        self._written_bytes = 0

    def forget(self) -> None:
        """Begin anew in a forked process: whoever held a lock may not have come along."""
        self._reset()

    def get(
        self, key: CacheKey, limits: Limits | None = None
    ) -> ConversionResult | ConversionFailed | None:
        """Return what was kept under a key, if it still answers the question.

        A failure counts only for limits that are no larger in any respect than those it had: with
        more time or memory it might succeed. And content that exceeds what may come out now is no
        result. Without limits, whatever was kept is the answer.
        """
        try:
            result = self._kept(key)
            if result is None or (limits is not None and not _answers(result, limits)):
                return None
            with suppress(OSError):
                # Where nothing can be written, what is there can still be used.
                self._files.touch(key.digest, used_ns=self._now_ns())
            return result
        except OSError:
            return None

    def put(self, key: CacheKey, result: ConversionResult | ConversionFailed) -> None:
        """Keep a result, if it is worth keeping and fits.

        A failure of the moment is not kept. Neither is one of content that is known to
        convert: it had too little time or memory.
        """
        try:
            if isinstance(result, ConversionFailed) and (
                not result.lasting or isinstance(self._kept(key), ConversionResult)
            ):
                return
            parts = encode_entry(key, result)
            room = disk_bytes(sum(map(len, parts)))
            if room > self.bytes_max:
                return
            self._files.write(key.digest, parts, used_ns=self._now_ns())
            with self._lock:
                self._written_bytes += room
            self._evict()
        except OSError:
            return

    def _kept(self, key: CacheKey) -> ConversionResult | ConversionFailed | None:
        """Return what is kept under a key, without counting as a use of it."""
        data = self._files.read(key.digest, bytes_max=self.bytes_max)
        if data is None:
            return None
        try:
            return decode_entry(data, key)
        except DamagedEntry:
            self._files.remove(key.digest)
            return None

    def _evict(self) -> None:
        """Remove what was not used for longest, if there may be too much."""
        with self._lock:
            found, written = self._found_bytes, self._written_bytes
        share = self.bytes_max * (1 - _LOW_WATER_SHARE)
        if found is not None and written <= share and found + written <= self.bytes_max:
            return
        # Whoever comes while another thread is at it need not wait for it.
        if not self._evicting.acquire(blocking=False):
            return
        try:
            with self._lock:
                self._found_bytes, self._written_bytes = None, 0
            kept = self._files.listing()
            total = sum(item.disk_bytes for item in kept)
            # Down to the share, or to the latest alone, which may be larger than that.
            latest = kept[-1].disk_bytes if kept else 0
            goal = max(self.bytes_max * _LOW_WATER_SHARE, min(latest, self.bytes_max))
            if total > self.bytes_max:
                for item in kept:
                    if total <= goal:
                        break
                    total -= self._remove(item)
            with self._lock:
                self._found_bytes = total
        finally:
            self._evicting.release()

    def _remove(self, item: CachedFile) -> int:
        """Remove an entry and return how much that frees; one that resists frees nothing."""
        try:
            return item.disk_bytes if self._files.remove(item.digest, used_ns=item.used_ns) else 0
        except OSError:
            return 0

    def _now_ns(self) -> int:
        """Return the time, later than ever before: no two uses are at the same time."""
        with self._lock:
            self._last_ns = max(time.time_ns(), self._last_ns + 1)
            return self._last_ns


def _answers(result: ConversionResult | ConversionFailed, limits: Limits) -> bool:
    if isinstance(result, ConversionResult):
        return len(result.content) <= limits.output_bytes
    allowed = result.limits.document()
    return all(amount <= allowed[name] for name, amount in limits.document().items())


_CACHES: weakref.WeakSet[Cache] = weakref.WeakSet()


def _forget_all() -> None:
    for cache in list(_CACHES):
        cache.forget()


os.register_at_fork(after_in_child=_forget_all)
