"""Leaves, hashes and cells, the slow and obvious way."""

from __future__ import annotations

from collections.abc import Iterator

from distributary.content.attributes import attribute_text
from distributary.content.content_space import ContentSpace
from distributary.content.dimensions import NumberBins, TextValues
from distributary.content.publication import Publication


def all_leaves(data: object, pointer: str = "") -> Iterator[tuple[str, object]]:
    """Every leaf of JSON data by its pointer, in the document's order."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from all_leaves(value, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from all_leaves(value, f"{pointer}/{index}")
    else:
        yield pointer, data


def text_hash(text: str) -> int:
    """FNV-1a with the finalizer of MurmurHash3, in integers of any size."""
    state = 0xCBF29CE484222325
    for byte in text.encode():
        state = (state ^ byte) * 0x100000001B3 % 2**64
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        state = (state ^ (state >> 33)) * factor % 2**64
    return state ^ (state >> 33)


def cell_of(space: ContentSpace, publication: Publication) -> int:
    """The cell of a publication, one dimension after the other."""
    cell = 0
    for dimension in space.dimensions:
        place = 0
        if isinstance(dimension, NumberBins):
            number = _number(publication, dimension.name)
            if number is not None:
                place = 1 + sum(edge <= number for edge in dimension.edges)
            cell = cell * (len(dimension.edges) + 2) + place
        elif isinstance(dimension, TextValues):
            text = _text(publication, dimension.name)
            if text is not None:
                place = 1 + [*dimension.values, text].index(text)
            cell = cell * (len(dimension.values) + 2) + place
        else:
            text = _text(publication, dimension.name)
            if text is not None:
                place = 1 + text_hash(text) % dimension.buckets
            cell = cell * (dimension.buckets + 1) + place
    return cell


def _number(publication: Publication, name: str) -> float | None:
    if name.startswith("/"):
        return publication.numbers.get(name)
    value = publication.attributes.get(name)
    if value is None or isinstance(value, bool):
        return None
    return {"-1": -1.0, "0.5": 0.5, "1e1": 10.0}.get(attribute_text(value)) or (
        float(value) if isinstance(value, int) else None
    )


def _text(publication: Publication, name: str) -> str | None:
    if name.startswith("/"):
        return publication.texts.get(name)
    value = publication.attributes.get(name)
    return None if value is None else attribute_text(value)
