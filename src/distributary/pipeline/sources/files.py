"""Files that rows are read from: what they are called, which form they have, how to open them.

Executors open files themselves, so a file must be seen under one name by all of them: on a
single machine any path will do, on a cluster a shared file system, or a URL of a store that
Arrow knows (`s3://`, `gs://`, `hdfs://`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from distributary.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import fs

__all__ = [
    "CSV",
    "JSON",
    "PARQUET",
    "FileFormat",
    "SourceFile",
    "format_of",
    "found_files",
    "open_bytes",
    "open_file",
    "plain_path",
]

CSV, JSON, PARQUET = "csv", "json", "parquet"

_FORMATS = {".csv": CSV, ".json": JSON, ".jsonl": JSON, ".ndjson": JSON, ".parquet": PARQUET}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_LOCAL = re.compile(r"file:(?://)?(?=/)")


class FileFormat(NamedTuple):
    """How rows are written in a file.

    Packing is how lines are compressed, as Arrow calls it; None when they are not.
    """

    kind: str
    compression: str | None


class SourceFile(NamedTuple):
    """A file and its length in bytes."""

    path: str
    length: int


def format_of(path: str) -> FileFormat:
    """Return the form that the end of a name promises, or raise `BadInput`."""
    name = PurePosixPath(path.lower())
    compression = _COMPRESSIONS.get(name.suffix)
    kind = _FORMATS.get(PurePosixPath(name.stem).suffix if compression else name.suffix)
    if kind is None or (compression and kind == PARQUET):
        raise BadInput(
            path,
            "has a name that does not tell its format",
            hint=f"it must end with one of {', '.join(_FORMATS)}; lines may be packed as "
            f"{', '.join(_COMPRESSIONS)}",
        )
    return FileFormat(kind, compression)


def plain_path(name: str) -> str:
    """Return a name as a path where it is one of this machine, else as the URL it is."""
    if local := _LOCAL.match(name):
        return name[local.end() :]
    return name if _is_url(name) else str(Path(name).absolute())


def found_files(names: Sequence[str]) -> list[SourceFile]:
    """Return the files that names stand for, in the order of their paths.

    A folder stands for all files in it and below, except those that begin with a dot or an
    underscore, as the notes do that writers leave there. A file that is named twice is
    there once.

    Raises `BadInput` when something does not exist, a folder is empty, or a file has an
    unknown form.
    """
    found: dict[str, int] = {}
    for name in names:
        found.update(_below(plain_path(name)))
    if not found:
        raise BadInput("FILES", "are none")
    for path in found:
        format_of(path)
    return [SourceFile(path, length) for path, length in sorted(found.items())]


@contextmanager
def open_file(path: str) -> Iterator[pa.NativeFile]:
    """Open a file so that one can move about in it; what goes wrong names the file."""
    with _explained(path):
        system, place = _system(path)
        with system.open_input_file(place) as file:
            yield file


@contextmanager
def open_bytes(path: str, compression: str | None) -> Iterator[pa.NativeFile]:
    """Open a file to be read from its beginning, unpacked."""
    import pyarrow

    with open_file(path) as file:
        if compression is None:
            yield file
            return
        with pyarrow.CompressedInputStream(file, compression) as unpacked:
            yield unpacked


@contextmanager
def _explained(path: str) -> Iterator[None]:
    import pyarrow

    try:
        yield
    except FileNotFoundError:
        raise BadInput(path, "does not exist") from None
    except BadInput:
        raise
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise BadInput(path, f"cannot be read: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    reason = getattr(error, "strerror", None) or str(error).split("Detail:")[0]
    first = next(iter(str(reason).strip().splitlines()), type(error).__name__)
    return first[:1].lower() + first[1:]


def _below(path: str) -> Iterable[tuple[str, int]]:
    from pyarrow import fs

    with _explained(path):
        system, place = _system(path)
        item = system.get_file_info(place)
        if item.type == fs.FileType.NotFound:
            raise BadInput(path, "does not exist")
        if item.is_file:
            return [(path, item.size)]
        prefix = path.rstrip("/")
        inside = [
            (f"{prefix}{below.path[len(place.rstrip('/')) :]}", below.size)
            for below in system.get_file_info(fs.FileSelector(place, recursive=True))
            if below.is_file and not _is_hidden(below.path[len(place) :])
        ]
    if not inside:
        raise BadInput(path, "is a folder without files")
    return inside


def _is_hidden(path: str) -> bool:
    return any(part.startswith((".", "_")) for part in PurePosixPath(path).parts)


def _is_url(name: str) -> bool:
    # One letter before a colon is a drive, not a scheme.
    return len(urlsplit(name).scheme) > 1 and "://" in name


def _system(path: str) -> tuple[fs.FileSystem, str]:
    from pyarrow import fs

    if not _is_url(path):
        return fs.LocalFileSystem(), path
    try:
        found: tuple[Any, str] = fs.FileSystem.from_uri(path)
    except ValueError as error:
        raise BadInput(path, f"is on no file system that Arrow knows: {_reason(error)}") from None
    return found
