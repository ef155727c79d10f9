"""What is said about a worker that ended, and of what it said itself."""

from __future__ import annotations

import re
import signal

from distributary.media.failure import FailureKind, Unconvertible

__all__ = ["end_explained", "one_line", "status_said"]

_CHARACTERS_MAX = 200
_ENDED_BY_LIMIT = (signal.SIGXCPU, signal.SIGALRM)
_ENDED_BY_OTHERS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_PATH_OR_ADDRESS = re.compile(r"(?<![\w./])(?:/[\w.+~@-]+){2,}/?| at 0x[0-9a-fA-F]+")


def status_said(status: int) -> str:
    """Return how a worker ended, from its exit status as `subprocess` has it."""
    if status >= 0:
        return f"its worker ended with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"its worker ended by {name}"


def end_explained(status: int) -> Unconvertible:
    """Return what became of a conversion whose worker ended in the middle of it."""
    if -status in _ENDED_BY_LIMIT:
        return Unconvertible("time", "it takes more processor time than allowed")
    if -status == signal.SIGABRT:
        # What libraries in C++ do when they get no memory; but they also do so for other reasons.
        reason = f"{status_said(status)}, as many do that run out of memory"
        return Unconvertible("crashed", reason)
    kind: FailureKind = "killed" if -status in _ENDED_BY_OTHERS else "crashed"
    return Unconvertible(kind, status_said(status))


def one_line(reason: object, *, otherwise: str = "it is not what it says") -> str:
    """Return a worker's reason as it may be shown: short, printable, without our paths."""
    text = reason if isinstance(reason, str) else ""
    text = " ".join(_PATH_OR_ADDRESS.sub("", text[: 10 * _CHARACTERS_MAX]).split())
    text = "".join(character for character in text if character.isprintable())
    if len(text) > _CHARACTERS_MAX:
        text = text[: _CHARACTERS_MAX - 3] + "..."
    return text or otherwise
