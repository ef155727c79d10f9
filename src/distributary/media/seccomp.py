"""Which calls into a Linux kernel a worker is refused: a filter in the kernel (seccomp).

A converter computes, and reads and writes files. It has no business with the network,
with other processes, with what files of others are like, or with the parts of a kernel where
holes are found again and again. Refused are the calls by name, and all that came after those
we know; a list of permitted ones would be tighter, but what codecs call changes with every
release of them and of the C library. The few calls that do a hundred things each (fcntl,
ioctl, prctl) are permitted by what they are asked for.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable

from distributary.media.system_calls import KNOWN_MAX, NUMBERS, REFUSED

__all__ = ["filter_program", "install_filter"]

_MACHINES = ("x86_64", "aarch64")
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# Calls from here on are those of x86_64 with pointers of 32 bits, under other numbers.
_SHORT_POINTERS = 0x4000_0000
# A thread with a table of open files of its own would keep them out of sight of who counts.
_CLONE_THREAD, _CLONE_FILES = 0x0001_0000, 0x0400
_CLOSE_RANGE_CLOEXEC = 4
_ACCESS_MODE, _WRITE_ONLY, _READ_AND_WRITE, _TRUNCATE = 0o3, 0o1, 0o2, 0o1000

# F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_GETPIPE_SZ. Not those that
# have signals sent to somebody, lock files of others or enlarge pipes.
_FCNTL = (0, 1, 2, 3, 4, 1030, 1032)
# TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX.
_IOCTL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
# PR_GET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_NAME, PR_GET_NAME, PR_GET_SECCOMP, PR_CAPBSET_READ,
# PR_GET_NO_NEW_PRIVS and PR_SET_VMA, by which the C library names memory.
_PRCTL = (2, 3, 15, 16, 21, 23, 39, 0x53564D41)
# A worker may raise a signal, but its own alone: a call of abort() has to look like one.
_OWN_PROCESS = ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")

_ALLOW = 0x7FFF_0000
_KILL_PROCESS = 0x8000_0000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
# Where the kernel puts what a filter looks at (struct seccomp_data, little-endian).
_AT_NUMBER, _AT_MACHINE, _AT_ARGUMENTS = 0, 4, 16

_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2

_Line = tuple[int, int, int, int]


def _failing(error: int) -> int:
    return 0x0005_0000 | error


_REFUSE, _UNKNOWN = _failing(errno.EPERM), _failing(errno.ENOSYS)


def filter_program(machine: str, process: int) -> bytes | None:
    """Return the filter as the kernel reads it, or None for a machine whose calls are unknown.

    The process is the one that may go on sending signals to itself.
    """
    if machine not in _MACHINES:
        return None
    column = _MACHINES.index(machine)
    lines: list[_Line] = [
        (_LOAD, 0, 0, _AT_MACHINE),
        (_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _AT_NUMBER),
        # Also those of x86_64 with short pointers, whose numbers are far above.
        (_AT_LEAST, 0, 1, KNOWN_MAX + 1),
        (_RETURN, 0, 0, _UNKNOWN),
    ]
    assert KNOWN_MAX < _SHORT_POINTERS
    depends: dict[str, list[_Line]] = {
        "open": _truncating_writes_alone(1),
        "openat": _truncating_writes_alone(2),
        "ioctl": _one_of(1, _IOCTL, _failing(errno.ENOTTY)),
        "fcntl": _one_of(1, _FCNTL, _REFUSE),
        "prctl": _one_of(0, _PRCTL, _failing(errno.EINVAL)),
        # Without an address: to the other end alone.
        "sendto": [
            (_LOAD, 0, 0, _argument(4) + 4),
            (_EQUAL, 1, 0, 0),
            (_RETURN, 0, 0, _REFUSE),
            *_one_of(4, (0,), _REFUSE),
        ],
        "clone": [
            (_LOAD, 0, 0, _argument(0)),
            (_AND, 0, 0, _CLONE_THREAD | _CLONE_FILES),
            (_EQUAL, 0, 1, _CLONE_THREAD | _CLONE_FILES),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _REFUSE),
        ],
        # Not the flag by which a thread gets such a table.
        "close_range": _one_of(2, (0, _CLOSE_RANGE_CLOEXEC), _REFUSE),
        # Zero is the calling process here, but its group for kill.
        "prlimit64": _one_of(0, (0, process), _REFUSE),
        **{name: _one_of(0, (process,), _REFUSE) for name in _OWN_PROCESS},
        # The arguments of these are out of a filter's sight. Told that there is no such call,
        # the C library makes its threads with clone, and opens with openat.
        "clone3": [(_RETURN, 0, 0, _UNKNOWN)],
        "openat2": [(_RETURN, 0, 0, _UNKNOWN)],
        # It takes disk faster than anybody can watch. The C library writes zeros instead.
        "fallocate": [(_RETURN, 0, 0, _failing(errno.EOPNOTSUPP))],
    }
    for name, body in depends.items():
        lines += _when(NUMBERS[name][column], body)
    for numbers in REFUSED.values():
        lines += _when(numbers[column], [(_RETURN, 0, 0, _REFUSE)])
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *line) for line in lines)


def _when(number: int | None, body: list[_Line]) -> list[_Line]:
    """Return lines that decide one call; the body returns on every path."""
    return [] if number is None else [(_EQUAL, 0, len(body), number), *body]


def _argument(index: int) -> int:
    # The lower half; calls that take an int do not look at the upper one either.
    return _AT_ARGUMENTS + 8 * index


def _one_of(index: int, values: Iterable[int], refused: int) -> list[_Line]:
    """Return lines that permit a call if an argument is one of these."""
    listed = tuple(values)
    return [
        (_LOAD, 0, 0, _argument(index)),
        *((_EQUAL, len(listed) - i, 0, value) for i, value in enumerate(listed)),
        (_RETURN, 0, 0, refused),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _truncating_writes_alone(index: int) -> list[_Line]:
    """Return lines that refuse to truncate a file that is not opened for writing.

    Landlock minds it since its third version only.
    """
    return [
        (_LOAD, 0, 0, _argument(index)),
        (_ANY_BIT, 0, 4, _TRUNCATE),
        (_AND, 0, 0, _ACCESS_MODE),
        (_EQUAL, 2, 0, _WRITE_ONLY),
        (_EQUAL, 1, 0, _READ_AND_WRITE),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]


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
