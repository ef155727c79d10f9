"""Dimensions of a content space: each sorts publications into bins by one attribute or leaf."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np

from distributary.content.fields import Record
from distributary.content.json_pointer import checked_pointer
from distributary.content.publication import Publication
from distributary.content.reading import number_at, text_at
from distributary.errors import BadInput, quoted

__all__ = [
    "CELLS_MAX",
    "Dimension",
    "NumberBins",
    "TextBuckets",
    "TextValues",
    "bucket_of",
    "dimension_from",
]

CELLS_MAX = 4096
# Longer texts are not remembered, so that few of them cannot take much.
_SHORT_CHARACTERS = 256


def bucket_of(text: str, buckets: int) -> int:
    """Return the bucket of a text, the same on every machine and in every run."""
    return (_known if len(text) <= _SHORT_CHARACTERS else _bucket)(text, buckets)


def _bucket(text: str, buckets: int) -> int:
    from distributary.content._hash_kernels import text_hash

    data = np.frombuffer(text.encode(), dtype=np.uint8)
    return int(text_hash(data, 0, len(data))) % buckets


# Most events have one of a few sources and types.
_known = lru_cache(maxsize=4096)(_bucket)


@dataclass(frozen=True)
class NumberBins:
    """A dimension over a number.

    Bin 0 is for absent, bin `i` for `edges[i - 2] <= x < edges[i - 1]`; the first and the
    last bin reach to infinity. What is not a number is absent.

    The name is that of an attribute, or a JSON Pointer into the data.
    """

    name: str
    edges: tuple[float, ...]

    @property
    def bin_count(self) -> int:
        """How many bins there are, that for absent among them."""
        return len(self.edges) + 2

    def bin_of_number(self, number: float | None) -> int:
        """Return the bin of a number; None and NaN are absent."""
        if number is None or math.isnan(number):
            return 0
        return bisect.bisect_right(self.edges, number) + 1

    def bin_of(self, publication: Publication) -> int:
        """Return the bin of a publication."""
        return self.bin_of_number(number_at(publication, self.name))

    def document(self) -> dict[str, object]:
        """Return the dimension as plain data."""
        return {"name": self.name, "edges": list(self.edges)}


@dataclass(frozen=True)
class TextBuckets:
    """A dimension over a text, by its hash.

    Bin 0 is for absent, and one more than `bucket_of` says for all others. Attributes that
    are integers or booleans count by their canonical text; in data only texts count.

    The name is that of an attribute, or a JSON Pointer into the data.
    """

    name: str
    buckets: int

    @property
    def bin_count(self) -> int:
        """How many bins there are, that for absent among them."""
        return self.buckets + 1

    def bin_of_text(self, text: str | None) -> int:
        """Return the bin of a text; None is absent."""
        return 0 if text is None else bucket_of(text, self.buckets) + 1

    def bin_of(self, publication: Publication) -> int:
        """Return the bin of a publication."""
        return self.bin_of_text(text_at(publication, self.name))

    def document(self) -> dict[str, object]:
        """Return the dimension as plain data."""
        return {"name": self.name, "buckets": self.buckets}


@dataclass(frozen=True)
class TextValues:
    """A dimension over a text, with a bin for each of some texts and one for all others.

    Bin 0 is for absent, bin `i` for `values[i - 1]`, and the last for every other text. What
    counts as a text is the same as in `TextBuckets`.

    The name is that of an attribute, or a JSON Pointer into the data.
    """

    name: str
    values: tuple[str, ...]

    @property
    def bin_count(self) -> int:
        """How many bins there are, those for absent and for others among them."""
        return len(self.values) + 2

    @property
    def others(self) -> int:
        """The bin of the texts that have none of their own."""
        return len(self.values) + 1

    @cached_property
    def _bins(self) -> dict[str, int]:
        return {value: number for number, value in enumerate(self.values, start=1)}

    def bin_of_text(self, text: str | None) -> int:
        """Return the bin of a text; None is absent."""
        return 0 if text is None else self._bins.get(text, self.others)

    def bin_of(self, publication: Publication) -> int:
        """Return the bin of a publication."""
        return self.bin_of_text(text_at(publication, self.name))

    def document(self) -> dict[str, object]:
        """Return the dimension as plain data."""
        return {"name": self.name, "values": list(self.values)}


Dimension: TypeAlias = NumberBins | TextBuckets | TextValues

_WAYS = ("edges", "buckets", "values")


def dimension_from(entry: Record) -> Dimension:
    """Return the dimension in an entry of a document, or raise `BadInput`."""
    entry.check_keys(("name", *_WAYS), "a dimension")
    name = _dimension_name(entry)
    if sum(way in entry for way in _WAYS) != 1:
        raise BadInput(
            entry.place(),
            "must have either edges, buckets or values",
            hint="edges divide a number, buckets and values a text",
        )
    if "edges" in entry:
        return NumberBins(name, _edges(entry))
    if "values" in entry:
        values = entry.names("values", count_max=CELLS_MAX)
        if not values:
            raise BadInput(entry.place("values"), "is empty")
        return TextValues(name, tuple(values))
    buckets = entry.value("buckets")
    if isinstance(buckets, bool) or not isinstance(buckets, int) or not 1 <= buckets < CELLS_MAX:
        raise BadInput(
            entry.place("buckets"), f"must be a whole number between 1 and {CELLS_MAX - 1:,}"
        )
    return TextBuckets(name, buckets)


def _dimension_name(entry: Record) -> str:
    name = entry.name("name")
    if name.startswith("/"):
        return checked_pointer(entry.place("name"), name)
    if not (name.isascii() and name.isalnum() and name == name.lower()):
        raise BadInput(
            entry.place("name"),
            f"{quoted(name)} is neither an attribute nor a JSON Pointer",
            hint="a pointer into the data begins with '/'",
        )
    return name


def _edges(entry: Record) -> tuple[float, ...]:
    edges: list[float] = []
    for index, edge in enumerate(entry.entries("edges", count_max=CELLS_MAX)):
        place = f"{entry.place('edges')}[{index}]"
        if isinstance(edge, bool) or not isinstance(edge, int | float):
            raise BadInput(place, "must be a number")
        if not abs(edge) <= 1e300:
            raise BadInput(place, "must be a finite number of at most 1e300 either way")
        if edges and not edges[-1] < edge:
            raise BadInput(place, "must be greater than the edge before it")
        edges.append(float(edge) + 0.0)  # Adding 0 turns -0.0 into 0.0.
    if not edges:
        raise BadInput(entry.place("edges"), "is empty")
    return tuple(edges)
