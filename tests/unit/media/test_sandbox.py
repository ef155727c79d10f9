"""What a process gives up when it enters the sandbox, tried out in processes of their own."""

from __future__ import annotations

import errno
import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from distributary.media.isolation import Isolation
from distributary.media.seccomp import filter_program

linux = pytest.mark.skipif(sys.platform != "linux", reason="what Linux alone enforces")

_OPENING = """
import errno, json, os, resource, signal, socket, sys, threading
from dataclasses import asdict
from pathlib import Path
from distributary.media import sandbox
from distributary.media.limits import Limits

isolation = sandbox.enter(Path(sys.argv[1]), Limits(memory_bytes=1 << 30))
caller = os.getppid()

def error(action, *arguments):
    try:
        action(*arguments)
    except (OSError, ValueError, MemoryError) as error:
        return type(error).__name__
    return None

def tell(**facts):
    print(json.dumps(facts), flush=True)
"""


def entered(script: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _OPENING + script, str(directory)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def told(script: str, directory: Path) -> dict[str, Any]:
    done = entered(script, directory)
    assert done.returncode == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def test_it_works_in_its_own_directory_and_nobody_else_reads_what_it_writes(
    tmp_path: Path,
) -> None:
    facts = told('Path("file").touch(); tell(here=os.getcwd())', tmp_path)
    assert facts == {"here": str(tmp_path)}
    assert (tmp_path / "file").stat().st_mode & 0o077 == 0


def test_it_says_what_is_in_force(tmp_path: Path) -> None:
    facts = told("tell(**asdict(isolation))", tmp_path)
    isolation = Isolation(**facts)
    if sys.platform == "linux":
        assert isolation.no_privileges
        assert isolation.ends_with_caller
        assert isolation.memory_limited
    else:
        assert not isolation.no_network


@linux
def test_there_is_nobody_to_talk_to(tmp_path: Path) -> None:
    facts = told(
        """
tell(
    internet=error(socket.socket, socket.AF_INET, socket.SOCK_STREAM),
    local=error(socket.socket, socket.AF_UNIX),
    pair=error(socket.socketpair),
    cards=[name for _, name in socket.if_nameindex()] if not isolation.no_calls else ["lo"],
    in_force=[isolation.no_network, isolation.no_calls],
)
""",
        tmp_path,
    )
    no_network, no_calls = facts["in_force"]
    assert no_network or no_calls, "this system permits neither a namespace nor a filter"
    if no_calls:
        assert facts["internet"] == facts["local"] == "PermissionError"
    assert facts["pair"] is None
    assert facts["cards"] == ["lo"]


@linux
def test_other_processes_and_programs_are_out_of_reach(tmp_path: Path) -> None:
    facts = told(
        """
thread = threading.Thread(target=lambda: None)
thread.start()
thread.join()
tell(
    calls=isolation.no_calls,
    refused=[
        error(os.fork),
        error(os.execv, "/bin/true", ["true"]),
        error(os.kill, os.getppid(), 0),
        error(resource.prlimit, os.getppid(), resource.RLIMIT_CORE),
        error(open, f"/proc/{os.getppid()}/mem", "rb"),
    ],
    own=[
        error(os.kill, os.getpid(), 0),
        error(resource.prlimit, os.getpid(), resource.RLIMIT_CORE),
        error(resource.prlimit, 0, resource.RLIMIT_CORE),
    ],
)
""",
        tmp_path,
    )
    if not facts["calls"]:
        pytest.skip("this machine has no filter for system calls")
    assert facts["refused"] == ["PermissionError"] * 5
    assert facts["own"] == [None] * 3


@linux
def test_abort_still_looks_like_abort(tmp_path: Path) -> None:
    assert entered("os.abort()", tmp_path).returncode == -6


@linux
def test_nothing_is_written_beside_its_directory(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "precious").write_text("untouched")
    facts = told(
        f"""
outside = Path({str(outside)!r})
tell(
    writing=isolation.no_writing,
    refused=[
        error((outside / "new").touch),
        error((outside / "precious").write_text, "changed"),
        error((outside / "precious").unlink),
        error((outside / "folder").mkdir),
        error(os.rename, outside / "precious", "stolen"),
        error(os.symlink, "/", outside / "link"),
        error(os.truncate, outside / "precious", 0),
    ],
    permitted=[
        error(Path("new").write_text, "new"),
        error(Path("folder").mkdir),
        error(os.rename, "new", "folder/moved"),
        error(Path(os.devnull).write_text, "nothing"),
        error((outside / "precious").read_text),
    ],
)
""",
        inside,
    )
    assert facts["permitted"] == [None] * 5
    if not facts["writing"]:
        pytest.skip("this kernel has no Landlock")
    assert set(facts["refused"]) == {"PermissionError"}
    assert (outside / "precious").read_text() == "untouched"


@linux
def test_limits_that_were_lowered_stay_down(tmp_path: Path) -> None:
    facts = told(
        """
kinds = (resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_CORE)
tell(
    hard=[resource.getrlimit(kind)[1] for kind in kinds],
    raising=[error(resource.setrlimit, kind, (1 << 40, 1 << 40)) for kind in kinds],
)
""",
        tmp_path,
    )
    assert facts["raising"] == ["ValueError"] * 3
    space, files, core = facts["hard"]
    assert 1 << 30 < space < 8 << 30
    assert (files, core) == (256, 0)


@linux
def test_a_conversion_is_held_to_its_memory_and_the_next_one_is_not(tmp_path: Path) -> None:
    facts = told(
        """
with sandbox.held_to(Limits(memory_bytes=50 << 20), caller=caller):
    small, large = error(bytearray, 20 << 20), error(bytearray, 60 << 20)
with sandbox.held_to(Limits(memory_bytes=100 << 20), caller=caller):
    after = error(bytearray, 60 << 20)
tell(small=small, large=large, after=after)
""",
        tmp_path,
    )
    assert facts == {"small": None, "large": "MemoryError", "after": None}


def test_a_temporary_file_has_a_size_limit(tmp_path: Path) -> None:
    facts = told(
        """
limits = Limits(input_bytes=1000, output_bytes=2000)
with sandbox.held_to(limits, caller=caller):
    fits = error(Path("a").write_bytes, bytes(2000))
    over = error(Path("b").write_bytes, bytes(2001))
tell(fits=fits, over=over)
""",
        tmp_path,
    )
    assert facts == {"fits": None, "over": "OSError"}


def test_time_runs_out_even_if_nobody_watches(tmp_path: Path) -> None:
    endless = """
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
with sandbox.held_to(Limits(seconds=0.01), caller=caller):
    threading.Event().wait()
"""
    assert entered(endless, tmp_path).returncode == -14


def test_a_worker_whose_caller_is_gone_already_converts_nothing(tmp_path: Path) -> None:
    late = """
with sandbox.held_to(Limits(), caller=1 << 22):
    tell(alive=True)
"""
    done = entered(late, tmp_path)
    assert (done.returncode, done.stdout) == (1, "")


def run_filter(program: bytes, *, machine: int, number: int, arguments: tuple[int, ...]) -> int:
    """Return what a filter decides, by going through it as the kernel does."""
    data = struct.pack("<IIQ6Q", number, machine, 0, *arguments, *(0,) * (6 - len(arguments)))
    lines = list(struct.iter_unpack("<HBBI", program))
    at, value = 0, 0
    while True:
        code, if_true, if_false, k = lines[at]
        at += 1
        if code == 0x20:
            (value,) = struct.unpack_from("<I", data, k)
        elif code == 0x54:
            value &= k
        elif code == 0x06:
            return int(k)
        else:
            holds = {0x15: value == k, 0x35: value >= k, 0x45: bool(value & k)}[code]
            at += if_true if holds else if_false


ALLOW, KILL = 0x7FFF_0000, 0x8000_0000
REFUSE, UNKNOWN = 0x0005_0000 | errno.EPERM, 0x0005_0000 | errno.ENOSYS
NO_DEVICE, INVALID = 0x0005_0000 | errno.ENOTTY, 0x0005_0000 | errno.EINVAL
UNSUPPORTED = 0x0005_0000 | errno.EOPNOTSUPP
X86, ARM = 0xC000003E, 0xC00000B7


@pytest.mark.parametrize(
    ("name", "machine", "number", "argument", "decision"),
    [
        ("x86_64", X86, 0, 0, ALLOW),  # read
        ("x86_64", X86, 41, 2, REFUSE),  # socket
        ("x86_64", X86, 59, 0, REFUSE),  # execve
        ("x86_64", X86, 56, 0x10400, ALLOW),  # clone of a thread
        ("x86_64", X86, 56, 0x3D0F00, ALLOW),  # as the C library makes one
        ("x86_64", X86, 56, 0x10000, REFUSE),  # with open files of its own
        ("x86_64", X86, 56, 0x400, REFUSE),  # clone of a process that shares them
        ("x86_64", X86, 436, (3, 9, 0), ALLOW),  # close_range
        ("x86_64", X86, 436, (3, 9, 2), REFUSE),  # with a table of one's own
        ("x86_64", X86, 162, 0, REFUSE),  # sync
        ("x86_64", X86, 56, 17, REFUSE),  # clone of a process
        ("x86_64", X86, 435, 0, UNKNOWN),  # clone3
        ("x86_64", X86, 62, 1234, ALLOW),  # kill oneself
        ("x86_64", X86, 62, 1, REFUSE),  # kill another
        ("x86_64", X86, 234, 1234, ALLOW),  # tgkill
        ("x86_64", X86, 297, 1, REFUSE),  # rt_tgsigqueueinfo
        ("x86_64", X86, 302, 0, ALLOW),  # prlimit64 of oneself
        ("x86_64", X86, 302, 1234, ALLOW),
        ("x86_64", X86, 302, 1, REFUSE),  # prlimit64 of another
        ("x86_64", X86, 425, 0, REFUSE),  # io_uring_setup
        ("x86_64", X86, 0x4000_0029, 0, UNKNOWN),  # socket by its other number
        ("x86_64", 0x40000003, 1, 0, KILL),  # another machine's numbers
        ("x86_64", X86, 463, 0, UNKNOWN),  # setxattrat, and whatever came later
        ("x86_64", X86, 72, (3, 0), ALLOW),  # fcntl F_DUPFD
        ("x86_64", X86, 72, (3, 8), REFUSE),  # fcntl F_SETOWN
        ("x86_64", X86, 72, (3, 0xFF_0000_0008), REFUSE),  # the same to the kernel
        ("x86_64", X86, 16, (3, 0x5421), ALLOW),  # ioctl FIONBIO
        ("x86_64", X86, 16, (3, 0x8901), NO_DEVICE),  # ioctl FIOSETOWN
        ("x86_64", X86, 157, 15, ALLOW),  # prctl PR_SET_NAME
        ("x86_64", X86, 157, 1, INVALID),  # prctl PR_SET_PDEATHSIG
        ("x86_64", X86, 44, (3, 1, 1, 0, 0), ALLOW),  # sendto the other end
        ("x86_64", X86, 44, (3, 1, 1, 0, 1 << 40), REFUSE),  # sendto an address
        ("x86_64", X86, 44, (3, 1, 1, 0, 1 << 20), REFUSE),
        ("x86_64", X86, 257, (0, 1, 0o0), ALLOW),  # openat to read
        ("x86_64", X86, 257, (0, 1, 0o1001), ALLOW),  # to write, truncated
        ("x86_64", X86, 257, (0, 1, 0o1002), ALLOW),
        ("x86_64", X86, 257, (0, 1, 0o1000), REFUSE),  # to read, truncated
        ("x86_64", X86, 257, (0, 1, 0o1003), REFUSE),
        ("x86_64", X86, 2, (1, 0o1000), REFUSE),  # open
        ("x86_64", X86, 285, 0, UNSUPPORTED),  # fallocate
        ("aarch64", ARM, 25, (3, 10), REFUSE),  # fcntl F_SETSIG
        ("aarch64", ARM, 279, 0, REFUSE),  # memfd_create
        ("aarch64", ARM, 56, (0, 1, 0o1000), REFUSE),  # openat to read, truncated
        ("aarch64", ARM, 63, 0, ALLOW),  # read
        ("aarch64", ARM, 198, 2, REFUSE),  # socket
        ("aarch64", ARM, 221, 0, REFUSE),  # execve
        ("aarch64", ARM, 220, 0x10400, ALLOW),  # clone of a thread
        ("aarch64", ARM, 220, 0x10000, REFUSE),  # with open files of its own
        ("aarch64", ARM, 220, 17, REFUSE),  # clone of a process
        ("aarch64", ARM, 129, 1, REFUSE),  # kill another
        ("aarch64", ARM, 131, 1234, ALLOW),  # tgkill
        ("aarch64", ARM, 261, 1, REFUSE),  # prlimit64 of another
    ],
)
def test_the_filter_decides_call_by_call(
    name: str, machine: int, number: int, argument: int | tuple[int, ...], decision: int
) -> None:
    program = filter_program(name, 1234)
    assert program is not None
    arguments = argument if isinstance(argument, tuple) else (argument,)
    assert run_filter(program, machine=machine, number=number, arguments=arguments) == decision


def test_an_unknown_machine_has_no_filter() -> None:
    assert filter_program("riscv64", os.getpid()) is None
