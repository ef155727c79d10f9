"""Registering: telling the roots of cells, until each of them has answered.

Each message names several cells with one root, as far as this broker knows. Routing brings it
to the root of the first; if others of them have another root by now, that one leaves them
out, and they are asked for again one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from distributary.broker.membership import MembersChanged
from distributary.broker.settings import ns
from distributary.broker.timers import Timer
from distributary.broker.turn import Turn

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Registrar"]

_GROUPED_ATTEMPTS = 2

Make = Callable[[tuple[int, ...], Turn], object]


class _Pursuit:
    """Something that the roots of some cells have to be told."""

    __slots__ = ("attempts", "cells", "make", "timer", "waiting")

    def __init__(self, make: Make) -> None:
        self.make = make
        self.cells: set[int] = set()
        self.waiting: set[int] = set()
        self.attempts = 0
        self.timer: Timer | None = None


class Registrar:
    """What this broker wants the roots of cells to know, by name."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._pursuits: dict[str, _Pursuit] = {}
        self._roots: dict[int, str] = {}

    def pursue(self, name: str, cells: Iterable[int], make: Make, turn: Turn) -> None:
        """Tell the roots of cells something, again and again until they have answered.

        Parameters
        ----------
        name
            What to call it; what went by that name before is not told any more.
        cells
            Whose roots are told.
        make
            Makes the message for some of the cells, when it is sent.
        """
        self.abandon(name)
        pursuit = self._pursuits[name] = _Pursuit(make)
        pursuit.cells |= set(cells)
        pursuit.waiting |= pursuit.cells
        if pursuit.cells:
            self._send(name, pursuit, pursuit.waiting, turn)

    def answered(self, name: str, cells: Iterable[int]) -> bool:
        """Note that roots have answered; True when that was the last answer."""
        pursuit = self._pursuits.get(name)
        if pursuit is None or not pursuit.waiting:
            return False
        pursuit.waiting.difference_update(cells)
        if pursuit.waiting:
            return False
        self._rest(pursuit)
        return True

    def waiting(self, name: str) -> bool:
        """Whether some root has not answered."""
        pursuit = self._pursuits.get(name)
        return pursuit is not None and bool(pursuit.waiting)

    def abandon(self, name: str) -> None:
        """Tell something to nobody any more."""
        pursuit = self._pursuits.pop(name, None)
        if pursuit is not None:
            self._rest(pursuit)

    def again(self, turn: Turn) -> None:
        """Tell everything that is not abandoned to everybody again, as leases need it."""
        for name, pursuit in list(self._pursuits.items()):
            pursuit.waiting |= pursuit.cells
            pursuit.attempts = 0
            self._send(name, pursuit, pursuit.waiting, turn)

    def members_changed(self, change: MembersChanged, turn: Turn) -> None:
        """Tell everything to roots that are new or have come back."""
        membership, key_of = self._core.membership, self._core.rendezvous.key_of
        left = {*change.down, *change.gone}
        moved: set[int] = set()
        for cell, root in self._roots.items():
            if not change.came and root not in left:
                continue
            now = membership.root_of(key_of(cell))
            if now != root or now in change.came:
                self._roots[cell] = now
                moved.add(cell)
        if not moved:
            return
        for name, pursuit in list(self._pursuits.items()):
            cells = pursuit.cells & moved
            if cells:
                pursuit.waiting |= cells
                pursuit.attempts = 0
                self._send(name, pursuit, cells, turn)

    def _send(self, name: str, pursuit: _Pursuit, cells: set[int], turn: Turn) -> None:
        self._rest(pursuit)
        pursuit.attempts += 1
        settings = self._core.settings.subscriptions
        delay_s = min(settings.confirm_s * 2 ** (pursuit.attempts - 1), settings.registration_s)
        pursuit.timer = self._core.timers.at(turn.now_ns + ns(delay_s), self._repeat, name)
        links, key_of = self._core.links, self._core.rendezvous.key_of
        for group in self._groups(cells, together=pursuit.attempts <= _GROUPED_ATTEMPTS):
            links.route(key_of(group[0]), pursuit.make(group, turn), turn)

    def _repeat(self, turn: Turn, name: str) -> None:
        pursuit = self._pursuits[name]
        self._send(name, pursuit, pursuit.waiting, turn)

    def _groups(self, cells: set[int], *, together: bool) -> list[tuple[int, ...]]:
        """Return cells by root, or each on its own."""
        membership, key_of = self._core.membership, self._core.rendezvous.key_of
        groups: dict[str, list[int]] = {}
        for cell in sorted(cells):
            root = self._roots[cell] = membership.root_of(key_of(cell))
            groups.setdefault(root, []).append(cell)
        if together:
            return [tuple(groups[root]) for root in sorted(groups)]
        return [(cell,) for cell in sorted(cells)]

    def _rest(self, pursuit: _Pursuit) -> None:
        if pursuit.timer is not None:
            pursuit.timer.cancel()
            pursuit.timer = None
