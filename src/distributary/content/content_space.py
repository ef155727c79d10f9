"""Content spaces: publications sorted into cells, and each cell given a key.

The broker that is the root of a cell's key is the cell's rendezvous: publications in the
cell go there, and so do the subscriptions that may match them. A space is therefore the
same for everybody who uses it, which its version says.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from distributary.arguments import check_type
from distributary.arrays import IntArray
from distributary.content.dimensions import (
    CELLS_MAX,
    Dimension,
    NumberBins,
    TextBuckets,
    TextValues,
    dimension_from,
)
from distributary.content.fields import Record
from distributary.content.publication import Publication
from distributary.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ContentSpace"]

_DIMENSIONS_MAX = 12  # 2 ** 12 cells: a dimension has two bins at least.


@dataclass(frozen=True)
class ContentSpace:
    """The product of some dimensions; its elements are the cells, numbered row by row.

    The last dimension varies fastest in the number of a cell.
    """

    dimensions: tuple[Dimension, ...]

    def __post_init__(self) -> None:
        check_type("dimensions", self.dimensions, tuple)
        for at, dimension in enumerate(self.dimensions):
            check_type(f"dimensions[{at}]", dimension, NumberBins, TextBuckets, TextValues)
        if not 1 <= len(self.dimensions) <= _DIMENSIONS_MAX:
            raise BadInput(
                "dimensions", f"are {len(self.dimensions)}; a space has 1 to {_DIMENSIONS_MAX}"
            )
        if self.cell_count > CELLS_MAX:
            raise BadInput(
                "dimensions",
                f"make {self.cell_count:,} cells; a space has at most {CELLS_MAX:,}",
                hint="use fewer bins, buckets or values",
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
                dimension_from(entry)
                for entry in record.records("dimensions", count_max=_DIMENSIONS_MAX)
            )
        )

    def document(self) -> dict[str, object]:
        """Return the space as plain data; `parse` reads it back."""
        return {"dimensions": [dimension.document() for dimension in self.dimensions]}

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many bins each dimension has."""
        return tuple(dimension.bin_count for dimension in self.dimensions)

    @cached_property
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
