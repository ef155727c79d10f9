"""Commands in a process of their own, and what they answer to bad input."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["check_one_line", "forked", "run", "untraced"]

_HERE = Path(__file__).parent
_PROCESS = "import sys; from distributary.cli import main; sys.exit(main())"


def untraced() -> dict[str, str]:
    """Return the environment of a process in which nothing is counted for coverage.

    It is interrupted all the time, or may write next to nothing, which what counts would not stand.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}


@cache
def forked() -> tuple[str, ...]:
    """Return what to write before a command to have it run as a fork of one server."""
    folder = tempfile.mkdtemp()
    path = f"{folder}/server"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.fork_server", str(listener.fileno())],
            cwd=_HERE.parent,
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
        )

    def end() -> None:
        server.communicate()
        shutil.rmtree(folder)

    atexit.register(end)
    return (sys.executable, "-IS", str(_HERE / "fork_client.py"), path)


def run(*arguments: str, fresh: bool = False, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run `distributary` with `arguments`; `options` are those of `subprocess.run`.

    If it is to be `fresh`, it loads everything itself: where the environment says what is there
    to be loaded, or is looked at while it is.
    """
    program = [sys.executable, "-c", _PROCESS] if fresh else [*forked(), "distributary"]
    return subprocess.run(
        [*program, *arguments],
        text=True,
        check=False,
        **{"capture_output": True, "timeout": 900, **options},
    )


def check_one_line(code: int, stdout: str, stderr: str, place: str) -> None:
    """Assert exit code 2, one line that names the place on standard error, nothing else."""
    assert code == 2
    assert stdout == ""
    assert stderr.count("\n") == 1
    assert stderr.startswith("error: ")
    assert stderr.endswith("\n")
    assert place in stderr
    assert "Traceback" not in stderr
