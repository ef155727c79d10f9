"""State diagrams for documents, drawn from the tables that the code looks up."""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

from distributary.broker.transitions import Transitions

__all__ = ["state_diagram"]

_State = TypeVar("_State", bound=Enum)
_Event = TypeVar("_Event", bound=Enum)


def state_diagram(transitions: Transitions[_State, _Event]) -> str:
    """Return a table of transitions as a Mermaid state diagram.

    Events with the same effect share an arrow, in the order of the table. An event is called
    by its value where that is text, and by its name otherwise.
    """
    arrows: dict[tuple[_State, _State], list[str]] = {}
    for state, event, following in transitions:
        arrows.setdefault((state, following), []).append(_label(event))
    lines = ["stateDiagram-v2", f"    [*] --> {transitions.initial.name}"]
    lines += [
        f"    {state.name} --> {following.name}: {', '.join(events)}"
        for (state, following), events in arrows.items()
    ]
    return "\n".join(lines) + "\n"


def _label(event: Enum) -> str:
    return event.value if isinstance(event.value, str) else event.name.lower().replace("_", " ")
