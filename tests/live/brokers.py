"""Brokers for tests that are started one by one, and stay away when they are killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from tests.certificates import Authority
from tests.nats_server import NatsServer

from distributary.network.client import ClientGate
from distributary.network.connection import Server
from distributary.network.server import users_of
from distributary.network.status import ask
from distributary.network.subjects import Subjects

__all__ = ["Brokers", "ending", "started_brokers"]


class Brokers:
    """Processes of `distributary broker` at one NATS server."""

    def __init__(
        self,
        folder: Path,
        names: Sequence[str],
        *,
        settings: str = "",
        authority: Authority | None = None,
        store: Path | None = None,
        more: Mapping[str, object] | None = None,
    ) -> None:
        self.names = names
        self.subjects = Subjects("east")
        self.folder = folder
        self._authority = authority
        named = "" if authority is None else f'authority = "{authority.certificate}"\n'
        self._settings = named + settings
        self.users = users_of(self.subjects, names, gateways=["gateway"], operators=["operator"])
        tls = {} if authority is None else {"tls": authority.server()}
        self.nats = NatsServer(
            folder, self.users.values(), store=store, more={**tls, **(more or {})}
        )
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def server(self, user: str) -> Server:
        authority = None if self._authority is None else self._authority.certificate
        return Server((self.nats.url,), user, self.users[user].password, authority)

    def start(self, name: str, **environment: str) -> None:
        path = self.folder / f"{name}.toml"
        path.write_text(
            f'[broker]\nidentity = "{name}"\noverlay = "east"\nstate = "{name}"\n'
            f"members = {[*self.names]}\n"
            f'[nats]\nurls = ["{self.nats.url}"]\nuser = "{name}"\n{self._settings}'
        )
        password = self.users[name].password
        self.processes[name] = subprocess.Popen(
            [sys.executable, "-m", "distributary", "broker", "--config", str(path)],
            env={**os.environ, "DISTRIBUTARY_NATS_PASSWORD": password, **environment},
        )

    def kill(self, name: str) -> None:
        self.processes[name].kill()
        self.processes.pop(name).wait()

    async def wait(self) -> None:
        """Wait until everybody who was started knows of all."""
        server, count = self.server("operator"), len(self.processes)
        counts: list[int] = []
        while counts != [count] * count:
            told = await ask(self.subjects, server, "operator", list(self.processes))
            counts = [one.get("members_up", 0) if one else 0 for one in told.values()]
            await asyncio.sleep(0.05)

    @asynccontextmanager
    async def gate(self, brokers: Sequence[str] = ()) -> AsyncIterator[ClientGate]:
        gate = ClientGate(self.subjects, self.server("gateway"), "gateway", brokers)
        try:
            await gate.connection.wait()
            yield gate
        finally:
            await gate.close()


@contextmanager
def started_brokers(
    folder: Path,
    names: Sequence[str],
    *,
    settings: str = "",
    authority: Authority | None = None,
    store: Path | None = None,
) -> Iterator[Brokers]:
    """Start brokers, and end those that are there in the end."""
    brokers = Brokers(folder, names, settings=settings, authority=authority, store=store)
    with ending(brokers):
        for name in names:
            brokers.start(name)
        yield brokers


@contextmanager
def ending(brokers: Brokers) -> Iterator[None]:
    """End brokers in good order, and their server."""
    try:
        yield
        for process in brokers.processes.values():
            process.send_signal(signal.SIGTERM)
        assert [process.wait(60) for process in brokers.processes.values()] == [0] * len(
            brokers.processes
        )
    finally:
        for process in brokers.processes.values():
            process.kill()
            process.wait()
        brokers.nats.kill()
