"""An overlay as `distributary up` runs it: its address, and what all its processes have used."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import psutil

from distributary.network.buckets import Buckets
from distributary.network.client import ClientGate
from distributary.network.connection import Server
from distributary.network.gateway.directory import Directory, DirectoryEntry, Owner
from distributary.network.subjects import Subjects

__all__ = ["RunningOverlay", "running_overlay"]

_SUBJECTS = Subjects("up")
_USER = "gateway"
# Whose token it is that `up` prints.
_OWNER = Owner("", "up")


class RunningOverlay:
    """What was started.

    Attributes
    ----------
    url, token
        Of the gateway.
    brokers
        The process of each, as it was when all were ready.
    """

    def __init__(self, process: subprocess.Popen[str], line: dict[str, Any]) -> None:
        self.url: str = line["gateway"]
        self.token: str = line["token"]
        self.brokers: dict[str, int] = line["brokers"]
        password = (Path(line["state"]) / _USER / "password").read_text(encoding="utf-8")
        self._server = Server((line["nats"],), _USER, password)
        self._process = psutil.Process(process.pid)

    def cpu_s(self) -> float:
        """Return what all its processes have used so far, and this one."""
        own = resource.getrusage(resource.RUSAGE_SELF)
        used = own.ru_utime + own.ru_stime
        for process in (self._process, *self._process.children(recursive=True)):
            times = process.cpu_times()
            used += times.user + times.system
        return used

    @asynccontextmanager
    async def gate(self) -> AsyncIterator[ClientGate]:
        """Have a way to speak to brokers over NATS, as the gateway has."""
        gate = ClientGate(_SUBJECTS, self._server, _USER, list(self.brokers))
        try:
            await gate.connection.wait()
            yield gate
        finally:
            await gate.close()

    async def homes(self, subscription: str) -> tuple[str, str]:
        """Return where the gateway publishes, and where a subscription of it is at home."""
        buckets = Buckets(_SUBJECTS, self._server, _USER)
        try:
            directory = Directory(buckets)
            publisher = await directory.publisher(_OWNER)
            subscriber = await directory.subscription(_OWNER, subscription)
        finally:
            await buckets.close()
        assert isinstance(publisher, DirectoryEntry)
        assert isinstance(subscriber, DirectoryEntry)
        return publisher.home, subscriber.home


@contextmanager
def running_overlay(state: Path, *, brokers: int) -> Iterator[RunningOverlay]:
    """Run an overlay until it is not needed any more."""
    command = [sys.executable, "-m", "distributary", "up", "--json", "--brokers", str(brokers)]
    with subprocess.Popen(
        [*command, "--state", str(state)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line, "the overlay does not start"
            yield RunningOverlay(process, json.loads(line))
        finally:
            process.send_signal(signal.SIGINT)
