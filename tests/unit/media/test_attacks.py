"""What a converter that was taken over tries, as root and not, on newer and older kernels."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what Linux alone enforces")

_NOBODY = 65534
# Root may have its Python where others cannot read it, so everything is loaded beforehand. A
# process that has changed its user is hidden from others; ordinary ones are not.
_BECOME = """
import ctypes, os, sys
user = int(sys.argv[1])
if user != os.getuid():
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
"""
_VICTIM = _BECOME + "print(os.getpid(), flush=True); sys.stdin.read()"
_IMPORTS = """
import asyncio, ctypes, errno, fcntl, json, os, resource, shutil, signal, socket, struct, sys
import tempfile, threading, time
from pathlib import Path
from distributary.media import sandbox
from distributary.media.limits import Limits
"""
_OPENING = (
    _IMPORTS
    + _BECOME
    + """
folder, victim, version = Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
inside, outside = folder / "inside", folder / "outside"
isolation = sandbox.enter(
    inside, Limits(memory_bytes=100 << 20), landlock_version_max=version or None
)
library = ctypes.CDLL(None, use_errno=True)

def error(action, *arguments):
    try:
        action(*arguments)
    except (OSError, ValueError) as error:
        return type(error).__name__
    return None

def call(name, *arguments):
    if getattr(library, name)(*arguments) >= 0:
        return None
    return errno.errorcode[ctypes.get_errno()]

def tell(**facts):
    print(json.dumps({"calls": isolation.no_calls, "signals": isolation.no_signals, **facts}))
"""
)


class Cell(NamedTuple):
    """Who attacks, with what a kernel of some age has against it."""

    folder: Path
    user: int
    landlock_version: int

    def start(self, script: str, *arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", script, str(self.user), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def attack(self, script: str) -> dict[str, Any]:
        """Run a script in the sandbox beside a victim, which has to survive it."""
        with self.start(_VICTIM) as victim:
            assert victim.stdout is not None
            pid = int(victim.stdout.readline())
            with self.start(_OPENING + script, self.folder, pid, self.landlock_version) as attack:
                said, errors = attack.communicate(timeout=60)
            assert attack.returncode == 0, errors
            victim.communicate(timeout=60)
        assert victim.returncode == 0, "the victim was signalled"
        facts: dict[str, Any] = json.loads(said)
        if not facts["calls"]:
            pytest.skip("this machine has no filter for system calls")
        return facts


@pytest.fixture(params=[0, 5], ids=["newest", "older-landlock"])
def landlock_version(request: pytest.FixtureRequest) -> int:
    version: int = request.param
    return version


@pytest.fixture(params=["caller", "nobody"])
def cell(request: pytest.FixtureRequest, landlock_version: int) -> Iterator[Cell]:
    user = os.getuid()
    if request.param == "nobody":
        if user != 0:
            pytest.skip("only root can become somebody else, and everybody else is no root")
        user = _NOBODY
    # Not in the folders of pytest, which keep others out, and anew whenever one more is started.
    with TemporaryDirectory(prefix="cell") as name:
        folder = Path(name)
        for part in ("inside", "outside", "outside/empty"):
            (folder / part).mkdir()
        (folder / "outside" / "precious").write_text("untouched")
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user, user if user != os.getuid() else -1)
        yield Cell(folder, user, landlock_version)


def test_nobody_else_is_signalled(cell: Cell) -> None:
    facts = cell.attack(
        """
F_SETOWN_EX, F_SETSIG, F_NOTIFY, FIOSETOWN, SIOCSPGRP = 15, 10, 1026, 0x8901, 0x8902
left, right = socket.socketpair()
high = 0xdeadbeef00000000
number = struct.pack("i", victim)
refused = [
    error(fcntl.fcntl, left, fcntl.F_SETOWN, victim),
    error(fcntl.fcntl, left, F_SETOWN_EX, struct.pack("ii", 1, victim)),
    error(fcntl.fcntl, left, F_SETSIG, signal.SIGKILL),
    error(fcntl.ioctl, left, FIOSETOWN, number),
    error(fcntl.ioctl, left, SIOCSPGRP, number),
    error(fcntl.fcntl, os.open(".", os.O_RDONLY), F_NOTIFY, 4),
    error(os.kill, victim, signal.SIGKILL),
    error(os.kill, -1, signal.SIGTERM),
    error(os.kill, 0, signal.SIGCONT),
    error(signal.pidfd_send_signal, 0, signal.SIGKILL),
]
# The kernel looks at the lower half of these alone, and so must who refuses them.
library.fcntl(left.fileno(), ctypes.c_ulong(high | fcntl.F_SETOWN), victim)
library.fcntl(left.fileno(), ctypes.c_ulong(high | F_SETSIG), int(signal.SIGKILL))
library.ioctl(left.fileno(), ctypes.c_ulong(high | FIOSETOWN), number)
fcntl.fcntl(left, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
right.send(b"and this would be the signal")
tell(refused=refused)
"""
    )
    assert _permitted(facts) == []
    assert facts["signals"] == (cell.landlock_version == 0 and _landlock_version() >= 6)


def _permitted(facts: dict[str, Any]) -> list[int]:
    """Return which attempts nobody refused."""
    return [number for number, error in enumerate(facts["refused"]) if error is None]


def _landlock_version() -> int:
    version: int = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)
    return version


def test_nobody_else_is_slowed_down_or_looked_into(cell: Cell) -> None:
    facts = cell.attack(
        """
tell(refused=[
    error(os.setpriority, os.PRIO_PROCESS, victim, 19),
    error(os.sched_setscheduler, victim, os.SCHED_IDLE, os.sched_param(0)),
    error(os.sched_setaffinity, victim, {0}),
    error(resource.prlimit, victim, resource.RLIMIT_CPU, (1, 1)),
    error(os.setpgid, 0, 0),
    error(Path(f"/proc/{victim}/environ").read_bytes),
    error(open, f"/proc/{victim}/mem", "rb"),
    error(os.open, f"/proc/{victim}/fd/0", os.O_RDONLY),
    error(Path(f"/proc/{victim}/oom_score_adj").write_text, "1000"),
    error(Path("/proc/self/oom_score_adj").write_text, "0"),
    call("prctl", 1, 0, 0, 0, 0),
    call("prctl", 4, 0, 0, 0, 0),
])
"""
    )
    assert _permitted(facts) == []


def test_files_of_others_stay_as_they_are(cell: Cell) -> None:
    precious, empty = cell.folder / "outside" / "precious", cell.folder / "outside" / "empty"

    def status(path: Path) -> tuple[int, ...]:
        found = path.stat()
        return found.st_mode, found.st_uid, found.st_mtime_ns, found.st_size

    before = status(precious), status(empty)
    facts = cell.attack(
        """
precious = outside / "precious"
reading = os.open(precious, os.O_RDONLY)
tell(refused=[
    error(os.chmod, precious, 0),
    error(os.fchmod, reading, 0),
    error(os.chown, precious, os.getuid(), os.getgid()),
    error(os.fchown, reading, os.getuid(), os.getgid()),
    error(os.utime, precious, (0, 0)),
    error(os.utime, reading, (0, 0)),
    error(os.setxattr, precious, "user.note", b"was here"),
    error(os.setxattr, reading, "user.note", b"was here"),
    error(os.removexattr, precious, "user.note"),
    error(os.truncate, precious, 0),
    error(os.open, precious, os.O_RDONLY | os.O_TRUNC),
    error(os.open, precious, 3 | os.O_TRUNC),
    error(os.rmdir, outside / "empty"),
    error(os.rmdir, inside),
    error(os.link, precious, "linked"),
    error(fcntl.flock, reading, fcntl.LOCK_EX | fcntl.LOCK_NB),
    error(fcntl.lockf, reading, fcntl.LOCK_SH | fcntl.LOCK_NB),
    error(fcntl.fcntl, reading, fcntl.F_SETLEASE, fcntl.F_RDLCK),
    error(fcntl.ioctl, reading, 0x40086602, struct.pack("l", 0x80)),  # FS_IOC_SETFLAGS
    call("inotify_init1", 0),
])
"""
    )
    assert _permitted(facts) == []
    assert (status(precious), status(empty)) == before
    assert precious.read_text() == "untouched"


def test_sockets_that_come_in_pairs_reach_nobody_else(cell: Cell) -> None:
    address = str(cell.folder / "outside" / "listening")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(address)
        os.chown(address, cell.user, -1)
        facts = cell.attack(
            """
left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
address = str(outside / "listening")
left.send(b"to the other end")
tell(
    received=right.recv(100).decode(),
    refused=[
        error(left.sendto, b"to somebody else", address),
        error(left.connect, address),
        error(left.sendmsg, [b"with files"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, b"\\0" * 4)]),
        error(right.bind, "mine"),
    ],
)
"""
        )
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.recv(100)
    assert facts["received"] == "to the other end"
    assert facts["refused"] == ["PermissionError"] * 4


def test_no_memory_is_out_of_sight_of_its_limit(cell: Cell) -> None:
    segments = Path("/proc/sysvipc/shm").read_text()
    facts = cell.attack(
        """
file = os.open("room", os.O_CREAT | os.O_RDWR)
tell(refused=[
    call("shmget", 0, ctypes.c_size_t(1 << 20), 0o1600),
    call("msgget", 0, 0o1600),
    call("semget", 0, 1, 0o1600),
    call("mq_open", b"/queue", os.O_CREAT | os.O_RDWR, 0o600, None),
    call("memfd_create", b"hidden", 0),
    error(Path("/dev/shm/hidden").write_bytes, b"x"),
    call("fallocate", file, 0, ctypes.c_long(0), ctypes.c_long(4096)),
    error(fcntl.fcntl, os.pipe()[1], 1031, 1 << 20),  # F_SETPIPE_SZ
])
"""
    )
    assert _permitted(facts) == []
    assert Path("/proc/sysvipc/shm").read_text() == segments


def test_no_thread_has_open_files_of_its_own(cell: Cell) -> None:
    """Whoever counts the files of a process sees those of its main thread."""
    facts = cell.attack(
        """
x86 = os.uname().machine == "x86_64"
VM, FS, FILES, SIGHAND, THREAD = 0x100, 0x200, 0x400, 0x800, 0x10000
CLOSE_RANGE_UNSHARE = 2
tell(refused=[
    # Refused before the kernel misses a stack, which would be EINVAL or the end.
    call("syscall", 56 if x86 else 220, VM | FS | SIGHAND | THREAD, None, None, None, None),
    call("syscall", 436, 1000, 1001, CLOSE_RANGE_UNSHARE),
])
"""
    )
    assert facts["refused"] == ["EPERM", "EPERM"]


def test_the_machine_is_neither_kept_busy_nor_filled_with_notes(cell: Cell) -> None:
    """Disks are written back for all, caches are dropped for all, logs are those of all."""
    facts = cell.attack(
        """
x86 = os.uname().machine == "x86_64"
reading = os.open(outside / "precious", os.O_RDONLY)
POSIX_FADV_DONTNEED, SECCOMP_GET_ACTION_AVAIL = 4, 2
tell(refused=[
    call("syscall", 162 if x86 else 81),  # sync
    call("syncfs", reading),
    error(os.posix_fadvise, reading, 0, 0, POSIX_FADV_DONTNEED),
    call("syscall", 317 if x86 else 277, SECCOMP_GET_ACTION_AVAIL, 0, struct.pack("I", 0x7FFC0000)),
])
"""
    )
    assert facts["refused"] == ["EPERM", "EPERM", "PermissionError", "EPERM"]


def test_devices_are_not_read(cell: Cell) -> None:
    """A terminal has what somebody types, and a disk the files of all."""
    facts = cell.attack(
        """
found = [Path("/dev", name) for name in ("ptmx", "kmsg", "mem", "vda", "sda", "tty", "fuse")]
tell(
    refused=[error(os.open, path, os.O_RDONLY) for path in found if path.exists()],
    random=len(Path("/dev/urandom").open("rb").read(8)),
    nothing=len(Path("/dev/null").read_bytes()),
    itself=len(Path("/proc/self/statm").read_text()) > 0,
    precious=(outside / "precious").read_text(),
)
"""
    )
    assert set(facts["refused"]) == {"PermissionError"}
    assert (facts["random"], facts["nothing"], facts["itself"]) == (8, 0, True)
    assert facts["precious"] == "untouched"


def test_limits_of_life_cannot_be_raised(cell: Cell) -> None:
    facts = cell.attack(
        """
kinds = [resource.RLIMIT_FSIZE, resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_NOFILE]
hard = [resource.getrlimit(kind)[1] for kind in kinds]
tell(
    hard=hard,
    refused=[
        error(resource.setrlimit, kind, (amount + 1, amount + 1))
        for kind, amount in zip(kinds, hard, strict=True)
    ],
)
"""
    )
    file_bytes, seconds, *_ = facts["hard"]
    assert file_bytes == 256 << 20
    assert 3600 < seconds < 3600 + 61 * (os.cpu_count() or 1) + 10
    assert facts["refused"] == ["ValueError"] * 4


def test_what_converters_do_need_is_still_there(cell: Cell) -> None:
    facts = cell.attack(
        """
with tempfile.TemporaryDirectory(dir=".") as made, tempfile.TemporaryFile() as file:
    Path(made, "kept").write_text("kept")
    shutil.copyfile(Path(made, "kept"), "copied")
    os.posix_fallocate(file.fileno(), 0, 4096)
    room = os.fstat(file.fileno()).st_size
left, right = socket.socketpair()
left.settimeout(1)
left.sendall(b"1234")
threads = [threading.Thread(target=time.sleep, args=(0,)) for _ in range(10)]
[thread.start() for thread in threads]
tell(
    room=room,
    copied=Path("copied").read_text(),
    received=len(right.recv(10)),
    loop=asyncio.run(asyncio.sleep(0, "ran")),
    cores=len(os.sched_getaffinity(0)),
)
"""
    )
    cores = facts.pop("cores")
    assert cores >= 1
    del facts["calls"], facts["signals"]
    assert facts == {"room": 4096, "copied": "kept", "received": 4, "loop": "ran"}
