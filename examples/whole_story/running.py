"""An overlay of real processes: a NATS server, and brokers with the identifiers of the history."""

from __future__ import annotations

import asyncio
import multiprocessing
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec

from distributary.errors import DistributaryError
from distributary.network.client import ClientGate
from distributary.network.config import read_config
from distributary.network.connection import Server
from distributary.network.server import free_port
from distributary.network.subjects import Subjects
from distributary.network.supervisor import GATEWAY, OverlayRecord, supervise, write_private

__all__ = ["Running", "happens", "running"]

_NAME = "up"
_LOOK_S = 0.05
_PATIENCE_S = 90.0
_STOPS_S = 60.0


@dataclass(frozen=True)
class Running:
    """An overlay that runs: its folder, its brokers, and the process of each as it began."""

    state: Path
    brokers: Sequence[str]
    processes: dict[str, int]

    @asynccontextmanager
    async def gate(self) -> AsyncIterator[ClientGate]:
        """Have a connection by which clients reach their homes, each its own."""
        config = self.state / "gateway"
        nats = read_config(self.state / "brokers" / self.brokers[0] / "broker.toml", {}).server
        password = (config / "password").read_text(encoding="ascii").strip()
        server = Server(nats.urls, GATEWAY, password)
        gate = ClientGate(Subjects(_NAME), server, GATEWAY, self.brokers)
        try:
            await gate.connection.wait()
            yield gate
        finally:
            await gate.close()


@contextmanager
def running(state: Path, brokers: Sequence[str], *, settings: str) -> Iterator[Running]:
    """Run an overlay from nothing, and stop all of it at the end.

    Parameters
    ----------
    state
        A folder of its own; what is there is deleted.
    brokers
        The identifiers.
    settings
        Tables `[settings]` of brokers.
    """
    shutil.rmtree(state, ignore_errors=True)
    overlay = OverlayRecord(_NAME, [*brokers], len(brokers), free_port(), free_port())
    write_private(state / "overlay.json", msgspec.json.encode(overlay).decode())
    spawn = multiprocessing.get_context("spawn")
    heard, said = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_supervise, args=(state, len(brokers), settings, said))
    process.start()
    said.close()
    try:
        try:
            processes = heard.recv()
        except EOFError:
            raise DistributaryError(
                f"the overlay cannot start; hint: see {state / 'logs'}"
            ) from None
        yield Running(state, brokers, processes)
    finally:
        process.terminate()
        process.join(_STOPS_S)
        heard.close()


def _supervise(state: Path, count: int, settings: str, said: Connection) -> None:
    def ready(there: dict[str, object]) -> None:
        said.send(there["brokers"])

    def say(sentence: str) -> None:
        print(f"          {sentence}", file=sys.stderr, flush=True)

    supervise(
        state, brokers=count, port=free_port(), fresh=False, ready=ready, say=say, settings=settings
    )


async def happens(condition: Callable[[], object], progress: Callable[[], object]) -> bool:
    """Wait for something to come true, and return whether it has.

    It may take as long as it likes while there is progress: a value that changes now and then.
    """
    loop = asyncio.get_running_loop()
    seen, since = progress(), loop.time()
    while not condition():
        now = progress()
        if now != seen:
            seen, since = now, loop.time()
        elif loop.time() > since + _PATIENCE_S:
            return False
        await asyncio.sleep(_LOOK_S)
    return True
