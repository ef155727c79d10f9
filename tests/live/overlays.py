"""Overlays for tests: real processes, started by the command as a user does it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from distributary.errors import MissingPackage
from distributary.network.client import ClientGate
from distributary.network.connection import Server
from distributary.network.server import server_program
from distributary.network.subjects import Subjects

__all__ = [
    "LOOK_S",
    "RunningOverlay",
    "eventually",
    "is_there",
    "processes_of",
    "running_overlay",
    "wait_until",
]

LOOK_S = 0.01
"""How often is looked whether something has come true."""

_STARTS_S = 120.0
_STOPS_S = 60.0


class RunningOverlay:
    """What `distributary up --json` has started."""

    def __init__(self, process: subprocess.Popen[str], state: Path, line: dict[str, Any]) -> None:
        self.process = process
        self.state = state
        self.line = line
        self.said: list[str] = []
        self.subjects = Subjects("up")
        assert process.stderr is not None
        self._reader = threading.Thread(target=self._read, args=(process.stderr,), daemon=True)
        self._reader.start()

    def _read(self, stream: Any) -> None:
        for line in stream:
            self.said.append(line.rstrip())

    @property
    def brokers(self) -> list[str]:
        return list(self.line["brokers"])

    def server(self, user: str) -> Server:
        """How somebody reaches NATS."""
        config = json.loads((self.state / "nats" / "nats.conf").read_text())
        passwords = {one["user"]: one["password"] for one in config["authorization"]["users"]}
        return Server((self.line["nats"],), user, passwords[user])

    @asynccontextmanager
    async def gate(self) -> AsyncIterator[ClientGate]:
        """A gateway's connection."""
        gate = ClientGate(self.subjects, self.server("gateway"), "gateway")
        try:
            await gate.connection.wait()
            yield gate
        finally:
            await gate.close()

    def pids(self) -> dict[str, int]:
        """The process of each broker now, and of the server."""
        found: dict[str, int] = {}
        for child in processes_of(self.process.pid):
            log = self.log_of(child)
            if log is not None:
                found[log] = child
        return found

    def log_of(self, pid: int) -> str | None:
        """Whose log a process writes."""
        try:
            return Path(f"/proc/{pid}/fd/2").readlink().stem
        except OSError:
            return None

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Kill a broker, or `nats`, and have it started again; return which process it was."""
        pid = self.pids()[name]
        os.kill(pid, number)
        wait_until(lambda: self.pids().get(name, pid) != pid)
        return pid

    def log(self, name: str) -> str:
        return (self.state / "logs" / f"{name}.log").read_text()


@contextmanager
def running_overlay(
    state: Path, *options: str, brokers: int, program: str = "distributary"
) -> Iterator[RunningOverlay]:
    """Start an overlay, and stop it as Ctrl-C does; nothing of it may be left."""
    try:
        server_program()
    except MissingPackage as error:
        pytest.skip(str(error))
    command = [sys.executable, "-m", program, "up", "--json"]
    process = subprocess.Popen(
        [*command, "--brokers", str(brokers), "--state", str(state), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    timer = threading.Timer(_STARTS_S, process.kill)
    timer.start()
    text = process.stdout.readline()
    timer.cancel()
    if not text:
        process.wait()
        pytest.fail(f"it did not start: {process.stderr.read()}")
    overlay = RunningOverlay(process, state, json.loads(text))
    try:
        yield overlay
    finally:
        # Also when a test has stopped it: whoever is left is known by then.
        children = processes_of(process.pid)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        process.wait(_STOPS_S)
        overlay._reader.join(_STOPS_S)
        process.stdout.close()
        process.stderr.close()
    assert rest == ""
    assert process.returncode == 0
    assert [pid for pid in children if is_there(pid)] == []


def processes_of(pid: int) -> list[int]:
    """The processes that one has started, and that are there."""
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def is_there(pid: int) -> bool:
    """Whether a process runs; one that has ended may be listed until somebody looks."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for something to come true."""
    patience = _Patience(seconds, None)
    while not condition():
        patience.check()
        time.sleep(LOOK_S)


async def eventually(
    condition: Callable[[], object],
    seconds: float = 60.0,
    *,
    progress: Callable[[], object] | None = None,
) -> None:
    """Wait for something to come true while the loop goes on.

    It may take as long as it likes where there is `progress`: a value that changes at least once
    in so many seconds.
    """
    patience = _Patience(seconds, progress)
    while not condition():
        patience.check()
        await asyncio.sleep(LOOK_S)


class _Patience:
    """How long to wait for progress: a busy machine makes some, an overlay that hangs none."""

    def __init__(self, seconds: float, progress: Callable[[], object] | None) -> None:
        self._seconds = seconds
        self._progress = progress
        self._seen: object = None
        self._since = time.monotonic()

    def check(self) -> None:
        now = self._progress() if self._progress is not None else None
        if now != self._seen:
            self._seen, self._since = now, time.monotonic()
        assert time.monotonic() < self._since + self._seconds, "it did not happen in time"
