"""A growing table of texts, each with a number."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import IntArray
from distributary.filters import _text_kernels as kernels
from distributary.filters._text_kernels import MISSING, TextArrays
from distributary.filters.growth import grown, read_only

__all__ = ["TextTable"]

_TABLE_MIN = 64


class TextTable:
    """Texts by number and numbers by text, in arrays: no Python object for any of them.

    Hashes begin at `seed`, which decides nothing but the time that lookups take.
    """

    def __init__(self, seed: int) -> None:
        self.arrays = TextArrays(
            np.full(_TABLE_MIN, -1, np.int32),
            np.empty(0, np.uint64),
            np.zeros(1, np.int64),
            np.empty(0, np.uint8),
            np.zeros(1, np.int64),
            np.array([seed], np.uint64),
        )

    def __len__(self) -> int:
        return int(self.arrays.used[0])

    def __getitem__(self, number: int) -> str:
        starts = self.arrays.starts
        return self.arrays.arena[starts[number] : starts[number + 1]].tobytes().decode()

    def texts(self, numbers: NDArray[np.int32]) -> list[str]:
        """Return the texts with these numbers."""
        starts = self.arrays.starts
        begins = starts[numbers]
        lengths = starts[numbers + 1] - begins
        offsets = np.empty(len(numbers) + 1, np.int64)
        gathered = np.empty(int(lengths.sum()), np.uint8)
        kernels.gather(read_only(self.arrays.arena), begins, lengths, offsets, gathered)
        data = gathered.tobytes()
        ends = offsets.tolist()
        return [data[begin:end].decode() for begin, end in itertools.pairwise(ends)]

    def find(self, text: str) -> int:
        """Return the number of a text, or -1."""
        data = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
        return kernels.find(self.arrays, data, 0, len(data))

    def find_spans(
        self, data: NDArray[np.uint8], begins: IntArray, lengths: IntArray
    ) -> NDArray[np.int32]:
        """Return the numbers of the texts at those places of `data`; -1 for those not known."""
        found = np.full(len(begins), MISSING, np.int32)
        kernels.find_spans(self.arrays, read_only(data), begins, lengths, found)
        return found

    def add(
        self, texts: Sequence[str], backwards: NDArray[np.uint8] | None = None
    ) -> NDArray[np.int32]:
        """Return the numbers of `texts`, which are added as `add_spans` does."""
        encoded = [text.encode() for text in texts]
        lengths = np.array([len(item) for item in encoded], np.int64)
        begins = np.cumsum(lengths) - lengths
        data = np.frombuffer(b"".join(encoded), np.uint8)
        return self.add_spans(data, begins, lengths, backwards)

    def add_spans(
        self,
        data: NDArray[np.uint8],
        begins: IntArray,
        lengths: IntArray,
        backwards: NDArray[np.uint8] | None = None,
    ) -> NDArray[np.int32]:
        """Return the numbers of the texts at those places of `data`, added as needed.

        A negative length is no text, and gets -1. Those with `backwards` set are stored from
        their last byte to their first.
        """
        if backwards is None:
            backwards = np.zeros(len(begins), np.uint8)
        self._reserve(len(begins), int(np.maximum(lengths, 0).sum()))
        found = np.full(len(begins), MISSING, np.int32)
        kernels.intern(
            self.arrays,
            read_only(data),
            np.ascontiguousarray(begins),
            np.ascontiguousarray(lengths),
            backwards,
            found,
        )
        return found

    def _reserve(self, texts: int, text_bytes: int) -> None:
        """Make room for so many more texts."""
        arrays = self.arrays
        count = len(self)
        hashes = grown(arrays.hashes, count, count + texts)
        starts = grown(arrays.starts, count + 1, count + 1 + texts)
        used = int(arrays.starts[count])
        arena = grown(arrays.arena, used, used + text_bytes)
        table = arrays.table
        if 2 * (count + texts) > len(table):
            size = len(table)
            while 2 * (count + texts) > size:
                size *= 2
            table = np.full(size, -1, np.int32)
            kernels.rehash(table, hashes, count)
        self.arrays = TextArrays(table, hashes, starts, arena, arrays.used, arrays.seed)
