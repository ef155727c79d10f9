"""A disk that remembers what SQLite has written, and what it has synced, to lose the rest.

`kill -9` proves nothing about syncs: the system writes for a process that is gone. Here the way
from SQLite to its files is recorded, and a crash of the machine is played back: what was synced is
there, and of what was not, any part may be, in any order.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import random
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_OK = 0
_Pointer = ctypes.c_void_p
_Int, _Int64 = ctypes.c_int, ctypes.c_int64
_Write = ctypes.CFUNCTYPE(_Int, _Pointer, _Pointer, _Int, _Int64)
_Truncate = ctypes.CFUNCTYPE(_Int, _Pointer, _Int64)
_Sync = ctypes.CFUNCTYPE(_Int, _Pointer, _Int)
_Open = ctypes.CFUNCTYPE(_Int, _Pointer, ctypes.c_char_p, _Pointer, _Int, _Pointer)
_Delete = ctypes.CFUNCTYPE(_Int, _Pointer, ctypes.c_char_p, _Int)


class _Methods(ctypes.Structure):
    """`sqlite3_io_methods`, as far as it concerns writing; the rest is passed on as it is."""

    _fields_ = (
        ("version", _Int),
        ("close", _Pointer),
        ("read", _Pointer),
        ("write", _Write),
        ("truncate", _Truncate),
        ("sync", _Sync),
        ("others", _Pointer * 13),
    )


class _Vfs(ctypes.Structure):
    """`sqlite3_vfs`, likewise."""

    _fields_ = (
        ("version", _Int),
        ("file_bytes", _Int),
        ("path_bytes", _Int),
        ("next", _Pointer),
        ("name", ctypes.c_char_p),
        ("data", _Pointer),
        ("open", _Open),
        ("delete", _Delete),
        ("others", _Pointer * 14),
    )


@dataclass(frozen=True)
class Done:
    """Something done to a file; a mark, where it is to none.

    `kind` is write, truncate, sync, delete or mark. A file whose folder is synced stays deleted.
    """

    kind: str
    file: str = ""
    offset: int = 0
    data: bytes = b""
    folder_synced: bool = False


@dataclass
class RecordedDisk:
    """What was done to files through one VFS, in order."""

    name: str
    done: list[Done] = field(default_factory=list)

    def mark(self) -> None:
        """Remember that what came so far has been promised."""
        self.done.append(Done("mark"))

    def crash(self, folder: Path, after: int, rng: random.Random | None) -> int:
        """Write the files as a crash may leave them; return how often they were marked before.

        Parameters
        ----------
        after
            How many steps had been done.
        rng
            Decides which writes that were not synced have reached the disk; without it, none.
        """
        done = self.done[:after]
        files: dict[str, bytearray] = {}
        synced = {step.file: place for place, step in enumerate(done) if step.kind == "sync"}
        for place, step in enumerate(done):
            if step.kind in ("mark", "sync"):
                continue
            lost = place > synced.get(step.file, -1) and not step.folder_synced
            if lost and (rng is None or rng.random() < 0.5):
                continue
            if step.kind == "delete":
                files.pop(step.file, None)
                continue
            content = files.setdefault(step.file, bytearray())
            if step.kind == "truncate":
                del content[step.offset :]
                continue
            data = step.data
            if lost and rng is not None and rng.random() < 0.3:
                data = data[: rng.randrange(len(data) + 1)]
            content.extend(bytes(max(0, step.offset - len(content))))
            content[step.offset : step.offset + len(data)] = data
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
        return sum(step.kind == "mark" for step in done)


@contextmanager
def recorded_disk(name: str) -> Iterator[RecordedDisk]:
    """Have SQLite know a VFS of this name that records what is written through it."""
    found = ctypes.util.find_library("sqlite3")
    if found is None:
        pytest.skip("SQLite is part of this Python, and cannot be reached beside it")
    library: Any = ctypes.CDLL(found)
    library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    library.sqlite3_libversion.restype = ctypes.c_char_p
    if library.sqlite3_libversion().decode() != sqlite3.sqlite_version:
        pytest.skip("this Python uses another SQLite than the system has")
    usual = library.sqlite3_vfs_find(None).contents
    disk = RecordedDisk(name)
    files: dict[int, tuple[str, Any]] = {}
    kept: list[Any] = []

    def opened(vfs: int, path: bytes | None, file: int, flags: int, out: int) -> int:
        code = int(usual.open(ctypes.addressof(usual), path, file, flags, out))
        place = ctypes.cast(file, ctypes.POINTER(ctypes.POINTER(_Methods)))
        if code == _OK and path is not None and place.contents:
            methods = place.contents.contents
            files[file] = (Path(path.decode()).name, methods)
            own = _Methods.from_buffer_copy(methods)
            own.write, own.truncate, own.sync = write, truncate, sync
            kept.append(own)
            place[0] = ctypes.pointer(own)
        return code

    def written(file: int, data: int, size: int, offset: int) -> int:
        path, methods = files[file]
        disk.done.append(Done("write", path, offset, ctypes.string_at(data, size)))
        return int(methods.write(file, data, size, offset))

    def truncated(file: int, size: int) -> int:
        path, methods = files[file]
        disk.done.append(Done("truncate", path, size))
        return int(methods.truncate(file, size))

    def was_synced(file: int, flags: int) -> int:
        path, methods = files[file]
        code = int(methods.sync(file, flags))
        disk.done.append(Done("sync", path))
        return code

    def deleted(vfs: int, path: bytes, sync_folder: int) -> int:
        name = Path(path.decode()).name
        disk.done.append(Done("delete", name, folder_synced=bool(sync_folder)))
        return int(usual.delete(ctypes.addressof(usual), path, sync_folder))

    write, truncate, sync = _Write(written), _Truncate(truncated), _Sync(was_synced)
    vfs = _Vfs.from_buffer_copy(usual)
    vfs.name, vfs.open, vfs.delete = name.encode(), _Open(opened), _Delete(deleted)
    assert library.sqlite3_vfs_register(ctypes.byref(vfs), 0) == _OK
    try:
        yield disk
    finally:
        library.sqlite3_vfs_unregister(ctypes.byref(vfs))
