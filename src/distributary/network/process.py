"""The process of one broker, from its configuration to its end."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from distributary.errors import DistributaryError
from distributary.media.pool import Pool
from distributary.network.config import Config
from distributary.network.content import ContentStore
from distributary.network.conversions import PoolConversions
from distributary.network.host import NetworkHost
from distributary.network.journal import JournalInUse, SqliteJournal
from distributary.network.snapshot import JOURNAL
from distributary.network.subjects import Subjects
from distributary.network.transfers import Transfers

__all__ = ["STOPPED", "run_broker"]

STOPPED = 4
"""The exit code of a broker that is not to be started again.

It has left the overlay, as it was told, or somebody has to look at it.
"""

# How long a process that is ending may still have the journal, and how often one looks.
_ENDS_S = 20.0
_LOOK_S = 0.1
# So many objects more than before, and the young ones are looked through for garbage.
_YOUNG_MAX = 10_000

_log = logging.getLogger(__name__)


def run_broker(config: Config, ready: Callable[[], None] = lambda: None) -> int:
    """Run a broker until it is told to stop, has left or has failed; return its exit code.

    Parameters
    ----------
    ready
        Called when it is there for others.
    """
    try:
        return asyncio.run(_run(config, ready))
    except DistributaryError as error:
        _log.error("%s", error)
        return STOPPED


async def _run(config: Config, ready: Callable[[], None]) -> int:
    loop = asyncio.get_running_loop()
    ending = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.set)
    config.folder.mkdir(parents=True, exist_ok=True)
    journal = await _open(config.folder / JOURNAL, config.broker.identity)
    bytes_max = config.settings.content.content_bytes_max
    pool = Pool(config.converters.workers, limits=config.converters.limits(bytes_max))
    transfers = Transfers(ContentStore(config.folder / "content"), bytes_max=bytes_max)
    host = NetworkHost(
        config.broker.identity,
        config.settings,
        first=(config.surroundings(),),
        journal=journal,
        folder=config.folder,
        room_bytes=config.broker.room_mib * 2**20,
        subjects=Subjects(config.broker.overlay),
        server=config.server,
        convert=PoolConversions(pool, transfers),
        transfers=transfers,
    )
    try:
        await host.start()
        # A broker keeps much and leaves no circles behind. To look through all that was imported
        # and restored takes a tenth of a second, in the middle of a turn, and finds nothing.
        gc.freeze()
        gc.set_threshold(_YOUNG_MAX, *gc.get_threshold()[1:])
        told = asyncio.ensure_future(_tell(host, ready))
        stopping = asyncio.ensure_future(ending.wait())
        events: list[asyncio.Future[Any]] = [stopping, host.ended]
        await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
        ended = host.ended.done()
        if ended and host.ended.result() is None:
            _log.info("broker %s has left the overlay", config.broker.identity)
        for task in (told, stopping):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    finally:
        await host.close()
        pool.close()
    return STOPPED if ended else os.EX_OK


async def _open(path: Path, broker: str) -> SqliteJournal:
    """Open a journal; whoever had it before may be about to end, as after a kill of `up`."""
    end = time.monotonic() + _ENDS_S
    while True:
        try:
            return SqliteJournal(path, broker)
        except JournalInUse:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(_LOOK_S)


async def _tell(host: NetworkHost, ready: Callable[[], None]) -> None:
    await host.connection.wait()
    ready()
