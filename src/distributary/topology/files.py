"""Reading files that others wrote: within limits, and every complaint names the file."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from distributary.errors import BadInput

__all__ = ["file_bytes", "naming"]


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
