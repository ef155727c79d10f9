"""Requests: who waits until something about a registration is safe.

A home waits for `Registered` or `Withdrawn`, a former root for `HandedOver`, a root for
`CopiesKept` of its surrogate. Each is answered cell by cell, as soon as what it promises is
true, and forgotten in a crash: whoever waits asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto

from distributary.broker.addresses import Address
from distributary.broker.messages.subscriptions import Registered, Withdrawn
from distributary.broker.rendezvous.table import Entry, EntryKey

__all__ = ["Purpose", "Request", "Requests"]


class Purpose(Enum):
    """What somebody waits for."""

    REGISTER = auto()
    WITHDRAW = auto()
    HAND_OVER = auto()
    COPY = auto()


class Request:
    """Somebody who waits for an answer about some cells of a registration."""

    __slots__ = ("asker", "cells", "id", "purpose", "version")

    def __init__(self, entry: Entry, asker: Address, purpose: Purpose) -> None:
        self.id = entry.key[1]
        self.version = entry.version
        self.asker = asker
        self.purpose = purpose
        self.cells: set[int] = set()

    def answer(self, cells: tuple[int, ...]) -> Registered | Withdrawn:
        """Return what a home is told."""
        kind = Registered if self.purpose is Purpose.REGISTER else Withdrawn
        return kind(self.id, self.version, cells)


class Requests:
    """All requests that have not been answered."""

    def __init__(self) -> None:
        self._waiting: dict[EntryKey, dict[tuple[Address, Purpose], Request]] = {}

    def add(self, entry: Entry, asker: Address, purpose: Purpose, cells: Iterable[int]) -> None:
        """Have somebody wait for what was last said about a registration to be safe."""
        waiting = self._waiting.setdefault(entry.key, {})
        request = waiting.get((asker, purpose))
        if request is None or request.version != entry.version:
            request = waiting[asker, purpose] = Request(entry, asker, purpose)
        request.cells.update(cells)

    def settle(
        self, entry: Entry, safe: Callable[[Entry, Purpose, int], bool]
    ) -> list[tuple[Request, tuple[int, ...]]]:
        """Return the requests about a registration that can be answered, with their cells."""
        waiting = self._waiting.get(entry.key)
        if waiting is None:
            return []
        ready: list[tuple[Request, tuple[int, ...]]] = []
        for place, request in list(waiting.items()):
            if request.version == entry.version:
                cells = [c for c in sorted(request.cells) if safe(entry, request.purpose, c)]
                if cells:
                    request.cells.difference_update(cells)
                    ready.append((request, tuple(cells)))
            # Whoever waits for something that is no longer said waits for nothing.
            if request.version != entry.version or not request.cells:
                del waiting[place]
        if not waiting:
            del self._waiting[entry.key]
        return ready

    def forget(self, key: EntryKey) -> None:
        """Forget who waits for a registration that is not kept here any more."""
        self._waiting.pop(key, None)
