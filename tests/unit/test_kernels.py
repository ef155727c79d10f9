"""Compiled code is kept for later processes, and never the wrong code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

INNER = """\
from distributary.kernels import kernel

FACTOR = {factor}

@kernel
def inner(x):
    return x + {added}
"""
OUTER = """\
from inner import FACTOR, inner
from distributary.kernels import kernel

@kernel
def outer(x):
    return FACTOR * inner(x)
"""
COMPILES = """\
import sys
import numba.core.event as event
from outer import outer
with event.install_recorder("numba:compile") as compiled:
    print(outer({argument}), end=" ")
print(sum(happened.is_start for _, happened in compiled.buffer), "compiled")
"""


def write(folder: Path, *, factor: int, added: int) -> None:
    (folder / "inner.py").write_text(INNER.format(factor=factor, added=added), encoding="utf-8")
    (folder / "outer.py").write_text(OUTER, encoding="utf-8")


def start(folder: Path, argument: str) -> subprocess.Popen[str]:
    code = COMPILES.format(argument=argument)
    return subprocess.Popen(
        [sys.executable, "-B", "-c", code], cwd=folder, stdout=subprocess.PIPE, text=True
    )


def said(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    return output.strip()


def test_a_later_process_finds_what_was_compiled(tmp_path: Path) -> None:
    write(tmp_path, factor=2, added=1)
    assert said(start(tmp_path, "20")) == "42 2 compiled"
    assert said(start(tmp_path, "20")) == "42 0 compiled"
    assert said(start(tmp_path, "0.25")) == "2.5 2 compiled"
    assert said(start(tmp_path, "0.25")) == "2.5 0 compiled"


def test_code_is_compiled_anew_when_what_it_calls_has_changed(tmp_path: Path) -> None:
    """The file of the caller is the same; the code inside its code is not."""
    write(tmp_path, factor=2, added=1)
    assert said(start(tmp_path, "20")) == "42 2 compiled"
    write(tmp_path, factor=2, added=5)
    assert said(start(tmp_path, "20")) == "50 2 compiled"
    write(tmp_path, factor=3, added=5)
    assert said(start(tmp_path, "20")) == "75 2 compiled"


def test_processes_that_compile_one_loop_at_once_do_not_mix_up_signatures(tmp_path: Path) -> None:
    """With an index, two of them could give their code one name."""
    write(tmp_path, factor=2, added=1)
    arguments = {"20": "42", "0.25": "2.5", "1j": "(2+2j)", "True": "4"}
    for process in [start(tmp_path, argument) for argument in arguments]:
        said(process)
    for argument, result in arguments.items():
        assert said(start(tmp_path, argument)) == f"{result} 0 compiled"
