"""What documents show of the protocol: state diagrams, messages and records, generated.

`python -m tests.protocol_diagrams docs/protocol.md` rewrites what stands in a document
between `<!-- generated: NAME -->`, with one of the names of `generated`, and `<!-- end -->`.
"""

from __future__ import annotations

import pkgutil
import re
import sys
from collections.abc import Iterable
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

import distributary.broker
from distributary.broker.broker import PARTS
from distributary.broker.core import Transitions
from distributary.broker.encoding import kinds, speaker_of

_PREFIX = f"{distributary.broker.__name__}."
_MARKED = re.compile(r"(<!-- generated: ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def tables() -> dict[str, list[Transitions[Any, Any]]]:
    """Return every table of transitions in the package, by the part that steps along it."""
    found: dict[str, list[Transitions[Any, Any]]] = {part: [] for part in PARTS}
    for module in pkgutil.walk_packages(distributary.broker.__path__, _PREFIX):
        own = found.get(_noun(module.name), [])
        for value in vars(import_module(module.name)).values():
            if isinstance(value, Transitions) and value not in own:
                own.append(value)
    return {part: own for part, own in found.items() if own}


def generated() -> dict[str, str]:
    """Return what there is to show, by name.

    `states PART` are the diagrams of a part, `messages NOUN` what is said about something,
    and `records` what is kept.
    """
    texts = {f"states {part}": _diagrams(own) for part, own in tables().items()}
    messages: dict[str, list[str]] = {}
    records: list[str] = []
    for number, kind in kinds().items():
        if not kind.__module__.startswith(_PREFIX):
            # Whoever tries the protocol out may have kinds of his own.
            continue
        noun = _noun(kind.__module__)
        row = f"| {number} | `{kind.__name__}` | {_first_line(kind)} |"
        if speaker_of(kind) is not None:
            messages.setdefault(noun, []).append(row)
        else:
            records.append(f"| {noun} {row}")
    for noun, rows in messages.items():
        head = ["| number | message | what it says |", "|---|---|---|"]
        texts[f"messages {noun}"] = "\n".join([*head, *rows]) + "\n"
    head = ["| part | number | record | what it is |", "|---|---|---|---|"]
    texts["records"] = "\n".join([*head, *records]) + "\n"
    return texts


def rewritten(document: str) -> str:
    """Return a document with all that is generated in it brought up to date."""
    texts = generated()
    return _MARKED.sub(lambda match: f"{match[1]}\n{texts[match[2]]}\n{match[3]}", document)


def _noun(module: str) -> str:
    return module.removeprefix(_PREFIX).partition(".")[0]


def state_diagram(transitions: Transitions[Any, Any]) -> str:
    """Return a table of transitions as a Mermaid state diagram.

    Events with the same effect share an arrow, in the order of the table. An event is called
    by its value where that is text, and by its name otherwise.
    """
    arrows: dict[tuple[Any, Any], list[str]] = {}
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


def _diagrams(own: Iterable[Transitions[Any, Any]]) -> str:
    return "\n".join(
        f"{table.name.capitalize()}:\n\n```mermaid\n{state_diagram(table)}```\n" for table in own
    )


def _first_line(kind: type) -> str:
    assert kind.__doc__ is not None
    return kind.__doc__.splitlines()[0]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(rewritten(path.read_text("utf-8")), "utf-8")
