"""One job at a time writes a table; which one is said to the other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from distributary.errors import TableBusy
from distributary.pipeline.table_lock import lock_table, unlock_table

_HOLDER = """
import sys
from pathlib import Path
from distributary.pipeline.table_lock import lock_table
lock_table(Path(sys.argv[1]), "deliveries")
print("locked", flush=True)
sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    return process


def test_a_table_that_another_process_writes_is_refused_naming_both(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        with pytest.raises(TableBusy) as caught:
            lock_table(tmp_path, "deliveries")
        assert str(caught.value) == (
            f"{tmp_path}/deliveries: another job, process '{process.pid}', is writing this "
            "table; hint: start this one again when the other has ended"
        )
        lock_table(tmp_path, "rates")
        unlock_table(tmp_path, "rates")
        process.communicate("")


def test_the_lock_of_a_killed_job_is_gone(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        process.kill()
        process.wait()
    lock_table(tmp_path, "deliveries")
    unlock_table(tmp_path, "deliveries")
    assert list(tmp_path.iterdir()) == []


def test_a_process_may_lock_again_what_it_has(tmp_path: Path) -> None:
    descriptors = len(list(Path("/dev/fd").iterdir()))
    for _ in range(2):
        lock_table(tmp_path / "new", "deliveries")
    unlock_table(tmp_path / "new", "deliveries")
    unlock_table(tmp_path / "new", "deliveries")
    assert len(list(Path("/dev/fd").iterdir())) == descriptors
    assert list((tmp_path / "new").iterdir()) == []
