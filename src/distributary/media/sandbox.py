"""What a worker gives up before it touches content, and what one conversion may use.

Everything here is about the calling process and cannot be taken back. It works best on
Linux; elsewhere a worker still is a process of its own with what limits the system has.
Each step that the system does not permit is left out, and `Isolation` says which are in
force: content then is less well contained, but it is converted.
"""

from __future__ import annotations

import ctypes
import math
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from distributary.media.isolation import Isolation
from distributary.media.landlock import Restriction, restrict
from distributary.media.limits import Limits
from distributary.media.seccomp import install_filter

__all__ = [
    "LIFE_PROCESSOR_SECONDS",
    "enter",
    "held_to",
    "processor_seconds",
    "resident_bytes",
]

_MEBIBYTE = 1 << 20
# Address space for the packages of converters, which are loaded when first needed and
# counted apart from the content.
_PACKAGES_BYTES = 2048 * _MEBIBYTE
_FILES_OPEN_MAX = 256
# A worker that has used so much retires: its limit on processor time is for good.
LIFE_PROCESSOR_SECONDS = 3600.0
# How long after its time a conversion is stopped by the system, should its caller not.
_GRACE_SECONDS = 1.0

_CLONE_NEWUSER, _CLONE_NEWNET = 0x1000_0000, 0x4000_0000
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_CAPABILITY_VERSION = 0x2008_0522


def enter(directory: Path, limits: Limits, *, landlock_version_max: int | None = None) -> Isolation:
    """Give up everything that converting within limits does not need; say what was given up."""
    os.chdir(directory)
    os.umask(0o077)
    memory_limited = _limit_for_good(limits)
    if sys.platform != "linux":
        return Isolation(memory_limited=memory_limited)
    # Whom the system ends first when memory runs out.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    library = ctypes.CDLL(None)
    no_network = _leave_network(library)
    no_privileges = _drop_privileges(library)
    # After the privileges, whose change would undo it. The pool keeps the thread that started
    # this process for as long as the process.
    ends_with_caller = library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0
    restriction = Restriction()
    if no_privileges:
        restriction = restrict(library, directory, version_max=landlock_version_max)
    return Isolation(
        no_network=no_network,
        no_writing=restriction.writes,
        no_signals=restriction.signals,
        # Last: it refuses some of the above.
        no_calls=no_privileges and install_filter(library),
        no_privileges=no_privileges,
        ends_with_caller=ends_with_caller,
        memory_limited=memory_limited,
    )


def _limit_for_good(limits: Limits) -> bool:
    """Set limits that a converter cannot raise, to what the largest conversion may need.

    A converter can raise those of one conversion up to these; its caller watches.
    """
    _lower_limit(resource.RLIMIT_CORE, 0)
    _lower_limit(resource.RLIMIT_NOFILE, _FILES_OPEN_MAX)
    _lower_limit(resource.RLIMIT_FSIZE, limits.file_bytes)
    _lower_limit(
        resource.RLIMIT_CPU, math.ceil(LIFE_PROCESSOR_SECONDS + _processor_seconds(limits))
    )
    space = _address_space_bytes()
    if space is None:
        return False
    return _lower_limit(resource.RLIMIT_AS, space + _PACKAGES_BYTES + limits.memory_bytes)


def _processor_seconds(limits: Limits) -> float:
    """Return what one conversion may take on all cores."""
    return limits.seconds * (os.cpu_count() or 1) + _GRACE_SECONDS


def _lower_limit(which: int, amount: int) -> bool:
    """Lower a limit for good; one that is lower already stays."""
    with suppress(OSError, ValueError):
        hard = resource.getrlimit(which)[1]
        if hard != resource.RLIM_INFINITY:
            amount = min(amount, hard)
        resource.setrlimit(which, (amount, amount))
        return True
    return False


def _leave_network(library: ctypes.CDLL) -> bool:
    """Move to a network with nothing in it; who is not root becomes so in a small way."""
    if library.unshare(_CLONE_NEWNET) == 0:
        return True
    user, group = os.getuid(), os.getgid()
    if library.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return False
    # Keep our names in there, so that files belong to whom they belong outside.
    for name, line in (
        ("setgroups", "deny"),
        ("gid_map", f"{group} {group} 1"),
        ("uid_map", f"{user} {user} 1"),
    ):
        with suppress(OSError):
            Path("/proc/self", name).write_text(line)
    return True


def _drop_privileges(library: ctypes.CDLL) -> bool:
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    none = (ctypes.c_uint32 * 6)()
    return bool(
        library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 and library.capset(header, none) == 0
    )


@contextmanager
def held_to(limits: Limits, *, caller: int) -> Iterator[None]:
    """Hold one conversion to its limits.

    The caller kills a worker that takes too long; the timer and the limit on processor
    time are for the case that the caller itself is stuck, or gone unnoticed.
    """
    if os.getppid() != caller:
        sys.exit(1)
    amounts = {
        resource.RLIMIT_CPU: math.ceil(processor_seconds() + _processor_seconds(limits)),
        resource.RLIMIT_FSIZE: limits.file_bytes,
    }
    space = _address_space_bytes()
    if space is not None:
        amounts[resource.RLIMIT_AS] = space + limits.memory_bytes
    before = {which: resource.getrlimit(which) for which in amounts}
    for which, amount in amounts.items():
        hard = before[which][1]
        soft = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
        resource.setrlimit(which, (soft, hard))
    signal.setitimer(signal.ITIMER_REAL, limits.seconds + _GRACE_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for which, pair in before.items():
            resource.setrlimit(which, pair)


def _address_space_bytes() -> int | None:
    return _pages(0)


def processor_seconds() -> float:
    """Return how long processors have worked for this process.

    `time.process_time` asks a clock that moves a few milliseconds at a time while processor
    time is limited, and most conversions of text are over before it does.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def resident_bytes() -> int:
    """Return how much memory this process occupies, at its peak where that is all one can know."""
    now = _pages(1)
    if now is not None:
        return now
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _pages(column: int) -> int | None:
    try:
        columns = Path("/proc/self/statm").read_text().split()
    except OSError:
        return None
    return int(columns[column]) * resource.getpagesize()
