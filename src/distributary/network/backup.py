"""Backup and restore of an overlay on one machine.

A backup is older than the overlay from the moment it is made. As a whole it can be brought back:
all brokers then remember the same moment. One broker alone cannot, since the others remember what
it has said and acknowledged after it. Its place is taken by a broker with a new identifier.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import time
from pathlib import Path

import msgspec
import numpy as np

from distributary.errors import BadInput, DistributaryError, JournalDamaged
from distributary.network.content import digest_of_file
from distributary.network.journal import SqliteJournal
from distributary.network.snapshot import JOURNAL, SHARED, copy_broker, copy_shared, take_snapshot
from distributary.network.supervisor import (
    SNAPSHOT,
    OverlayRecord,
    forget,
    locked,
    read_operator,
    read_overlay_record,
    write_private,
)
from distributary.topology.identifiers import random_identifiers

__all__ = ["Restored", "backup", "restore"]

_VERSION = 1
_TAKES_S = 120.0
_LOOK_S = 0.02


class _About(msgspec.Struct, forbid_unknown_fields=True):
    """What a backup says of itself.

    Attributes
    ----------
    shared
        The digests of files that gateways share, by their paths.
    """

    version: int
    made: float
    shared: dict[str, str] = {}


class Restored(msgspec.Struct, frozen=True):
    """What was brought back.

    Attributes
    ----------
    brokers
        Those that are as they were.
    replaced
        New identifiers of those that were lost, by their old ones.
    """

    brokers: tuple[str, ...]
    replaced: dict[str, str]


def backup(state: Path, target: Path) -> list[str]:
    """Copy an overlay to a new folder, whether it runs or not; return its brokers.

    One that runs stands still for as long as its journals take to be copied.
    """
    if not (state / "overlay.json").exists():
        raise BadInput(str(state), "has no overlay", hint="--state names its folder")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BadInput(str(target), "is there already", hint="name a new folder")
    snapshot = state / SNAPSHOT
    if not _snapshot_at_rest(state, snapshot):
        _ask_for_snapshot(state, snapshot)
    try:
        overlay = read_overlay_record(snapshot / "overlay.json")
        for name in overlay.brokers:
            copy_broker(snapshot / "brokers" / name, target / "brokers" / name, link=False)
        copy_shared(snapshot, target)
    except OSError as error:
        raise BadInput(str(target), f"cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(snapshot, ignore_errors=True)
    _write_about(target, overlay)
    return overlay.brokers


def restore(source: Path, state: Path, *, fresh: bool) -> Restored:
    """Bring back an overlay, or the places of the brokers that it has lost.

    Parameters
    ----------
    fresh
        Whether to forget an overlay that is there, also one that is well.
    """
    kept = _check(source)
    state.mkdir(parents=True, exist_ok=True)
    with locked(state):
        there = None
        if (state / "overlay.json").exists() and not fresh:
            there = read_overlay_record(state / "overlay.json")
            lost = [name for name in there.brokers if not _is_well(state, name)]
            if not lost:
                raise BadInput(
                    str(state),
                    "has an overlay, and all its brokers have their journals",
                    hint="--fresh forgets them; --state names another folder",
                )
            if len(lost) < len(there.brokers):
                return _replace_lost(state, there, lost)
        forget(state)
        for name in kept.brokers:
            copy_broker(source / "brokers" / name, state / "brokers" / name, link=False)
        copy_shared(source, state)
        write_private(state / "overlay.json", msgspec.json.encode(kept).decode())
    return Restored(tuple(kept.brokers), {})


def _snapshot_at_rest(state: Path, snapshot: Path) -> bool:
    """Copy an overlay that does not run; return whether it does not."""
    try:
        with locked(state):
            take_snapshot(state, snapshot, read_overlay_record(state / "overlay.json").brokers)
    except BadInput:
        if _is_locked(state):
            return False
        raise
    return True


def _is_locked(state: Path) -> bool:
    with (state / "lock").open("a+") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def _ask_for_snapshot(state: Path, snapshot: Path) -> None:
    # Whoever has the folder locked has written this itself.
    operator = read_operator(state)
    shutil.rmtree(snapshot, ignore_errors=True)
    os.kill(operator.process, signal.SIGUSR1)
    end = time.monotonic() + _TAKES_S
    while not snapshot.exists():
        if time.monotonic() > end or not _is_locked(state):
            raise DistributaryError(
                f"the overlay in {state} has made no copy of itself; hint: is the disk full?"
            )
        time.sleep(_LOOK_S)


def _write_about(target: Path, overlay: OverlayRecord) -> None:
    """Say last what it is: what does not is no whole backup."""
    write_private(target / "overlay.json", msgspec.json.encode(overlay).decode())
    for path in target.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    about = _About(_VERSION, time.time(), _shared(target))
    write_private(target / "backup.json", msgspec.json.encode(about).decode())


def _shared(folder: Path) -> dict[str, str]:
    """Return the digests of all files that gateways share, by their paths."""
    paths = sorted(path for path in (folder / SHARED).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): digest_of_file(path) for path in paths}


def _check(source: Path) -> OverlayRecord:
    """Return the overlay in a backup, all of which can be read."""
    try:
        about = msgspec.json.decode((source / "backup.json").read_bytes(), type=_About)
    except (OSError, msgspec.DecodeError):
        raise BadInput(str(source), "is no whole backup") from None
    if about.version != _VERSION:
        raise BadInput(
            str(source), f"has version {about.version}, and this program reads {_VERSION}"
        )
    if _shared(source) != about.shared:
        raise BadInput(str(source / SHARED), "is not what was copied")
    overlay = read_overlay_record(source / "overlay.json")
    for name in overlay.brokers:
        folder = source / "brokers" / name
        if not _is_well(source, name):
            raise BadInput(str(folder), "has no journal that can be read")
        for path in (folder / "content").iterdir():
            if digest_of_file(path) != path.name:
                raise BadInput(str(path), "is not what its digest says")
    return overlay


def _is_well(state: Path, name: str) -> bool:
    """Whether a broker has a journal that can be read."""
    path = state / "brokers" / name / JOURNAL
    if not path.exists():
        return False
    try:
        journal = SqliteJournal(path, name)
    except (JournalDamaged, BadInput):
        return False
    try:
        return bool(journal.read())
    except JournalDamaged:
        return False
    finally:
        journal.close()


def _replace_lost(state: Path, overlay: OverlayRecord, lost: list[str]) -> Restored:
    """Have new brokers in the places of those that were lost, while others have gone on."""
    well = [name for name in overlay.brokers if name not in lost]
    founders = [name for name in overlay.brokers[: overlay.founders] if name in well]
    replaced: dict[str, str] = {}
    while len(replaced) < len(lost):
        (name,) = random_identifiers(1, np.random.default_rng())
        if name not in (*overlay.brokers, *replaced.values()):
            replaced[lost[len(replaced)]] = name
    overlay.brokers = [*well, *replaced.values()]
    # Somebody who was there is asked by those who come.
    overlay.founders = max(len(founders), 1)
    write_private(state / "overlay.json", msgspec.json.encode(overlay).decode())
    for name in lost:
        shutil.rmtree(state / "brokers" / name, ignore_errors=True)
    return Restored(tuple(well), replaced)
