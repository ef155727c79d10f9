"""Commands in a process of their own, and what they answer to bad input."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

__all__ = ["check_one_line", "run"]

_PROCESS = "import sys; from distributary.cli import main; sys.exit(main())"


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run `distributary` with `arguments`; `options` are those of `subprocess.run`."""
    return subprocess.run(
        [sys.executable, "-c", _PROCESS, *arguments],
        text=True,
        check=False,
        **{"capture_output": True, "timeout": 300, **options},
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
