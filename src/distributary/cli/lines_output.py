"""Where lines of results go, one after the other."""

from __future__ import annotations

import io
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from distributary.cli.output import ascii_only
from distributary.files import replacing

__all__ = ["WriteLine", "writing_lines"]

_WAITING_BYTES_MAX = 8 * 2**20

WriteLine: TypeAlias = Callable[[Mapping[str, object]], None]
"""Writes one object, as one line of JSON."""


@contextmanager
def writing_lines(path: Path | None, *, at_once: bool = False) -> Iterator[WriteLine]:
    """Yield a function that writes to the file, or to standard output.

    The file is there when all is written, or not at all; what was there before stays until
    then. On standard output too there is nothing unless all of it can be said: lines wait
    in a temporary file, beyond some megabytes on disk.

    Without a path it is standard output. With `at_once` every line goes out there when it is
    written: somebody may be waiting for it at the other end of a pipe.
    """
    if path is None:
        yield from _printing(at_once)
        return
    with replacing(path, "-o") as draft, draft.open("w", encoding="utf-8") as file:

        def write_line(document: Mapping[str, object]) -> None:
            file.write(json.dumps(document, ensure_ascii=False) + "\n")

        yield write_line


def _printing(at_once: bool) -> Iterator[WriteLine]:
    plain = ascii_only()

    def line_of(document: Mapping[str, object]) -> str:
        return json.dumps(document, ensure_ascii=plain) + "\n"

    if at_once:

        def print_line(document: Mapping[str, object]) -> None:
            sys.stdout.write(line_of(document))
            sys.stdout.flush()

        yield print_line
        return
    with tempfile.SpooledTemporaryFile(_WAITING_BYTES_MAX) as waiting:

        def keep_line(document: Mapping[str, object]) -> None:
            waiting.write(line_of(document).encode())

        yield keep_line
        waiting.seek(0)
        decoded = io.TextIOWrapper(waiting, encoding="utf-8", newline="")
        shutil.copyfileobj(decoded, sys.stdout)
