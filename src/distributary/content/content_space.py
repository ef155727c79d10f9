"""Content spaces: publications sorted into cells, and each cell given a key.

The broker that is the root of a cell's key is the cell's rendezvous: publications in the
cell go there, and so do the subscriptions that may match them. A space is therefore the
same for everybody who uses it, which its version says.
"""

from __future__ import annotations

import bisect
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from distributary.arguments import check_type
from distributary.arrays import IntArray
from distributary.content.fields import Record
from distributary.content.json_pointer import checked_pointer
from distributary.content.publication import Publication
from distributary.content.reading import number_at, text_at
from distributary.errors import BadInput, quoted

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CELLS_MAX", "ContentSpace", "Dimension", "NumberBins", "TextBuckets", "bucket_of"]

CELLS_MAX = 4096
_DIMENSIONS_MAX = 12  # 2 ** 12 cells: a dimension has two bins at least.


def bucket_of(text: str, buckets: int) -> int:
    """Return the bucket of a text, the same on every machine and in every run."""
    from distributary.content._hash_kernels import text_hash

    data = np.frombuffer(text.encode(), dtype=np.uint8)
    return int(text_hash(data, 0, len(data))) % buckets


@dataclass(frozen=True)
class NumberBins:
    """A dimension over a number.

    Bin 0 is for absent, bin `i` for `edges[i - 2] <= x < edges[i - 1]`; the first and the
    last bin reach to infinity. What is not a number is absent.

    Attributes
    ----------
    name
        An attribute, or a JSON Pointer into the data.
    edges
        Where one bin ends and the next begins, increasing.
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

    Attributes
    ----------
    name
        An attribute, or a JSON Pointer into the data.
    buckets
        How many buckets the hashes are spread over.
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


Dimension: TypeAlias = NumberBins | TextBuckets


@dataclass(frozen=True)
class ContentSpace:
    """The product of some dimensions; its elements are the cells, numbered row by row.

    Attributes
    ----------
    dimensions
        In order; the last one varies fastest in the number of a cell.
    """

    dimensions: tuple[Dimension, ...]

    def __post_init__(self) -> None:
        check_type("dimensions", self.dimensions, tuple)
        for at, dimension in enumerate(self.dimensions):
            check_type(f"dimensions[{at}]", dimension, NumberBins, TextBuckets)
        if not 1 <= len(self.dimensions) <= _DIMENSIONS_MAX:
            raise BadInput(
                "dimensions", f"are {len(self.dimensions)}; a space has 1 to {_DIMENSIONS_MAX}"
            )
        if self.cell_count > CELLS_MAX:
            raise BadInput(
                "dimensions",
                f"make {self.cell_count:,} cells; a space has at most {CELLS_MAX:,}",
                hint="use fewer bins or buckets",
            )

    @classmethod
    def default(cls) -> ContentSpace:
        """Return the space that is used unless somebody chooses another."""
        return cls((TextBuckets("type", 64),))

    @classmethod
    def parse(cls, document: object) -> ContentSpace:
        """Return the space in a document, as in `{"dimensions": [{"name": ...}, ...]}`."""
        record = Record(document)
        return cls(
            tuple(
                _dimension_from(entry)
                for entry in record.records("dimensions", count_max=_DIMENSIONS_MAX)
            )
        )

    def document(self) -> dict[str, object]:
        """Return the space as plain data; `parse` reads it back."""
        return {"dimensions": [dimension.document() for dimension in self.dimensions]}

    @property
    def shape(self) -> tuple[int, ...]:
        """How many bins each dimension has."""
        return tuple(dimension.bin_count for dimension in self.dimensions)

    @property
    def cell_count(self) -> int:
        """How many cells there are."""
        return math.prod(self.shape)

    @cached_property
    def version(self) -> str:
        """A digest of the dimensions: equal for equal spaces, and for no others."""
        written = json.dumps(self.document(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(written.encode()).hexdigest()

    def key(self, cell: int) -> bytes:
        """Return the key of a cell, whose root broker is its rendezvous: SHA-256, 32 bytes."""
        assert 0 <= cell < self.cell_count
        return hashlib.sha256(f"{self.version}/{cell}".encode()).digest()

    def cell_from_bins(self, bins: Sequence[int]) -> int:
        """Return the cell with these bins, one per dimension."""
        cell = 0
        for number, count in zip(bins, self.shape, strict=True):
            cell = cell * count + number
        return cell

    def bins_of_cell(self, cell: int) -> tuple[int, ...]:
        """Return the bins of a cell, one per dimension."""
        bins = []
        for count in reversed(self.shape):
            cell, number = divmod(cell, count)
            bins.append(number)
        return tuple(reversed(bins))

    def cell_of(self, publication: Publication) -> int:
        """Return the cell in which a publication lies."""
        return self.cell_from_bins([d.bin_of(publication) for d in self.dimensions])

    def cells_of_batch(self, batch: pa.RecordBatch) -> IntArray:
        """Return the cell of every row of a batch of the table `publications`.

        The same cells as `cell_of`, without a Python object per row. Needs pyarrow.
        """
        from distributary.content.cell_batches import cells_of_batch

        return cells_of_batch(self, batch)


def _dimension_from(entry: Record) -> Dimension:
    entry.check_keys(("name", "edges", "buckets"), "a dimension")
    name = _dimension_name(entry)
    if ("edges" in entry) == ("buckets" in entry):
        raise BadInput(
            entry.place(),
            "must have either edges or buckets",
            hint="edges divide a number, buckets a text",
        )
    if "edges" in entry:
        return NumberBins(name, _edges(entry))
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
