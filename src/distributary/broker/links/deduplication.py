"""Deduplication: which messages of one peer have been handled."""

from __future__ import annotations

from dataclasses import dataclass

from distributary.broker.encoding import wire

__all__ = ["Deduplication", "DeduplicationRecord"]


@wire(531)
@dataclass(frozen=True, slots=True)
class DeduplicationRecord:
    """What a broker keeps of `Deduplication`."""

    floor: int
    above: tuple[int, ...]


_NOTHING: frozenset[int] = frozenset()


class Deduplication:
    """Which messages of one peer have been handled: all up to a number, and some above it.

    The peer says from which number on it may still send, and sends nothing that is far above
    that, so there are never many above.
    """

    __slots__ = ("_above", "_floor")

    def __init__(self, floor: int = 0, above: tuple[int, ...] = ()) -> None:
        self._floor = floor
        self._above = frozenset(above) if above else _NOTHING

    def __contains__(self, number: int) -> bool:
        return number <= self._floor or number in self._above

    def add(self, number: int, *, lowest: int) -> None:
        """Note that a message has been handled, and that nothing below `lowest` will come."""
        floor = max(self._floor, lowest - 1)
        if not self._above and number <= floor + 1:
            self._floor = max(floor, number)
            return
        above = {*self._above, number}
        while floor + 1 in above:
            floor += 1
        self._floor = floor
        self._above = frozenset(one for one in above if one > floor) or _NOTHING

    def record(self) -> DeduplicationRecord:
        """Return what is to be kept."""
        return DeduplicationRecord(self._floor, tuple(sorted(self._above)))
