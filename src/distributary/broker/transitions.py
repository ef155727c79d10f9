"""Transitions: how the state of something changes, as a table that code looks up.

The table is data, so that the diagram in the documents is drawn from what really runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Generic, TypeVar

__all__ = ["Transitions"]

_State = TypeVar("_State", bound=Enum)
_Event = TypeVar("_Event", bound=Enum)


class Transitions(Generic[_State, _Event]):
    """The states of one kind of thing, and which event leads from which to which.

    Attributes
    ----------
    name
        What it is that has these states.
    initial
        The state in which it begins.
    """

    __slots__ = ("_table", "initial", "name")

    def __init__(
        self, name: str, initial: _State, table: Mapping[tuple[_State, _Event], _State]
    ) -> None:
        self.name = name
        self.initial = initial
        self._table = dict(table)

    def step(self, state: _State, event: _Event) -> _State | None:
        """Return the state that follows; None when the event means nothing in this state."""
        return self._table.get((state, event))

    def __iter__(self) -> Iterator[tuple[_State, _Event, _State]]:
        """Go through (state, event, next state), in the order in which they were written."""
        for (state, event), following in self._table.items():
            yield state, event, following
