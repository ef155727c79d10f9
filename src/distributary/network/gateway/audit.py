"""The audit log: who did what, one line of JSON each.

Secrets and what was published are never in it. What somebody without a token can cause is bounded,
so that nobody can push out what matters; publications, of which there are many, are summed up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import msgspec

from distributary.network.gateway.limits import Rate
from distributary.network.gateway.tokens import Access

__all__ = ["Audit"]

_FILE_BYTES_MAX = 16 * 2**20
_FILES_MAX = 5
_TEXT_CHARACTERS_MAX = 200
# Refusals of those who have no token, a second.
_STRANGERS_RATE = 5.0
_STRANGERS_BURST = 100.0
_SUM_S = 60.0


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    time: str
    what: str
    tenant: str | None = None
    token: str | None = None
    remote: str | None = None
    status: int | None = None
    detail: str | None = None
    events: int | None = None
    left_out: int = 0


class Audit:
    """The audit log of one gateway.

    Parameters
    ----------
    path
        Its newest file; older ones have a number behind that name.
    clock
        The wall clock, in seconds.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._strangers = Rate(_STRANGERS_RATE, _STRANGERS_BURST)
        self._left_out = 0
        self._published: dict[Access, int] = {}
        self._summed_at = clock()
        self._file = self._open()

    def note(
        self,
        what: str,
        access: Access | None,
        *,
        remote: str | None = None,
        status: int | None = None,
        detail: str | None = None,
    ) -> None:
        """Write down what somebody did.

        Parameters
        ----------
        access
            By which token; None for a stranger.
        """
        if access is None and self._strangers.wait_s(1, self._clock()) > 0:
            self._left_out += 1
            return
        tenant, token = (None, None) if access is None else (access.tenant, access.name)
        left_out, self._left_out = self._left_out, 0
        cut = None if detail is None else detail[:_TEXT_CHARACTERS_MAX]
        what = what[:_TEXT_CHARACTERS_MAX]
        self._write(_Line(self._now(), what, tenant, token, remote, status, cut, left_out=left_out))

    def published(self, access: Access, events: int) -> None:
        """Count what somebody published."""
        self._published[access] = self._published.get(access, 0) + events
        if self._clock() - self._summed_at >= _SUM_S:
            self.sum_up()

    def sum_up(self) -> None:
        """Write down what was published since this was done last."""
        self._summed_at = self._clock()
        published, self._published = self._published, {}
        for access, events in published.items():
            self._write(_Line(self._now(), "published", access.tenant, access.name, events=events))

    def close(self) -> None:
        """Write down what is left, and nothing more."""
        self.sum_up()
        self._file.close()

    def _now(self) -> str:
        now = time.gmtime(self._clock())
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", now)

    def _open(self) -> BinaryIO:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if not self._path.exists():
            self._path.touch(mode=0o600)
        return self._path.open("ab", buffering=0)

    def _write(self, line: _Line) -> None:
        # Control characters are escaped: nobody can write a line of their own.
        data = msgspec.json.encode(line) + b"\n"
        if self._file.tell() + len(data) > _FILE_BYTES_MAX:
            self._rotate()
        self._file.write(data)

    def _rotate(self) -> None:
        self._file.close()
        for number in range(_FILES_MAX - 1, 0, -1):
            newer = self._path if number == 1 else self._numbered(number - 1)
            if newer.exists():
                newer.replace(self._numbered(number))
        self._file = self._open()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
