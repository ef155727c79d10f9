"""What a worker prints while it starts: the one account of why it does not.

It goes to a file in the worker's directory until the worker is ready. From then on whatever
is printed, by libraries that read hostile content for instance, goes nowhere.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

__all__ = ["discard_start_errors", "last_start_error", "open_start_errors"]

_NAME = "start-errors"
_TAIL_BYTES = 2000
_STANDARD_ERROR = 2


def open_start_errors(directory: Path) -> BinaryIO:
    """Return the file that a worker is started with as its standard error."""
    return (directory / _NAME).open("wb")


def discard_start_errors(directory: Path) -> None:
    """Send what this process prints from now on nowhere, and remove the file."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _STANDARD_ERROR)
    os.close(nowhere)
    (directory / _NAME).unlink(missing_ok=True)


def last_start_error(directory: Path) -> str:
    """Return the last line that a worker printed, which names the exception; often none."""
    try:
        with (directory / _NAME).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = file.read(_TAIL_BYTES).decode(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
