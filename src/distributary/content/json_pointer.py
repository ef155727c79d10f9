"""JSON Pointers (RFC 6901): names for places inside JSON data, and the leaves they lead to."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from distributary.errors import BadInput, quoted

__all__ = ["LEAVES_MAX", "POINTER_CHARACTERS_MAX", "checked_pointer", "leaves", "pointer_to"]

# Of each kind. What a filter can name must be bounded, or one publication with a million
# leaves would cost as much as a million publications.
LEAVES_MAX = 256
# A longer path is not a leaf: thousands of leaves below one key of a megabyte would
# otherwise repeat that megabyte thousands of times.
POINTER_CHARACTERS_MAX = 1024

_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)*")


def pointer_to(parent: str, key: str) -> str:
    """Return the pointer to field `key` of what `parent` points to."""
    return f"{parent}/{key.replace('~', '~0').replace('/', '~1')}"


def checked_pointer(place: str, pointer: object) -> str:
    """Return `pointer` if it is a JSON Pointer that can lead to a leaf."""
    if not isinstance(pointer, str):
        raise BadInput(place, "must be a JSON Pointer, such as '/price'")
    if len(pointer) > POINTER_CHARACTERS_MAX:
        raise BadInput(
            place, f"has {len(pointer):,} characters; a pointer has at most 1,024 that are read"
        )
    if _POINTER.fullmatch(pointer) is None:
        raise BadInput(
            place,
            f"{quoted(pointer)} is not a JSON Pointer",
            hint="it is empty or begins with '/'; '~' is written '~0' and '/' in a name '~1'",
        )
    return pointer


def leaves(data: object) -> tuple[dict[str, float], dict[str, str]]:
    """Return the numbers and the texts of JSON `data`, by JSON Pointer.

    They are the first `LEAVES_MAX` of each kind in the document's order. Booleans and
    null are neither, and nor are numbers that a double cannot hold.
    """
    numbers: dict[str, float] = {}
    texts: dict[str, str] = {}
    # Iterators instead of recursion: depth is the sender's choice, and so is breadth. A
    # pointer is put together only for what is kept.
    waiting: list[Iterator[tuple[str | int, object]]] = [iter((("", data),))]
    parents = [""]
    while waiting:
        for key, value in waiting[-1]:
            if type(value) is str:
                if len(texts) == LEAVES_MAX:
                    continue
            elif type(value) is int or type(value) is float:
                if len(numbers) == LEAVES_MAX:
                    continue
            elif not isinstance(value, dict | list | Mapping):
                continue
            pointer = pointer_to(parents[-1], str(key)) if len(waiting) > 1 else ""
            if len(pointer) > POINTER_CHARACTERS_MAX:
                continue
            if isinstance(value, str):
                texts[pointer] = value
            elif isinstance(value, int | float):
                number = _double(value)
                if math.isfinite(number):
                    numbers[pointer] = number
            else:
                entries = enumerate(value) if isinstance(value, list) else value.items()
                waiting.append(iter(entries))
                parents.append(pointer)
                break
            if len(numbers) == LEAVES_MAX == len(texts):
                return numbers, texts
        else:
            waiting.pop()
            parents.pop()
    return numbers, texts


def _double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
