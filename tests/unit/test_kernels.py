"""Loops are compiled once for all constants, and kept: never the wrong code."""

from __future__ import annotations

import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numba
import numpy as np
import pytest
from tests.commands import forked

from distributary.arrays import IntArray
from distributary.kernels import clock, inner_kernel, kernel

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
sys.dont_write_bytecode = True
import numba.core.event as event
from outer import outer
with event.install_recorder("numba:compile") as compiled:
    print(outer({argument}), end=" ")
print(sum(happened.is_start for _, happened in compiled.buffer), "compiled")
"""
TIMES = """\
import sys, time
sys.dont_write_bytecode = True
from distributary.kernels import clock
from outer import outer
began, passed = clock(), time.perf_counter()
outer(20)
told, passed = clock() - began, time.perf_counter() - passed
began = clock()
time.sleep(0.05)
print(0.0 <= told < passed / 5, clock() - began >= 0.04)
"""


def write(folder: Path, *, factor: int, added: int) -> None:
    (folder / "inner.py").write_text(INNER.format(factor=factor, added=added), encoding="utf-8")
    (folder / "outer.py").write_text(OUTER, encoding="utf-8")


def start(folder: Path, argument: str) -> subprocess.Popen[str]:
    command = [*forked(), "python", "-c", COMPILES.format(argument=argument)]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)


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


def test_a_command_says_that_it_compiles_and_only_when_it_does(tmp_path: Path) -> None:
    """There is no terminal here: whoever reads a log wants to know as well."""
    write(tmp_path, factor=2, added=1)
    script = (
        "import logging; logging.getLogger('distributary.kernels').disabled = False\n"
        "from distributary.cli import announce_compiling; announce_compiling()\n"
        "from outer import outer; print(outer(20))"
    )
    for told in (["compiling, once: this has not run on this machine before"], []):
        command = [*forked(), "python", "-c", script]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert ran.stdout == "42\n"
        assert ran.stderr.splitlines() == told


def test_the_clock_of_planners_stands_still_while_loops_are_compiled(tmp_path: Path) -> None:
    write(tmp_path, factor=2, added=1)
    command = [*forked(), "python", "-c", TIMES]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == "True True\n"


def test_the_clock_goes_on_when_the_last_has_compiled() -> None:
    """Threads compile at once, and a loop has those compiled that it calls."""
    inside, go_on = threading.Event(), threading.Event()

    def compile_something() -> None:
        inside.set()
        assert go_on.wait(60)

    began = clock()
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(clock.stopping(compile_something))
        assert inside.wait(60)
        clock.stopping(clock.stopping(time.sleep))(0.01)
        stopped = clock()
        time.sleep(0.01)
        assert began <= stopped == clock()
        go_on.set()
        waiting.result()
    time.sleep(0.01)
    assert stopped + 0.005 < clock()


def test_code_is_compiled_anew_when_what_it_calls_has_changed(tmp_path: Path) -> None:
    """The file of the caller is the same; the code inside its code is not."""
    write(tmp_path, factor=2, added=1)
    assert said(start(tmp_path, "20")) == "42 2 compiled"
    write(tmp_path, factor=2, added=5)
    assert said(start(tmp_path, "20")) == "50 2 compiled"
    write(tmp_path, factor=3, added=5)
    assert said(start(tmp_path, "20")) == "75 2 compiled"


def test_damaged_code_is_compiled_anew(tmp_path: Path) -> None:
    write(tmp_path, factor=2, added=1)
    assert said(start(tmp_path, "20")) == "42 2 compiled"
    files = list((tmp_path / "__pycache__").glob("*.nbc"))
    assert len(files) == 2
    for path in files:
        path.write_bytes(path.read_bytes()[:100])
    assert said(start(tmp_path, "20")) == "42 2 compiled"
    assert said(start(tmp_path, "20")) == "42 0 compiled"


def test_processes_that_compile_one_loop_at_once_do_not_mix_up_signatures(tmp_path: Path) -> None:
    """With an index, two of them could give their code one name."""
    write(tmp_path, factor=2, added=1)
    arguments = {"20": "42", "0.25": "2.5", "1j": "(2+2j)", "True": "4"}
    for process in [start(tmp_path, argument) for argument in arguments]:
        said(process)
    for argument, result in arguments.items():
        assert said(start(tmp_path, argument)) == f"{result} 0 compiled"


@inner_kernel
def _shifted(numbers: IntArray, at: int, by: int) -> int:
    return int(numbers[at]) + by


@kernel
def _found(numbers: IntArray, wanted: int) -> int:
    best = -1
    for i in range(len(numbers)):
        if _shifted(numbers, i, 0) == wanted and _shifted(numbers, 0, 1) > 0:
            best = i
            if _shifted(numbers, best, -1) < 0:
                break
    return best


def test_a_kernel_is_compiled_once_whatever_constants_it_is_called_with() -> None:
    assert _found(np.array([3, 5, 7]), 5) == 1
    inner, types = cast(Any, _shifted), cast(Any, numba.types)
    for at, by in ((0, 1), (0, -1), (2, 0)):
        inner.get_call_template((types.int64[::1], types.literal(at), types.literal(by)), {})
    assert inner.signatures == [(types.int64[::1], types.int64, types.int64)]


def test_an_inner_kernel_refuses_to_be_called_from_python() -> None:
    """Before and after it is compiled: there is no code for that, and Numba would not look."""
    numbers = np.array([3, 5, 7])
    with pytest.raises(TypeError, match="_shifted can only be called by other kernels"):
        _shifted(numbers, 0, 1)
    assert _found(numbers, 7) == 2
    with pytest.raises(TypeError, match="_shifted can only be called by other kernels"):
        _shifted(numbers, 0, 1)
