"""Content of any kind: read from a file or standard input, written whole or not at all."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO

from distributary.cli.output import check_output, shown_path
from distributary.errors import BadInput
from distributary.files import replacing

__all__ = ["check_content_output", "read_content", "write_content"]


def read_content(path: Path, *, bytes_max: int) -> bytes:
    """Return what is in a file; `-` is standard input.

    A file that is too large is refused before a byte of it is read, and a pipe as soon as
    it turns out to be.
    """
    place = shown_path(path)
    try:
        if str(path) == "-":
            return _limited(sys.stdin.buffer, place, bytes_max)
        if path.is_dir():
            raise BadInput(place, "is a directory")
        if path.is_file() and path.stat().st_size > bytes_max:
            raise _too_large(place, bytes_max, f"has {path.stat().st_size:,} bytes")
        with path.open("rb") as file:
            return _limited(file, place, bytes_max)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadInput(place, f"cannot be read: {reason}") from None


def _limited(file: BinaryIO, place: str, bytes_max: int) -> bytes:
    portions: list[bytes] = []
    rest = bytes_max + 1
    # In portions: asking for all that is allowed would set that much memory aside.
    while rest > 0 and (portion := file.read(min(rest, 2**20))):
        portions.append(portion)
        rest -= len(portion)
    if rest <= 0:
        raise _too_large(place, bytes_max, "has more")
    return b"".join(portions)


def _too_large(place: str, bytes_max: int, found: str) -> BadInput:
    return BadInput(
        place, f"{found}; at most {bytes_max:,} bytes are read", hint="--size allows more"
    )


def check_content_output(path: Path, place: str, *, text: bool) -> None:
    """Raise `BadInput` if content cannot go there, before any work is done.

    The path `-` is standard output, which may be a terminal that can show `text` alone.
    """
    if str(path) != "-":
        check_output(path, place)
    elif not text and sys.stdout.isatty():
        raise BadInput(place, "this is no text for a terminal", hint="write it to a file")


def write_content(content: bytes, path: Path, place: str) -> None:
    """Write to a file, so that it is there whole or as it was before; `-` is standard output."""
    if str(path) == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    with replacing(path, place) as draft:
        draft.write_bytes(content)
