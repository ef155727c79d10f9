"""The content store: bytes in files that are named by their digest.

A file is there whole, synced and checked, or it is not there. What is still coming is partial,
and grows at its end only: after a break its length says where to go on, and the digest says in
the end whether what a crash has left of it was right.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import IO

from distributary.broker.addresses import is_digest
from distributary.errors import DistributaryError

__all__ = ["ContentStore", "PartialContent", "WrongContent", "digest_of_file"]

_PARTIAL = ".part"
_PARTIAL_S = 86_400.0
_READ_BYTES = 2**20


class WrongContent(DistributaryError):
    """Bytes are not what their digest says."""


def digest_of_file(path: Path) -> str:
    """Return the digest of what is in a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class ContentStore:
    """The content of one broker.

    Its methods may be called from any thread; partial content has one owner at a time.

    Parameters
    ----------
    folder
        Where the files are; made if it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def held(self) -> list[tuple[str, int]]:
        """Return the digest and the size of everything that is there, in order."""
        found = (path for path in self._folder.iterdir() if is_digest(path.name))
        return sorted((path.name, path.stat().st_size) for path in found)

    def size(self, digest: str) -> int | None:
        """Return how many bytes some content has; None if it is not there."""
        try:
            return self._path(digest).stat().st_size
        except FileNotFoundError:
            return None

    def read(self, digest: str, offset: int = 0, count: int = -1) -> bytes:
        """Return some bytes of content, or all."""
        with self._path(digest).open("rb") as file:
            file.seek(offset)
            return file.read(count)

    def put(self, data: bytes) -> str:
        """Keep bytes; return their digest when they are durable."""
        digest = hashlib.sha256(data).hexdigest()
        if self.size(digest) is None:
            with self.partial(digest, len(data), "made") as partial:
                partial.begin_anew()
                partial.write(data)
                partial.finish()
        return digest

    def partial(self, digest: str, size_bytes: int, name: str) -> PartialContent:
        """Return content that is to come, with what is there of it already.

        Parameters
        ----------
        name
            Who gets it: letters and digits. Several may be getting the same content.
        """
        path = self._path(digest)
        return PartialContent(path, path.with_name(f"{digest}.{name}{_PARTIAL}"), size_bytes)

    def free(self, digest: str) -> None:
        """Delete content, if it is there."""
        self._path(digest).unlink(missing_ok=True)

    def tidy(self, now_s: float) -> None:
        """Delete partial content that has not grown for long: nobody comes back to it."""
        for path in self._folder.glob(f"*{_PARTIAL}"):
            if path.stat().st_mtime < now_s - _PARTIAL_S:
                path.unlink()

    def _path(self, digest: str) -> Path:
        # It comes from elsewhere, and becomes the name of a file.
        assert is_digest(digest)
        return self._folder / digest


class PartialContent:
    """Content that is still to come.

    Attributes
    ----------
    size_bytes
        How many bytes it will have.
    there
        How many of them, from the first on, are there.
    resumed
        How many were there before.
    """

    def __init__(self, path: Path, partial: Path, size_bytes: int) -> None:
        self._path = path
        self._partial = partial
        self.size_bytes = size_bytes
        self._hash = hashlib.sha256()
        self._file: IO[bytes] = partial.open("a+b")
        self._file.seek(0)
        self.there = 0
        while data := self._file.read(_READ_BYTES):
            self._hash.update(data)
            self.there += len(data)
        self.resumed = self.there
        if self.there > size_bytes:
            self.begin_anew()

    def __enter__(self) -> PartialContent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; what is there of it stays."""
        self._file.close()

    def begin_anew(self) -> None:
        """Forget what was there."""
        self._file.truncate(0)
        self._hash, self.there, self.resumed = hashlib.sha256(), 0, 0

    def write(self, data: bytes) -> None:
        """Add bytes at the end."""
        self._file.write(data)
        self._hash.update(data)
        self.there += len(data)

    def finish(self) -> None:
        """Make it content, durably.

        Raises
        ------
        WrongContent
            When it is not what its digest says; then nothing of it is left.
        """
        self._file.flush()
        if self.there != self.size_bytes or self._hash.hexdigest() != self._path.name:
            self._partial.unlink(missing_ok=True)
            raise WrongContent(f"{self.there:,} bytes are not what the digest says")
        os.fsync(self._file.fileno())
        self._partial.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
