"""Why a worker ended, or did not start: its exit status, and what it said itself.

What a worker prints while it starts is the one account of why it does not. It goes to a file
without a name until the worker is ready. From then on whatever is printed, by libraries that
read hostile content for instance, goes nowhere.
"""

from __future__ import annotations

import os
import re
import signal
from typing import BinaryIO

from distributary.media.failure import FailureKind, Unconvertible

__all__ = [
    "describe_status",
    "discard_start_errors",
    "explain_exit",
    "last_start_error",
    "one_line",
]

_CHARACTERS_MAX = 200
_ENDED_BY_LIMIT = (signal.SIGXCPU, signal.SIGALRM)
_ENDED_BY_OTHERS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_PATH_OR_ADDRESS = re.compile(r"(?<![\w./])(?:/[\w.+~@-]+){2,}/?| at 0x[0-9a-fA-F]+")
_TAIL_BYTES = 2000
_STANDARD_ERROR = 2


def describe_status(status: int) -> str:
    """Return how a worker ended, from its exit status as `subprocess` has it."""
    if status >= 0:
        return f"its worker ended with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"its worker ended by {name}"


def explain_exit(status: int) -> Unconvertible:
    """Return what became of a conversion whose worker ended in the middle of it."""
    if -status in _ENDED_BY_LIMIT:
        return Unconvertible("time", "it takes more processor time than allowed")
    if -status == signal.SIGABRT:
        # What libraries in C++ do when they get no memory; but they also do so for other reasons.
        reason = f"{describe_status(status)}, as many do that run out of memory"
        return Unconvertible("crashed", reason)
    kind: FailureKind = "killed" if -status in _ENDED_BY_OTHERS else "crashed"
    return Unconvertible(kind, describe_status(status))


def one_line(reason: object, *, otherwise: str = "it is not what it says") -> str:
    """Return a worker's reason as it may be shown: short, printable, without our paths."""
    text = reason if isinstance(reason, str) else ""
    text = " ".join(_PATH_OR_ADDRESS.sub("", text[: 10 * _CHARACTERS_MAX]).split())
    text = "".join(character for character in text if character.isprintable())
    if len(text) > _CHARACTERS_MAX:
        text = text[: _CHARACTERS_MAX - 3] + "..."
    return text or otherwise


def discard_start_errors() -> None:
    """Send what this process prints from now on nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _STANDARD_ERROR)
    os.close(nowhere)


def last_start_error(errors: BinaryIO) -> str:
    """Return the last line that a worker printed, which names the exception; often none."""
    try:
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - _TAIL_BYTES))
        lines = errors.read(_TAIL_BYTES).decode(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
