"""Children: processes that were forked here, end with whoever forked them, and are started again.

Whoever forks has one thread and no connection and no database open: a fork of anything else brings
along locks that nobody will ever release.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Child", "Children"]

_DEATHS_MAX = 3
_DEATHS_WITHIN_S = 60.0
_BACKOFF_S = 1.0
_BACKOFF_S_MAX = 30.0
_PR_SET_PDEATHSIG = 1
_FAILED = 1
_LOG_BYTES_MAX = 16 * 2**20


@dataclass
class Child:
    """A process that is to run.

    Attributes
    ----------
    name
        What it is called; its log is named so.
    run
        What it does; returns its exit code, or never.
    pid
        Its process, if there is one now.
    ready
        Whether it has said so, since it was started last.
    over
        Why it is not started again, if it is not.
    again
        Whether it is started again at all.
    code
        How it has ended last, if it has.
    """

    name: str
    run: Callable[[Callable[[], None]], int]
    pid: int | None = None
    ready: bool = False
    over: str = ""
    again: bool = True
    code: int | None = None
    deaths: deque[float] = field(default_factory=deque)
    start_at: float = 0.0
    waits_s: float = 0.0

    def died(self, now: float) -> None:
        """Note a death, and when it is to be started again."""
        self.pid = None
        self.ready = False
        self.deaths.append(now)
        while self.deaths[0] < now - _DEATHS_WITHIN_S:
            self.deaths.popleft()
        if len(self.deaths) < _DEATHS_MAX:
            self.waits_s = 0.0
        else:
            self.waits_s = min(max(2 * self.waits_s, _BACKOFF_S), _BACKOFF_S_MAX)
        self.start_at = now + self.waits_s


class Children:
    """All processes that one process has started.

    Parameters
    ----------
    logs
        The folder of their logs.
    final
        The exit code that says that a process is not to be started again.
    say
        Called with a sentence when something happens that nobody has asked for.
    """

    def __init__(self, logs: Path, *, final: int, say: Callable[[str], None]) -> None:
        self._logs = logs
        self._final = final
        self._say = say
        self._children: dict[str, Child] = {}
        self._told_read, self._told_write = os.pipe()
        self._woken_read, self._woken_write = os.pipe()
        for descriptor in (self._told_read, self._woken_read, self._woken_write):
            os.set_blocking(descriptor, False)
        self.stop_wanted = False
        signal.set_wakeup_fd(self._woken_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop_asked)
        self.copy_wanted = False
        signal.signal(signal.SIGUSR1, self._copy_asked)

    def _stop_asked(self, *_: object) -> None:
        self.stop_wanted = True

    def _copy_asked(self, *_: object) -> None:
        self.copy_wanted = True

    def __contains__(self, name: str) -> bool:
        return name in self._children

    def __getitem__(self, name: str) -> Child:
        return self._children[name]

    def add(
        self, name: str, run: Callable[[Callable[[], None]], int], *, again: bool = True
    ) -> Child:
        """Start a process; again whenever it dies, unless that is not wanted yet."""
        child = self._children[name] = Child(name, run, again=again)
        self._start(child)
        return child

    def step(self, wait_s: float) -> None:
        """Wait for something to happen, for a while at most, and see to it."""
        due = [child.start_at for child in self._children.values() if self._is_due(child)]
        now = time.monotonic()
        wait_s = max(0.0, min([wait_s, *(at - now for at in due)]))
        found, _, _ = select.select([self._told_read, self._woken_read], [], [], wait_s)
        if self._woken_read in found:
            os.read(self._woken_read, 4096)
        if self._told_read in found:
            for name in os.read(self._told_read, 65536).decode().split():
                self._children[name].ready = True
        self._reap()
        now = time.monotonic()
        for child in self._children.values():
            if self._is_due(child) and child.start_at <= now and not self.stop_wanted:
                self._start(child)

    def stop(self, names: list[str], wait_s: float) -> None:
        """End processes: in good order, and otherwise at once."""
        self.stop_wanted = True
        children = [self._children[name] for name in names if name in self._children]
        for number, seconds in ((signal.SIGTERM, wait_s), (signal.SIGKILL, wait_s)):
            for child in children:
                if child.pid is not None:
                    os.kill(child.pid, number)
            end = time.monotonic() + seconds
            while any(child.pid is not None for child in children) and time.monotonic() < end:
                self.step(end - time.monotonic())

    @contextmanager
    def standing_still(self, names: list[str]) -> Iterator[None]:
        """Have processes do nothing for a while; those that die meanwhile are started after it."""
        stopped: list[int] = []
        try:
            for name in names:
                child = self._children[name]
                if child.pid is not None:
                    os.kill(child.pid, signal.SIGSTOP)
                    stopped.append(child.pid)
                    # Only when this says so do all its threads stand still.
                    _, status = os.waitpid(child.pid, os.WUNTRACED)
                    if not os.WIFSTOPPED(status):
                        stopped.pop()
                        self._died(child, os.waitstatus_to_exitcode(status))
            yield
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)

    def _is_due(self, child: Child) -> bool:
        return child.pid is None and child.again and not child.over

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for child in self._children.values():
                if child.pid == pid:
                    self._died(child, os.waitstatus_to_exitcode(status))

    def _died(self, child: Child, code: int) -> None:
        child.code = code
        child.died(time.monotonic())
        if self.stop_wanted or not child.again:
            return
        how = f"was killed by signal {-code}" if code < 0 else f"has ended with code {code}"
        log = self._logs / f"{child.name}.log"
        if code == self._final:
            child.over = how
            self._say(f"{child.name} {how} and is not started again; see {log}")
        elif child.waits_s:
            self._say(f"{child.name} {how}, and is started in {child.waits_s:g} s; see {log}")
        else:
            self._say(f"{child.name} {how}, and is started again")

    def _start(self, child: Child) -> None:
        parent = os.getpid()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid:
            child.pid = pid
            return
        code = _FAILED
        try:
            self._become(child, parent)
            code = child.run(lambda: self._tell(child.name))
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stderr.flush()
            os._exit(code)

    def _become(self, child: Child, parent: int) -> None:
        """Be a process of its own: with its own log, and not one of the terminal's."""
        signal.set_wakeup_fd(-1)
        for number in (
            signal.SIGCHLD,
            signal.SIGTERM,
            signal.SIGINT,
            signal.SIGHUP,
            signal.SIGUSR1,
        ):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        for descriptor in (self._told_read, self._woken_read, self._woken_write):
            os.close(descriptor)
        path = self._logs / f"{child.name}.log"
        if path.exists() and path.stat().st_size > _LOG_BYTES_MAX:
            path.replace(path.with_suffix(".log.1"))
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nowhere = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nowhere, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        if sys.platform == "linux":
            # Also when nobody is left to say so.
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(_FAILED)

    def _tell(self, name: str) -> None:
        os.write(self._told_write, f"{name}\n".encode())
