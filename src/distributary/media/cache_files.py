"""The files of a cache: named by digests, in 256 folders, safe from who else writes there.

The file of digest `abcd...` is `ab/cd...`. Folders are made for the owner alone. Below the
cache's own directory no symbolic link is followed, and what belongs to another user is left
alone, wherever the directory is: who can write to it must not be able to say what a
conversion makes, or which file is overwritten.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

__all__ = ["CacheFiles", "CachedFile", "disk_bytes"]

_FOLDER = re.compile(r"[0-9a-f]{2}")
_NAME = re.compile(r"[0-9a-f]{62}")
_TEMPORARY = re.compile(r"\.[0-9a-f]{62}\.[0-9a-f]{16}\.tmp")
# Whoever began to write a file this long ago is not writing it any more.
_TEMPORARY_SECONDS_MAX = 3600.0
_BLOCK_BYTES = 4096


def disk_bytes(size: int) -> int:
    """Return what a file of that size takes on disk: whole blocks, and at least one.

    Counting the sizes themselves would let a million failures of a few hundred bytes each
    take many times what the cache may.
    """
    return max(1, -(-size // _BLOCK_BYTES)) * _BLOCK_BYTES


class CachedFile(NamedTuple):
    """A file of the cache: when it was last used, under which digest, and what it takes on disk."""

    used_ns: int
    digest: str
    disk_bytes: int


class CacheFiles:
    """Whole files by digest. Every method may raise `OSError`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, digest: str, *, bytes_max: int) -> bytes | None:
        """Return the content of a file, or None if there is none that can be trusted."""
        with self._open(digest) as descriptor:
            if descriptor is None:
                return None
            size = os.fstat(descriptor).st_size
            if size > bytes_max:
                return None
            with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as file:
                return file.read(size)

    def write(self, digest: str, parts: tuple[bytes, ...], *, used_ns: int) -> None:
        """Write a file, whole or not at all; one of that name is replaced.

        Nothing waits for the disk: what a loss of power leaves half written is found out by
        the digest inside when it is read.
        """
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            (self._directory / digest[:2]).mkdir(mode=0o700)
        with self._folder(digest[:2]) as folder:
            temporary = f".{digest[2:]}.{secrets.token_hex(8)}.tmp"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            descriptor = os.open(temporary, flags, 0o600, dir_fd=folder)
            try:
                with os.fdopen(descriptor, "wb", buffering=0) as file:
                    for part in parts:
                        _write_all(file.fileno(), part)
                    os.utime(file.fileno(), ns=(used_ns, used_ns))
                os.rename(temporary, digest[2:], src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                _unlink(temporary, folder)
                raise

    def touch(self, digest: str, *, used_ns: int) -> None:
        """Note that a file was used."""
        with self._open(digest) as descriptor:
            if descriptor is not None:
                os.utime(descriptor, ns=(used_ns, used_ns))

    def remove(self, digest: str, *, used_ns: int | None = None) -> bool:
        """Remove a file, and return whether it is gone.

        With `used_ns`, it is left if it was used at any other time: somebody wants it after all.
        """
        with self._folder(digest[:2]) as folder:
            with suppress(FileNotFoundError):
                found = os.stat(digest[2:], dir_fd=folder, follow_symlinks=False)
                if used_ns is not None and found.st_mtime_ns != used_ns:
                    return False
                os.unlink(digest[2:], dir_fd=folder)
            return True

    def listing(self) -> list[CachedFile]:
        """Return every file, the least recently used first; remove temporary ones left behind."""
        found: list[CachedFile] = []
        now = time.time()
        for name in sorted(path.name for path in self._directory.iterdir()):
            if not _FOLDER.fullmatch(name):
                continue
            try:
                with self._folder(name) as folder, os.scandir(folder) as items:
                    for item in items:
                        with suppress(FileNotFoundError):  # others remove some too
                            status = item.stat(follow_symlinks=False)
                            if _NAME.fullmatch(item.name) and stat.S_ISREG(status.st_mode):
                                room = disk_bytes(status.st_size)
                                digest = name + item.name
                                found.append(CachedFile(status.st_mtime_ns, digest, room))
                            elif (
                                _TEMPORARY.fullmatch(item.name)
                                and status.st_mtime < now - _TEMPORARY_SECONDS_MAX
                            ):
                                _unlink(item.name, folder)
            except OSError:
                # One folder that cannot be read does not hide the others.
                continue
        return sorted(found)

    @contextmanager
    def _folder(self, name: str) -> Iterator[int]:
        """Open a folder of files, unless it is a link or belongs to somebody else."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        folder = os.open(self._directory / name, flags)
        try:
            _check_owner(folder)
            yield folder
        finally:
            os.close(folder)

    @contextmanager
    def _open(self, digest: str) -> Iterator[int | None]:
        """Open a file to read it: None if it is missing, and otherwise an ordinary file."""
        try:
            with self._folder(digest[:2]) as folder:
                # Without O_NONBLOCK a pipe of that name would stop us for good.
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
                descriptor = os.open(digest[2:], flags, dir_fd=folder)
        except FileNotFoundError:
            yield None
            return
        try:
            _check_owner(descriptor)
            regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            yield descriptor if regular else None
        finally:
            os.close(descriptor)


def _check_owner(descriptor: int) -> None:
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError("others can write here")


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _unlink(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
