"""Publications as the arrays that compiled loops read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from distributary.content.attributes import attribute_number, attribute_text
from distributary.content.reading import PublicationView
from distributary.filters._decision_kernels import Events
from distributary.filters._text_kernels import MISSING
from distributary.filters.growth import read_only

__all__ = ["empty_events", "events_of"]


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
        read_only(data),
    )


def events_of(
    publications: Sequence[PublicationView], keys: Mapping[str, int], numeric: frozenset[str]
) -> Events:
    """Return publications as events, a row for each.

    `keys` numbers the keys that filters read, and `numeric` are the attributes among them
    that are read as numbers.
    """
    pieces: list[bytes] = []
    text_places: list[int] = []
    numbers: list[float] = []
    number_places: list[int] = []
    width = max(len(keys), 1)
    for row, publication in enumerate(publications):
        first = row * width
        for name, value in publication.attributes.items():
            key = keys.get(name)
            if key is None or name.startswith("/"):
                continue
            text = value if type(value) is str else attribute_text(value)
            pieces.append(text.encode("utf-8", "surrogatepass"))
            text_places.append(first + key)
            if name in numeric:
                number = attribute_number(value)
                if number is not None:
                    numbers.append(number)
                    number_places.append(first + key)
        for pointer, text in publication.texts.items():
            key = keys.get(pointer)
            if key is not None and pointer.startswith("/"):
                pieces.append(text.encode("utf-8", "surrogatepass"))
                text_places.append(first + key)
        for pointer, number in publication.numbers.items():
            key = keys.get(pointer)
            if key is not None and pointer.startswith("/"):
                numbers.append(number)
                number_places.append(first + key)
    data = np.frombuffer(b"".join(pieces), np.uint8)
    events = empty_events(len(publications), len(keys), data)
    lengths = np.array([len(piece) for piece in pieces], np.int64)
    places = np.array(text_places, np.int64)
    events.begins.reshape(-1)[places] = np.cumsum(lengths) - lengths
    events.lengths.reshape(-1)[places] = lengths
    events.numbers.reshape(-1)[np.array(number_places, np.int64)] = numbers
    return events
