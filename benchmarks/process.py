"""A command in a process of its own: what it says, and how much memory it took.

A child starts with the peak memory of the process that started it, so a benchmark that has
planned something large would measure itself. This file is therefore run as a small program
between the two: it starts the command, waits for it, and prints the peak.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["DISTRIBUTARY", "peak_memory_bytes"]

DISTRIBUTARY = ("-c", "import sys; from distributary.cli import main; sys.exit(main())")
"""What the installed command `distributary` runs, for `peak_memory_bytes`."""

# `ru_maxrss` counts bytes on macOS and kibibytes elsewhere.
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024


def peak_memory_bytes(command: list[str]) -> int:
    """Run a Python command line, such as `-c CODE`, and return its peak memory.

    Raises
    ------
    RuntimeError
        When it does not exit with 0; with what it wrote to standard error.
    """
    result = subprocess.run(
        [sys.executable, "-I", "-S", str(Path(__file__)), sys.executable, *command],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {result.stderr.strip()}")
    return int(result.stdout.splitlines()[-1])


def _watch(command: list[str]) -> int:
    """Run the command, print its peak memory, and return its exit code."""
    child = os.posix_spawn(command[0], command, os.environ)
    _, status, usage = os.wait4(child, 0)
    print(usage.ru_maxrss * _MAXRSS_UNIT)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(_watch(sys.argv[1:]))
