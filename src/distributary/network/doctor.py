"""What may be wrong with a machine on which brokers are to run, and what to do about it."""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple
from urllib.parse import urlsplit

from distributary.errors import BadInput, MissingPackage
from distributary.network.connection import NatsConnection, Server
from distributary.network.server import free_port, server_program
from distributary.network.supervisor import read_operator

__all__ = ["Finding", "examine", "reach"]

_SERVER_MIN = (2, 10)
_ROOM_BYTES_MIN = 2**30
_SYNCS = 15
_SYNC_S_MAX = 0.05
_ANSWER_S = 10.0
_REACH_S = 3.0
_CLOCK_UNKNOWN = 5  # TIME_ERROR: nobody keeps this clock right.
_EXTRAS = {
    "media": ("PIL", "pypdfium2"),
    "video": ("av",),
    "speech": ("espeakng_loader",),
    "arrow": ("pyarrow",),
}


class Finding(NamedTuple):
    """One thing that was looked at.

    Attributes
    ----------
    well
        Whether brokers can run as it is.
    detail
        What was found, and a hint if something is to be done.
    """

    what: str
    well: bool
    detail: str


def examine(state: Path, port: int) -> Iterator[Finding]:
    """Look at everything that brokers need of this machine.

    Parameters
    ----------
    state
        The folder that they would use.
    port
        The first that they would use.
    """
    yield _server()
    yield _ports(port, _ports_of(state))
    folder = state
    while not folder.exists():
        folder = folder.parent
    yield _room(folder)
    yield _sync(folder)
    yield _clock()
    yield _extras()
    yield _kernels()


def reach(server: Server) -> Finding:
    """See whether a NATS server lets somebody in."""

    async def connect() -> str:
        connection = NatsConnection(server, name="doctor", inbox="_INBOX", handlers={})
        try:
            async with asyncio.timeout(_REACH_S):
                await connection.wait()
        except TimeoutError:
            return connection.problem or "no answer"
        finally:
            await connection.close()
        return ""

    problem = asyncio.run(connect())
    where = ", ".join(server.urls)
    if problem:
        return Finding(
            "NATS", False, f"{where}: {problem}; hint: is it up, and are user and password right?"
        )
    return Finding("NATS", True, f"{where} lets us in")


def _server() -> Finding:
    what = "NATS server"
    if find_spec("nats") is None:
        return Finding(what, False, 'nats-py is missing; hint: pip install "distributary[live]"')
    try:
        program = server_program()
        said = subprocess.run(  # noqa: S603, our own program
            [str(program), "--version"],
            capture_output=True,
            text=True,
            timeout=_ANSWER_S,
            check=True,
        ).stdout
    except MissingPackage as error:
        return Finding(what, False, str(error))
    except (OSError, subprocess.SubprocessError) as error:
        return Finding(what, False, f"it does not run: {error}")
    found = re.search(r"v?(\d+)\.(\d+)", said)
    if found is None or tuple(map(int, found.groups())) < _SERVER_MIN:
        least = ".".join(map(str, _SERVER_MIN))
        return Finding(what, False, f"{said.strip()} is too old; hint: {least} or newer is needed")
    return Finding(what, True, said.strip())


def _ports_of(state: Path) -> set[int | None]:
    """Return the ports of the overlay that runs in a folder, if one does."""
    try:
        operator = read_operator(state)
        # It may have been killed, and its ports be somebody else's by now.
        os.kill(operator.process, 0)
    except (BadInput, OSError):
        return set()
    return {urlsplit(url).port for url in (operator.gateway, operator.url)}


def _ports(port: int, own: set[int | None]) -> Finding:
    wanted = [one for one in (port, port + 1) if one not in own]
    taken = [str(one) for one in wanted if free_port(one) != one]
    if not taken and len(wanted) < 2:
        return Finding("ports", True, "are those of the overlay that runs")
    if taken:
        words = f"{' and '.join(taken)} in use; others are taken, or give --port"
        return Finding("ports", False, words)
    return Finding("ports", True, f"{port} and {port + 1} are free")


def _room(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    words = f"{free / 2**30:.1f} GiB free in {folder}"
    if free < _ROOM_BYTES_MIN:
        return Finding("disk", False, f"{words}; hint: make room, or give another --state")
    return Finding("disk", True, words)


def _sync(folder: Path) -> Finding:
    """See how long it takes until something is durable: each acknowledgement waits for that."""
    what = "disk speed"
    times = []
    try:
        with NamedTemporaryFile(dir=folder) as file:
            for _ in range(_SYNCS):
                began = time.perf_counter()
                file.write(bytes(4096))
                file.flush()
                os.fsync(file.fileno())
                times.append(time.perf_counter() - began)
    except OSError as error:
        reason = error.strerror or str(error)
        return Finding(what, False, f"{folder} cannot be written: {reason.lower()}")
    median = statistics.median(times)
    words = f"a sync takes {1e3 * median:.1f} ms"
    if median > _SYNC_S_MAX:
        return Finding(what, False, f"{words}, which slows everything; hint: use a local disk")
    return Finding(what, True, words)


def _clock() -> Finding:
    what = "clock"
    if sys.platform != "linux":
        return Finding(what, True, "cannot be looked at here")
    # The structure is larger than this on no system.
    state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(512))
    if state == _CLOCK_UNKNOWN:
        return Finding(
            what, False, "nobody keeps it right; hint: an NTP client does, where several agree"
        )
    return Finding(what, True, "is kept right")


def _extras() -> Finding:
    missing = [
        extra for extra, names in _EXTRAS.items() if any(find_spec(name) is None for name in names)
    ]
    if missing:
        hint = f'pip install "distributary[{",".join(missing)}]"'
        return Finding("extras", False, f"{', '.join(missing)} missing; hint: {hint}")
    return Finding("extras", True, f"{', '.join(_EXTRAS)} are there")


def _kernels() -> Finding:
    """See whether what compiles on first use has been compiled."""
    what = "compiler cache"
    spec = find_spec("distributary.filters")
    assert spec is not None
    assert spec.origin is not None
    folders: list[Callable[[], Iterator[Path]]] = [
        lambda: (Path(spec.origin or "").parent / "__pycache__").glob("*.nbc"),
        lambda: Path(os.environ.get("NUMBA_CACHE_DIR", os.devnull)).rglob("*.nbc"),
        lambda: (Path.home() / ".cache" / "numba").rglob("*.nbc"),
    ]
    if any(next(found(), None) is not None for found in folders):
        return Finding(what, True, "is warm")
    return Finding(what, False, "is cold: the first events wait; hint: distributary warm-up")
