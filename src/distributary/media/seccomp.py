"""Which calls into a Linux kernel a worker is refused: a filter in the kernel (seccomp).

A converter computes, and reads and writes files. It has no business with the network,
with other processes or with the parts of a kernel where holes are found again and again.
Refused are the calls by name; a list of permitted ones would be tighter, but what codecs
call changes with every release of them and of the C library.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Mapping

__all__ = ["filter_program", "install_filter"]

# Numbers by machine: (AUDIT_ARCH of the machine, calls refused outright, clone, calls
# whose first argument is the process they act on).
_REFUSED_ANYWHERE: Mapping[str, int] = {
    "pidfd_send_signal": 424,
    "io_uring_setup": 425,
    "pidfd_open": 434,
    "pidfd_getfd": 438,
}
_REFUSED: Mapping[str, Mapping[str, int]] = {
    "x86_64": {
        "socket": 41,
        "fork": 57,
        "vfork": 58,
        "execve": 59,
        "ptrace": 101,
        "tkill": 200,
        "add_key": 248,
        "request_key": 249,
        "keyctl": 250,
        "unshare": 272,
        "perf_event_open": 298,
        "setns": 308,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "bpf": 321,
        "execveat": 322,
        "userfaultfd": 323,
    },
    "aarch64": {
        "unshare": 97,
        "ptrace": 117,
        "tkill": 130,
        "socket": 198,
        "add_key": 217,
        "request_key": 218,
        "keyctl": 219,
        "execve": 221,
        "perf_event_open": 241,
        "setns": 268,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "bpf": 280,
        "execveat": 281,
        "userfaultfd": 282,
    },
}
# A worker may raise a signal and read limits, but its own alone: a call of abort() has to
# look like one. Zero is the calling process for prlimit64, and its group for kill.
_OWN_PROCESS: Mapping[str, Mapping[str, int]] = {
    "x86_64": {"kill": 62, "rt_sigqueueinfo": 129, "tgkill": 234, "rt_tgsigqueueinfo": 297},
    "aarch64": {"kill": 129, "tgkill": 131, "rt_sigqueueinfo": 138, "rt_tgsigqueueinfo": 240},
}
_PRLIMIT = {"x86_64": 302, "aarch64": 261}
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE3 = 435
_MACHINE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# Calls from here on are those of x86_64 with pointers of 32 bits, under other numbers.
_SHORT_POINTERS = 0x4000_0000
_CLONE_THREAD = 0x0001_0000

_ALLOW = 0x7FFF_0000
_KILL_PROCESS = 0x8000_0000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
# Where the kernel puts what a filter looks at (struct seccomp_data, little-endian).
_AT_NUMBER, _AT_MACHINE, _AT_FIRST_ARGUMENT = 0, 4, 16

_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2


def _failing(error: int) -> int:
    return 0x0005_0000 | error


def filter_program(machine: str, process: int) -> bytes | None:
    """Return the filter as the kernel reads it, or None for a machine whose calls are unknown.

    The process is the one that may go on sending signals to itself.
    """
    if machine not in _MACHINE:
        return None
    refused, unknown = _failing(errno.EPERM), _failing(errno.ENOSYS)
    lines = [
        (_LOAD, 0, 0, _AT_MACHINE),
        (_EQUAL, 1, 0, _MACHINE[machine]),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _AT_NUMBER),
    ]
    if machine == "x86_64":
        lines += [(_AT_LEAST, 0, 1, _SHORT_POINTERS), (_RETURN, 0, 0, unknown)]
    for number in (*_REFUSED[machine].values(), *_REFUSED_ANYWHERE.values()):
        lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, refused)]
    # The arguments of clone3 are out of a filter's sight. Told that there is no such call,
    # the C library makes its threads with clone, whose flags can be seen.
    lines += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, unknown)]
    lines += _unless((_CLONE[machine],), refused, (_ANY_BIT, _CLONE_THREAD))
    lines += _unless((_PRLIMIT[machine],), refused, (_EQUAL, 0), (_EQUAL, process))
    lines += _unless(tuple(_OWN_PROCESS[machine].values()), refused, (_EQUAL, process))
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *line) for line in lines)


def _unless(
    numbers: tuple[int, ...], refused: int, *tests: tuple[int, int]
) -> list[tuple[int, int, int, int]]:
    """Return lines that refuse these calls unless a test of the first argument holds."""
    lines: list[tuple[int, int, int, int]] = []
    for number in numbers:
        lines += [(_EQUAL, 0, 3 + len(tests), number), (_LOAD, 0, 0, _AT_FIRST_ARGUMENT)]
        lines += [(test, len(tests) - i, 0, value) for i, (test, value) in enumerate(tests)]
        lines += [(_RETURN, 0, 0, refused), (_RETURN, 0, 0, _ALLOW)]
    return lines


class _Program(ctypes.Structure):
    _fields_ = (("lines", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def install_filter(library: ctypes.CDLL) -> bool:
    """Refuse them to this process for good, and say whether that is in force.

    Needs no privileges, but the promise to gain none (no_new_privs) beforehand.
    """
    written = filter_program(platform.machine(), os.getpid())
    if written is None or struct.calcsize("P") != 8:
        return False
    program = _Program(len(written) // 8, written)
    return bool(
        library.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) == 0
    )
