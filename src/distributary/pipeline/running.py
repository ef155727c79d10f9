"""Runs that are going on: each leaves a mark in the folder it writes, until it has ended.

So tidying knows which files may still be wanted. A run that was killed leaves its mark; on its own
machine it is seen to be gone, and elsewhere it is believed for as long as a run may take.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from distributary.pipeline.folder import Folder

if TYPE_CHECKING:
    from distributary.pipeline.store import Store

__all__ = ["marked", "oldest_running"]

_MARK = "_running-"
_LONGEST = timedelta(days=7)
_TIME = "%Y%m%dT%H%M%S"


@contextmanager
def marked(store: Store) -> Iterator[None]:
    """Leave a mark of a store's run as long as it goes on, in a folder that is there."""
    name = f"{_MARK}{store.run}"
    there = bool(store.folder.names())
    if there:
        store.folder.write_text(name, f"{socket.gethostname()} {os.getpid()}\n")
    try:
        yield
    finally:
        if there:
            store.folder.remove(name)


def oldest_running(folder: Folder) -> datetime | None:
    """Return when the oldest run began that may still be going on; None when there is none."""
    begun = []
    for name in folder.names():
        if not name.startswith(_MARK):
            continue
        began = datetime.strptime(name.removeprefix(_MARK).partition("-")[0], _TIME)
        began = began.replace(tzinfo=UTC)
        host, _, process = (folder.read_text(name) or "").strip().partition(" ")
        if host == socket.gethostname():
            alive = process.isdecimal() and _is_alive(int(process))
        else:
            alive = datetime.now(UTC) - began < _LONGEST
        if alive:
            begun.append(began)
        else:
            folder.remove(name)
    return min(begun, default=None)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
