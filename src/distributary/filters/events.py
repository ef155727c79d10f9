"""One publication as the arrays that compiled loops read."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from distributary.content.attributes import attribute_number, attribute_text
from distributary.filters._decision_kernels import Events
from distributary.filters._text_kernels import MISSING
from distributary.filters.reading import Readable

__all__ = ["empty_events", "event_of"]


def empty_events(
    count: int, key_count: int, data: np.ndarray[tuple[int], np.dtype[np.uint8]]
) -> Events:
    """Return events that have nothing at any key."""
    shape = (count, max(key_count, 1))
    return Events(
        np.full(shape, np.nan),
        np.zeros(shape, np.int64),
        np.full(shape, -1, np.int32),
        np.full(shape, MISSING, np.int32),
        data,
    )


def event_of(publication: Readable, keys: Mapping[str, int], numeric: frozenset[str]) -> Events:
    """Return a publication as one event.

    Parameters
    ----------
    publication
        The event.
    keys
        The number of every key that a filter reads.
    numeric
        The attributes that filters read as numbers.
    """
    pieces: list[bytes] = []
    places: list[int] = []
    numbers: list[tuple[int, float]] = []
    for name, value in publication.attributes.items():
        key = keys.get(name)
        if key is None or name.startswith("/"):
            continue
        text = value if type(value) is str else attribute_text(value)
        pieces.append(text.encode("utf-8", "surrogatepass"))
        places.append(key)
        if name in numeric:
            number = attribute_number(value)
            if number is not None:
                numbers.append((key, number))
    for pointer, text in publication.texts.items():
        key = keys.get(pointer)
        if key is not None and pointer.startswith("/"):
            pieces.append(text.encode("utf-8", "surrogatepass"))
            places.append(key)
    for pointer, number in publication.numbers.items():
        key = keys.get(pointer)
        if key is not None and pointer.startswith("/"):
            numbers.append((key, number))
    events = empty_events(1, len(keys), np.frombuffer(b"".join(pieces), np.uint8))
    begin = 0
    for key, piece in zip(places, pieces, strict=True):
        events.begins[0, key] = begin
        events.lengths[0, key] = len(piece)
        begin += len(piece)
    for key, number in numbers:
        events.numbers[0, key] = number
    return events
