"""A worker as its caller sees it: a process to start, to ask, and to kill."""

from __future__ import annotations

import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import BinaryIO, cast, get_args

from distributary.content.media_type import MediaType
from distributary.cores import available_cores
from distributary.media.channel import (
    ChannelClosed,
    ChannelTimeout,
    Frame,
    Malformed,
    readable,
    receive,
    send,
)
from distributary.media.failure import FailureKind, Unconvertible
from distributary.media.isolation import Isolation
from distributary.media.limits import Limits
from distributary.media.result import ConversionResult
from distributary.media.sandbox import LIFE_PROCESSOR_SECONDS
from distributary.media.worker_directory import WorkerDirectory
from distributary.media.worker_exit import (
    describe_status,
    explain_exit,
    last_start_error,
    one_line,
)
from distributary.media.worker_watch import WorkerWatch

__all__ = ["NotStarted", "WorkerProcess"]

_START_SECONDS_MAX = 60.0
# How long a process may take to be gone after it has closed its channel.
_EXIT_SECONDS_MAX = 2.0
_CONVERSIONS_MAX = 1000
_GROWN_BYTES_MAX = 512 << 20

# What a worker finds in its environment of ours. The rest may hold secrets.
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "VIRTUAL_ENV", "TZ")
# Every thread would otherwise reserve address space of its own for small allocations, and
# libraries for arithmetic start a thread per core, which a pool has better use for. Large
# blocks go back to the system when they are freed: kept, they would be memory that the next
# conversion has beyond its limit.
_SPARING = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "1048576",
    "MALLOC_TRIM_THRESHOLD_": "4194304",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "LANG": "C.UTF-8",
    "PYTHONUTF8": "1",
    "PYTHONHASHSEED": "0",
}
_KINDS = frozenset(get_args(FailureKind))


class NotStarted(Exception):
    """The worker was gone before it had begun: another one may try the same."""


class WorkerProcess:
    """One worker, of use to one thread at a time; any thread may kill it.

    The thread that makes it has to live as long: on Linux the worker is told to end with it.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.isolation: Isolation | None = None
        self._conversion_count = 0
        self._worn = False
        self._killed = False
        self._gone = False
        self._lock = threading.Lock()
        self._directory = WorkerDirectory()
        try:
            self._start()
        except BaseException:
            self._directory.remove()
            raise
        # Fits in the socket's buffer: nobody waits for the worker to read it.
        with suppress(ChannelClosed):
            send(self._channel, {"caller": os.getpid(), "limits": limits.document()})

    def _start(self) -> None:
        self._start_errors: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self._channel, theirs = socket.socketpair()
        except BaseException:
            self._start_errors.close()
            raise
        try:
            with theirs:
                self._process = subprocess.Popen(  # noqa: S603  (our own module)
                    [sys.executable, "-P", "-m", "distributary.media.worker", str(theirs.fileno())],
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._start_errors,
                    cwd=self._directory.path,
                    env=_environment(self._directory.path),
                    start_new_session=True,
                )
        except BaseException:
            self._channel.close()
            self._start_errors.close()
            raise

    @property
    def pid(self) -> int:
        """The process id, by which the system knows the worker."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process is there."""
        return not self._gone and self._process.poll() is None

    @property
    def usable(self) -> bool:
        """Whether it is there and not worn out."""
        return not (self._worn or self._killed) and self.alive

    def serves(self, limits: Limits) -> bool:
        """Whether it is usable and has room for such a conversion."""
        return self.usable and self._limits.holds(limits)

    def convert(
        self,
        content: bytes,
        source: MediaType,
        target: MediaType,
        *,
        converter: str,
        limits: Limits,
    ) -> ConversionResult:
        """Have something converted, or raise `Unconvertible` with what became of it.

        After an answer that is late or makes no sense, and after running out of memory, the
        worker is not to be used again.

        Its time starts when the worker is ready.
        """
        self._await_ready()
        if readable(self._channel):
            # An answer to a question that was not asked yet, or its end.
            self.kill()
            raise NotStarted("it spoke out of turn or is gone")
        self._conversion_count += 1
        begun = time.monotonic()
        deadline = begun + limits.seconds
        job = {
            "converter": converter,
            "source": str(source),
            "target": str(target),
            "limits": limits.document(),
        }
        started = False
        try:
            send(self._channel, job, content, deadline=deadline)
            receive(self._channel, body_bytes_max=0, deadline=deadline)
            started = True
            answer = receive(
                self._channel,
                body_bytes_max=limits.output_bytes,
                deadline=deadline,
                watch=WorkerWatch(self.pid, self._directory.path, limits),
            )
        except Unconvertible:
            self.kill()
            raise
        except ChannelTimeout:
            # Now: whoever gets to know the result may keep this thread for a while.
            self.kill()
            raise Unconvertible("time", f"it takes more than {limits.seconds:g} s") from None
        except ChannelClosed:
            self._worn = True
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_EXIT_SECONDS_MAX)
            hung_up = self._process.returncode is None and not self._killed
            status = self.end()
            if not (started or self._killed):
                raise NotStarted(describe_status(status)) from None
            if hung_up:
                # Killed by us: not the fault of the moment, to be tried again.
                raise Unconvertible("crashed", "its worker hung up") from None
            raise explain_exit(status) from None
        except Malformed:
            self.kill()
            raise Unconvertible("crashed", "its worker answered nonsense") from None
        # A converter may compute on several cores at once, and a worker may claim anything.
        seconds_max = (time.monotonic() - begun) * available_cores()
        return self._read(answer, target, seconds_max=seconds_max)

    def ended_for_excess(self) -> bool:
        """Kill it if it takes too much while it has nothing to do; say whether it did."""
        if self.isolation is not None and self.usable:
            try:
                WorkerWatch(self.pid, self._directory.path, self._limits).look()
            except Unconvertible:
                self.kill()
                return True
        return False

    def _await_ready(self) -> None:
        """Wait for a worker that has just been started."""
        if self.isolation is not None:
            return
        deadline = time.monotonic() + _START_SECONDS_MAX
        try:
            said = receive(self._channel, body_bytes_max=0, deadline=deadline).header.get("ready")
        except ChannelClosed:
            said = one_line(last_start_error(self._start_errors), otherwise="")
            status = self.end(patience_seconds=_EXIT_SECONDS_MAX)
            raise NotStarted(": ".join(filter(None, (describe_status(status), said)))) from None
        except (ChannelTimeout, Malformed):
            self._worn = True
            raise NotStarted("it was not ready in time") from None
        in_force = said if isinstance(said, Mapping) else {}
        self.isolation = Isolation(
            **{item.name: in_force.get(item.name) is True for item in fields(Isolation)}
        )

    def _read(self, answer: Frame, target: MediaType, *, seconds_max: float) -> ConversionResult:
        """Check an answer, of which nothing can be taken for granted."""
        header = answer.header
        grown_bytes, kind = header.get("grown_bytes"), header.get("kind")
        processor_seconds = header.get("processor_seconds")
        self._worn = (
            not isinstance(grown_bytes, int)
            or grown_bytes > _GROWN_BYTES_MAX
            or not isinstance(processor_seconds, float)
            or processor_seconds > LIFE_PROCESSOR_SECONDS
            or self._conversion_count >= _CONVERSIONS_MAX
            or kind == "memory"
        )
        if kind is not None:
            known = cast("FailureKind", kind) if str(kind) in _KINDS else "damaged"
            raise Unconvertible(known, one_line(header.get("reason")))
        seconds = header.get("seconds")
        if not isinstance(seconds, float) or not math.isfinite(seconds):
            self._worn = True
            raise Unconvertible("crashed", "its worker answered nonsense")
        return ConversionResult(
            answer.body, target, seconds=min(max(seconds, 0.0), seconds_max), cached=False
        )

    def kill(self) -> None:
        """Kill it at once, from any thread; whoever waits for its answer learns so."""
        with self._lock:
            self._killed = True
            if not self._gone and self._process.returncode is None:
                self._kill_group()

    def end(self, *, patience_seconds: float = 0.0) -> int:
        """Kill it unless it has ended, remove what it leaves, and return its exit status.

        Some patience for it to end by itself tells more than killing it.
        """
        # Once its end was noticed, its number may be somebody else's.
        unnoticed = self._process.returncode is None
        if patience_seconds:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(patience_seconds)
        with self._lock:
            # Also when it has just ended: it may have left processes of its own.
            if unnoticed and not self._gone:
                self._kill_group()
            self._gone = True
        status = self._process.wait()
        self._close()
        self._directory.remove()
        return status

    def forget(self) -> None:
        """Let go of it and let it live: it belongs to the process this one was forked from."""
        self._gone = True
        self._process.returncode = 0
        self._close()
        self._directory.let_go()

    def _close(self) -> None:
        self._channel.close()
        self._start_errors.close()

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


def _environment(directory: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    # The worker finds what its caller finds, however it came to be on the path: a Spark
    # executor, for one, adds to it as it goes.
    path = [str(Path(entry).absolute()) for entry in sys.path if os.pathsep not in entry]
    return {
        **kept,
        **_SPARING,
        "PYTHONPATH": os.pathsep.join(path),
        "HOME": str(directory),
        "TMPDIR": str(directory),
    }
