"""Snapshots: a copy of what all brokers of one machine have on disk, from one moment.

One broker has acknowledged what another has therefore forgotten. Copies of two journals from
different moments may both be without it; so all brokers stand still while the copy is made. What
is copied then is what a loss of power would have left, and journals recover from that.

What gateways share is copied with them, from the NATS server, which stands still after the
brokers: no home then knows of a subscription that is not in the list.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from distributary.broker.addresses import is_digest

__all__ = ["JOURNAL", "JOURNAL_FILES", "SHARED", "copy_broker", "copy_shared", "take_snapshot"]

JOURNAL = "journal.db"
# The log is a part of the journal; what is not in the file itself is there.
JOURNAL_FILES = (JOURNAL, f"{JOURNAL}-wal")
_CONTENT = "content"
SHARED = Path("nats", "jetstream")
"""Where the NATS server has what gateways share."""


def take_snapshot(state: Path, target: Path, brokers: Iterable[str]) -> None:
    """Copy what must survive of an overlay, while nobody writes there.

    Content is linked where that is possible: its files never change.
    """
    draft = target.with_name(f"{target.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.rmtree(target, ignore_errors=True)
    draft.mkdir()
    shutil.copyfile(state / "overlay.json", draft / "overlay.json")
    for name in brokers:
        copy_broker(state / "brokers" / name, draft / "brokers" / name, link=True)
    copy_shared(state, draft)
    draft.replace(target)


def copy_broker(source: Path, target: Path, *, link: bool) -> None:
    """Copy the journal and the content of a broker."""
    (target / _CONTENT).mkdir(parents=True)
    for name in JOURNAL_FILES:
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)
    if (source / _CONTENT).is_dir():
        for path in sorted((source / _CONTENT).iterdir()):
            # Drafts are begun anew.
            if is_digest(path.name):
                _copy(path, target / _CONTENT / path.name, link=link)


def copy_shared(source: Path, target: Path) -> None:
    """Copy what gateways share: tokens by their hashes, and where clients are at home."""
    if (source / SHARED).is_dir():
        shutil.copytree(source / SHARED, target / SHARED)


def _copy(source: Path, target: Path, *, link: bool) -> None:
    if link:
        try:
            os.link(source, target)
            return
        except OSError:
            pass
    shutil.copyfile(source, target)
