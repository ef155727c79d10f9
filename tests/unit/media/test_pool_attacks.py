"""Whatever program a converter runs, it takes no more than its limits, and its caller goes on."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.scripts_pool import eventually, failure, gone, plugged_in, run

from distributary.media.limits import Limits
from distributary.media.pool import Pool
from distributary.media.worker_directory import WorkerDirectory, empty

pytestmark = [
    pytest.mark.usefixtures("scripts"),
    pytest.mark.skipif(sys.platform != "linux", reason="what Linux alone enforces"),
]

MEBIBYTE = 1 << 20
SMALL = Limits(seconds=60, memory_bytes=100 * MEBIBYTE, input_bytes=MEBIBYTE, output_bytes=MEBIBYTE)


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with plugged_in(tmp_path_factory.mktemp("plugin")):
        yield


@pytest.fixture(scope="module")
def pool(scripts: None) -> Iterator[Pool]:
    with Pool(1, limits=SMALL) as pool:
        yield pool


@pytest.mark.parametrize(
    ("program", "kind", "reason"),
    [
        pytest.param(
            """
for number in range(10_000):
    Path(str(number)).write_bytes(bytes(1 << 20))
threading.Event().wait()
""",
            "output",
            "temporary files",
            id="many files",
        ),
        pytest.param(
            """
files = []
for number in range(100):
    files.append(open("nameless", "wb"))
    files[-1].write(bytes(1 << 20))
    files[-1].flush()
    os.unlink("nameless")
threading.Event().wait()
""",
            "output",
            "temporary files",
            id="files without a name",
        ),
        pytest.param(
            """
for number in range(20):
    os.mkdir("d" * 255)
    os.chdir("d" * 255)
for number in range(100):
    Path(str(number)).write_bytes(bytes(1 << 20))
threading.Event().wait()
""",
            "output",
            "temporary files",
            id="files too deep to be named",
        ),
        pytest.param(
            """
import resource
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
blocks = []
while True:
    blocks.append(b"x" * (1 << 20))
""",
            "memory",
            "104,857,600 bytes of memory",
            id="memory beyond the limit of a conversion",
        ),
        pytest.param(
            """
import _thread
threading.stack_size(1 << 16)
gate = _thread.allocate_lock()
gate.acquire()
try:
    while True:
        _thread.start_new_thread(gate.acquire, ())
except RuntimeError:
    pass
threading.Event().wait()
""",
            "crashed",
            "threads",
            id="threads",
        ),
        pytest.param(
            """
library = ctypes.CDLL(None)
library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
for number in range(100):
    with open("mapped", "w+b") as file:
        file.write(bytes(1 << 20))
        file.flush()
        library.mmap(None, 4096, 1, 2, file.fileno(), 0)
    os.unlink("mapped")
threading.Event().wait()
""",
            "output",
            "temporary files",
            id="files without a name that are mapped",
        ),
        pytest.param(
            """
def fill():
    while True:
        files.append(open("nameless", "wb"))
        os.unlink("nameless")
        files[-1].write(bytes(1 << 19))
        files[-1].flush()
        threading.Event().wait(0.1)

files = []
threading.Thread(target=fill).start()
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
""",
            "crashed",
            "main thread",
            id="a main thread that is gone and hides what others do",
        ),
        pytest.param(
            """
import socket
for number in range(3, 40):
    try:
        socket.socket(fileno=os.dup(number)).shutdown(socket.SHUT_WR)
    except OSError:
        pass
threading.Event().wait()
""",
            "crashed",
            "hung up",
            id="a channel that is closed by who goes on",
        ),
    ],
)
def test_who_takes_too_much_is_ended_long_before_its_time_is_over(
    pool: Pool, program: str, kind: str, reason: str
) -> None:
    directory = Path(run(pool, "directory").decode())
    failed = failure(pool, f"python {program}")
    assert (failed.kind, reason in failed.reason) == (kind, True), failed.reason
    assert run(pool, "echo alive") == b"alive"
    assert not directory.exists()


def test_a_thread_that_stays_behind_is_ended_too(pool: Pool) -> None:
    """Between two conversions nobody waits for a worker, but it is looked at all the same."""
    pid = int(run(pool, "pid"))
    program = """
def fill():
    number = 0
    while True:
        number += 1
        Path(str(number)).write_bytes(bytes(1 << 20))
threading.Thread(target=fill, daemon=True).start()
result = b"done"
"""
    assert run(pool, f"python {program}") == b"done"
    eventually(lambda: gone(pid), seconds_max=60)
    assert run(pool, "echo alive") == b"alive"


@pytest.mark.parametrize("end", ["os._exit(0)", "result = b''"], ids=["crash", "answer"])
def test_folders_however_deep_and_closed_are_removed(pool: Pool, end: str) -> None:
    directory = Path(run(pool, "directory").decode())
    program = f"""
os.mkdir("closed", 0)
os.symlink("/", "link")
os.mkfifo("pipe")
for _ in range(300):
    os.mkdir("deep")
    os.chdir("deep")
os.mkdir("closed", 0)
{end}
"""
    if end.startswith("os"):
        # Or its caller has noticed what it is at.
        assert failure(pool, f"python {program}").kind in {"crashed", "output"}
    else:
        run(pool, f"python {program}")
    assert json.loads(run(pool, "list")) == []
    if end.startswith("os"):
        assert not directory.exists()


def test_a_directory_of_any_depth_is_emptied(tmp_path: Path) -> None:
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        for _ in range(1100):
            Path("d").mkdir()
            Path("f").touch()
            os.chdir("d")
    finally:
        os.chdir(before)
    assert empty(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_answer_to_a_question_that_was_not_asked_is_not_taken_for_the_next(pool: Pool) -> None:
    started = b'{"started": true}'
    forged = b'{"seconds": 0.5, "grown_bytes": 0, "processor_seconds": 0.0}'
    frames = b"".join(
        len(header).to_bytes(4) + len(body).to_bytes(8) + header + body
        for header, body in ((b'{"seconds": 0.1}', b"first"), (started, b""), (forged, b"forged"))
    )
    program = f"""
for number in range(3, 64):
    try:
        socket.socket(fileno=os.dup(number)).sendall(bytes.fromhex("{frames.hex()}"))
    except OSError:
        pass
"""
    assert run(pool, f"python {program}") == b"first"
    assert run(pool, "echo true") == b"true"


def test_a_directory_whose_caller_is_gone_is_removed_by_the_next_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    kept = WorkerDirectory()
    stale = tmp_path / "distributary-worker-stale"
    (stale / "folder").mkdir(parents=True)
    (stale / "folder" / "left").touch()
    other = tmp_path / "distributary-worker-link"
    other.symlink_to(tmp_path / "precious")
    (tmp_path / "precious").mkdir()
    with monkeypatch.context() as patch:
        # Once a process is enough; this is to be the next one.
        from distributary.media import worker_directory

        patch.setattr(worker_directory, "_remove_stale", worker_directory._remove_stale.__wrapped__)
        another = WorkerDirectory()
    assert not stale.exists()
    assert kept.path.is_dir()
    assert (tmp_path / "precious").is_dir()
    kept.remove()
    another.remove()
    assert {path.name for path in tmp_path.iterdir()} == {other.name, "precious"}


def test_a_worker_leaves_no_process_and_stays_with_its_caller(pool: Pool) -> None:
    pid = int(run(pool, "pid"))
    program = """
library = ctypes.CDLL(None)
library.prctl(1, 0, 0, 0, 0)
library.setsid()
signal_now = ctypes.c_int()
library.prctl(2, ctypes.byref(signal_now), 0, 0, 0)
result = str(signal_now.value).encode()
"""
    assert run(pool, f"python {program}") == b"9"
    assert psutil.Process(pid).children() == []
