"""Files: what others wrote is read within limits, what we write is there whole or not at all.

Every complaint names the file, or the option that named it.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from distributary.errors import BadInput, quoted

__all__ = ["drafted", "file_bytes", "naming", "replacing", "writing"]


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Turn whatever goes wrong with a file, or in it, into a `BadInput` that names it."""
    place = str(path) if str(path).isprintable() else repr(str(path))
    try:
        yield
    except BadInput as error:
        raise error.within(place) from None
    except FileNotFoundError:
        raise BadInput(place, "does not exist") from None
    except IsADirectoryError:
        raise BadInput(place, "is a directory, not a file") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadInput(place, f"cannot be read: {reason.lower()}") from None
    except MemoryError:
        raise BadInput(place, "does not fit into memory") from None


def file_bytes(path: Path | str, *, bytes_max: int) -> bytes:
    """Return what is in a file, unpacked if its name ends in `.gz`.

    Raises `BadInput` when that is more than `bytes_max`; a small packed file can hold a
    great deal, so no more than that is ever unpacked.
    """
    try:
        if Path(path).suffix == ".gz":
            with gzip.open(path) as packed:
                data = packed.read(bytes_max + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(bytes_max + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise BadInput("document", "is not a whole gzip file") from None
    except ValueError as error:
        raise BadInput("document", f"cannot be read: {error}") from None
    if len(data) > bytes_max:
        raise BadInput("document", f"is larger than {bytes_max // 2**20:,} MiB")
    return data


@contextmanager
def drafted(path: Path | str) -> Iterator[Path]:
    """Yield where to write what shall stand at `path`: a draft, moved there when it is complete.

    Whoever reads `path` sees what was there before or what is there now, never half of it.
    Through a symbolic link, what it points to is replaced, not the link. A pipe or a device is
    written to as it is: there is nothing to replace.
    """
    try:
        target = Path(path).resolve()
    except ValueError as error:
        raise OSError(str(error)) from None  # A name that no file can have.
    replaced = target.is_file() or not target.exists()
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp") if replaced else target
    try:
        yield draft
        if replaced:
            draft.replace(target)
    finally:
        if replaced:
            draft.unlink(missing_ok=True)


@contextmanager
def replacing(path: Path | str, place: str) -> Iterator[Path]:
    """Do as `drafted`; if it cannot be written, raise `BadInput` about the option `place`."""
    with writing(path, place), drafted(path) as draft:
        yield draft


@contextmanager
def writing(path: Path | str, place: str) -> Iterator[None]:
    """Turn a failure to write a file, or into a folder, into a `BadInput` about `place`."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadInput(place, f"{quoted(path)} cannot be written: {reason}") from None
