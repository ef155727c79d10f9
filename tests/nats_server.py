"""A NATS server for tests: a real one, on a free port, gone when its process ends."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest

from distributary.errors import MissingPackage
from distributary.network.server import (
    User,
    free_port,
    is_listening,
    server_config,
    server_program,
)

__all__ = ["NatsServer", "shared_server"]

_STARTS_S = 30.0


class NatsServer:
    """A server that can be killed and started again on its port."""

    def __init__(
        self,
        folder: Path,
        users: Iterable[User],
        *,
        more: Mapping[str, object] | None = None,
        store: Path | None = None,
    ) -> None:
        try:
            self._program = server_program()
        except MissingPackage as error:
            pytest.skip(str(error))
        self.port = free_port()
        self._config = folder / "nats.conf"
        self.name = f"test-{os.getpid()}-{self.port}"
        text = server_config(name=self.name, port=self.port, users=users, store=store)
        config = json.loads(text)
        self._config.write_text(json.dumps({**config, **(more or {})}))
        self.start()

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._process = subprocess.Popen(
            [str(self._program), "-c", str(self._config)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + _STARTS_S
        while not is_listening(self.port, self.name):
            assert self._process.poll() is None, "the server has ended"
            assert time.monotonic() < end, "the server does not listen"
            time.sleep(0.005)

    def kill(self) -> None:
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()


@cache
def shared_server() -> NatsServer:
    """Return a server on which everybody may say everything, for overlays of their own."""
    folder = Path(tempfile.mkdtemp(prefix="nats-"))
    everybody = User("test", (">",), (">",), answers=True, password="test")  # noqa: S106
    server = NatsServer(folder, [everybody])

    def end() -> None:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return server
