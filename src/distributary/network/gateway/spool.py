"""Bodies of requests: a little is kept in memory, and what is larger goes to the disk at once."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import AsyncGenerator
from contextlib import aclosing
from http import HTTPStatus
from pathlib import Path
from typing import IO

from distributary.network.gateway.problems import Problem

__all__ = ["INLINE_BYTES_MAX", "Spool", "spooled"]

INLINE_BYTES_MAX = 64 * 2**10
"""The most data that goes inside of an event; more goes and comes by reference."""


class Spool:
    """Bytes that have come, with their digest.

    A file has no name, and is gone with whoever has it open.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._start = bytearray()
        self._file: IO[bytes] | None = None
        self._hash = hashlib.sha256()
        self._kept = 0
        self.size_bytes = 0

    @property
    def digest(self) -> str:
        """SHA-256 in hexadecimal digits."""
        return self._hash.hexdigest()

    @property
    def is_small(self) -> bool:
        """Whether it can go inside of an event."""
        return self.size_bytes <= INLINE_BYTES_MAX

    def write(self, data: bytes) -> None:
        """Add bytes."""
        self._hash.update(data)
        self.size_bytes += len(data)
        if self._file is None:
            self._start += data
            if len(self._start) <= INLINE_BYTES_MAX:
                return
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115
            data = bytes(self._start)
            self._start.clear()
        self._file.write(data)

    def read(self, offset: int = 0, count: int = -1) -> bytes:
        """Return some bytes, or all of them."""
        if self._file is None:
            end = None if count < 0 else offset + count
            return bytes(self._start[offset:end])
        self._file.seek(offset)
        return self._file.read(count)

    def keep(self) -> None:
        """Have it closed once more before its bytes are forgotten."""
        self._kept += 1

    def close(self) -> None:
        """Forget the bytes, unless somebody else keeps them."""
        self._kept -= 1
        if self._file is not None and self._kept < 0:
            self._file.close()


async def spooled(stream: AsyncGenerator[bytes, None], folder: Path, *, bytes_max: int) -> Spool:
    """Return all that a stream has, or raise a problem that names the limit."""
    spool = Spool(folder)
    try:
        # One that is left to be found later may be found where nothing more can be called.
        async with aclosing(stream):
            async for data in stream:
                if spool.size_bytes + len(data) > bytes_max:
                    raise Problem(
                        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                        f"the body is larger than {bytes_max:,} bytes",
                    )
                spool.write(data)
    except BaseException:
        spool.close()
        raise
    return spool
