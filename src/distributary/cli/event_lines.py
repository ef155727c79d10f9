"""Events one per line, from a file or from standard input, one at a time or in portions."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from distributary.errors import BadInput
from distributary.files import naming

if TYPE_CHECKING:
    from distributary.content.publication import Publication

__all__ = ["BadLines", "EventLine", "EventPortion", "event_lines", "event_portions"]

_ONE_LINE = "line 1, "
# A portion of events ends where it has so many bytes: one event may have several megabytes.
_PORTION_BYTES_MAX = 4 * 2**20
_SHOWN_MAX = 5


class EventLine(NamedTuple):
    """What a line of the file holds.

    What is wrong with an event names the file and the line; `end` is how many bytes of the file are
    read when this line is.
    """

    event: Publication | BadInput
    end: int


class EventPortion(NamedTuple):
    """Events that stand one after the other in the file.

    There is at least one; `end` is how many bytes of the file are read when these are.
    """

    events: list[Publication]
    end: int


class BadLines:
    """What becomes of lines that are no events: the first ends it all, or they are counted.

    With `skip` they are passed over, and the first few are told on standard error.
    """

    def __init__(self, *, skip: bool) -> None:
        self._skip = skip
        self.count = 0

    def add(self, fault: BadInput) -> None:
        """Count a line, or raise what is wrong with it."""
        if not self._skip:
            raise fault
        self.count += 1
        if self.count <= _SHOWN_MAX:
            print(f"warning: {fault}", file=sys.stderr)


def event_portions(
    lines: Iterable[EventLine], bad: BadLines, *, events_max: int
) -> Iterator[EventPortion]:
    """Yield the events in portions of at most so many, and of some megabytes."""
    events: list[Publication] = []
    begin = end = 0
    for event, end in lines:
        if isinstance(event, BadInput):
            bad.add(event)
            continue
        events.append(event)
        if len(events) >= events_max or end - begin >= _PORTION_BYTES_MAX:
            yield EventPortion(events, end)
            events, begin = [], end
    if events:
        yield EventPortion(events, end)


def event_lines(path: Path) -> Iterator[EventLine]:
    """Yield the events of a file, in its order; empty lines are passed over.

    Memory is bounded by the longest line that an event may have, not by the file.

    The path `-` is standard input. Raises `BadInput` when there is no such file, or it cannot be
    read to its end.
    """
    streamed = str(path) == "-"
    shown = str(path) if str(path).isprintable() else repr(str(path))
    place = "standard input" if streamed else shown
    with naming(place):
        if streamed:
            yield from _lines(sys.stdin.buffer, place)
        else:
            with path.open("rb") as file:
                yield from _lines(file, place)


def _lines(file: BinaryIO, place: str) -> Iterator[EventLine]:
    from distributary.content.publication import EVENT_BYTES_MAX, parse_event

    limit = EVENT_BYTES_MAX
    number = end = 0
    while line := file.readline(limit + 1):
        number += 1
        end += len(line)
        if not line.strip():
            continue
        try:
            event: Publication | BadInput = parse_event(line.rstrip(b"\r\n"), bytes_max=limit)
        except BadInput as error:
            # The event is a document of one line, and which one in the file is said before.
            inside = error.place.removeprefix(_ONE_LINE)
            event = BadInput(f"{place}: line {number}: {inside}", error.problem, hint=error.hint)
        while len(line) > limit and not line.endswith(b"\n"):
            line = file.readline(limit + 1)
            end += len(line)
        yield EventLine(event, end)
