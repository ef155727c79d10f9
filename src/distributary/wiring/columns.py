"""Columns of Parquet files, read as names, numbers or lists: faults name file and column.

Needs pyarrow, which is imported when a function is called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.content.fields import Record
from distributary.content.number_rows import first_fault, in_range, length_fault
from distributary.errors import BadInput, MissingPackage, quoted

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ParquetColumn", "arrow"]

P = ParamSpec("P")
T = TypeVar("T")

_IDENTIFIER_MAX = 2**63 - 1


def arrow(purpose: str) -> Any:
    """Return the package pyarrow with its Parquet part, or raise `MissingPackage`."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise MissingPackage("pyarrow", extra="arrow", purpose=purpose) from None
    return pyarrow


def _naming(
    read: Callable[Concatenate[ParquetColumn, P], T],
) -> Callable[Concatenate[ParquetColumn, P], T]:
    """Turn whatever pyarrow has against a column into a `BadInput` that names it.

    A file is decoded no further than needed, so that some faults show only here.
    """

    @wraps(read)
    def reading(column: ParquetColumn, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return read(column, *args, **kwargs)
        except BadInput:
            raise
        except MemoryError:
            raise column.fault(None, "does not fit into memory") from None
        except arrow("reading Parquet").ArrowException:
            kind = column.values.type
            raise column.fault(None, f"cannot be read: is not a sound column of {kind}") from None

    return reading


@dataclass(frozen=True, eq=False)
class ParquetColumn:
    """A block of one column of one file.

    `first` is the number of its first row in the file.
    """

    file: str
    name: str
    first: int
    values: pa.Array

    def fault(self, row: int | None, problem: str, *, entry: int | None = None) -> BadInput:
        """Return the error about the column, one of its rows, or an entry in a row."""
        place = self.name if row is None else f"{self.name}[{self.first + row}]"
        return BadInput(f"{self.file}: {place}" + ("" if entry is None else f"[{entry}]"), problem)

    @_naming
    def names(self) -> list[str]:
        """Return names: text that is not empty."""
        names: list[str] = []
        for row, value in enumerate(self._text().to_pylist()):
            try:
                names.append(Record({"name": value}).name("name"))
            except BadInput as error:
                raise self.fault(row, error.problem) from None
        return names

    @_naming
    def positions_in(self, names: pa.Array, kind: str) -> IntArray:
        """Return where in `names` each name is; raise `BadInput` for one that is not there."""
        compute = arrow("reading Parquet").compute
        text = self._text()
        self._refuse_nulls(text)
        at = compute.index_in(text, value_set=names)
        if at.null_count:
            row = int(np.flatnonzero(at.is_null().to_numpy(zero_copy_only=False))[0])
            raise self.fault(row, f"{quoted(text[row].as_py())} is not {kind}")
        return np.asarray(at.to_numpy(zero_copy_only=False), dtype=np.int64)

    @_naming
    def identifiers(self) -> pa.Array:
        """Return whole numbers or text, as they stand."""
        types = arrow("reading Parquet").types
        self._refuse_nulls(self.values)
        if types.is_uint64(self.values.type):
            numbers = self.values.to_numpy(zero_copy_only=False)
            wrong = np.flatnonzero(numbers > np.uint64(_IDENTIFIER_MAX))
            if wrong.size:
                row = int(wrong[0])
                raise self.fault(row, f"must be at most {_IDENTIFIER_MAX}, not {numbers[row]}")
        if types.is_integer(self.values.type):
            return self.values.cast("int64")
        return self._text()

    @_naming
    def numbers(self, *, default: float | None = None) -> FloatArray:
        """Return numbers of at least 0; `default` stands for null, if that is allowed."""
        if default is not None and arrow("reading Parquet").types.is_null(self.values.type):
            # What a writer makes of a column in which nobody has a value.
            return np.full(len(self.values), default)
        numbers = self._float(self.values)
        missing = np.zeros(len(numbers), dtype=np.bool_)
        if self.values.null_count and default is not None:
            missing = self.values.is_null().to_numpy(zero_copy_only=False)
            numbers[missing] = 0.0
        else:
            self._refuse_nulls(self.values)
        if not in_range(numbers):
            row, problem = first_fault(numbers.tolist())
            raise self.fault(row, problem)
        if default is not None:
            numbers[missing] = default
        return numbers

    @_naming
    def coordinates(self) -> FloatArray:
        """Return numbers of any sign."""
        self._refuse_nulls(self.values)
        numbers = self._float(self.values)
        if not np.isfinite(numbers).all():
            row = int(np.flatnonzero(~np.isfinite(numbers))[0])
            raise self.fault(row, f"must be a finite number, not {numbers[row]:g}")
        return numbers

    @_naming
    def matrix(self, width: int, noun: str) -> FloatArray:
        """Return lists of `width` numbers of at least 0 as a table."""
        values = self._flattened(width, noun)
        numbers = self._float(values)
        if not in_range(numbers):
            at, problem = first_fault(numbers.tolist())
            raise self.fault(at // width, problem, entry=at % width)
        return numbers.reshape(-1, width)

    @_naming
    def flags(self, width: int, noun: str) -> BoolArray:
        """Return lists of `width` times true or false, 1 or 0, as a table."""
        values = self._flattened(width, noun)
        if str(values.type) == "bool":
            flags = values.to_numpy(zero_copy_only=False)
            return np.asarray(flags, dtype=np.bool_).reshape(-1, width)
        numbers = self._float(values)
        wrong = np.flatnonzero((numbers != 0.0) & (numbers != 1.0))
        if wrong.size:
            at = int(wrong[0])
            raise self.fault(at // width, f"must be 0 or 1, not {numbers[at]:g}", entry=at % width)
        return np.asarray(numbers == 1.0).reshape(-1, width)

    @_naming
    def width(self) -> int | None:
        """Return how many entries the first list has, or None if there is no first list."""
        self._refuse_no_lists()
        if not len(self.values) or not self.values[0].is_valid:
            return None
        return len(self.values[0])

    def _text(self) -> pa.Array:
        pa = arrow("reading Parquet")
        types = pa.types
        values = self.values
        if types.is_dictionary(values.type):
            values = values.dictionary_decode()
        kinds = (types.is_string, types.is_large_string, types.is_string_view)
        if not any(kind(values.type) for kind in kinds):
            raise self.fault(None, f"must be a column of strings, not of {self.values.type}")
        try:
            values.validate(full=True)
        except pa.ArrowInvalid:
            raise self.fault(None, "is not UTF-8") from None
        return values.cast("string")

    def _float(self, values: pa.Array) -> FloatArray:
        """Return numbers as an array, of their own memory if they must be converted."""
        types = arrow("reading Parquet").types
        kinds = (types.is_floating, types.is_integer, types.is_decimal)
        if not any(kind(values.type) for kind in kinds):
            raise self.fault(None, f"must be a column of numbers, not of {self.values.type}")
        converted = values.cast("double", safe=False).to_numpy(zero_copy_only=False)
        numbers: FloatArray = np.asarray(converted, dtype=np.float64) + 0.0
        return numbers

    def _flattened(self, width: int, noun: str) -> pa.Array:
        """Return the entries of all lists, each of which has `width` of them."""
        self._refuse_no_lists()
        self._refuse_nulls(self.values)
        compute = arrow("reading Parquet").compute
        lengths = compute.list_value_length(self.values).to_numpy(zero_copy_only=False)
        wrong = np.flatnonzero(lengths != width)
        if wrong.size:
            row = int(wrong[0])
            raise self.fault(row, length_fault(int(lengths[row]), width, noun))
        values = self.values.flatten()
        if values.null_count:
            at = int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0])
            raise self.fault(at // width, "is null", entry=at % width)
        return values

    def _refuse_no_lists(self) -> None:
        types = arrow("reading Parquet").types
        kinds = (types.is_list, types.is_large_list, types.is_fixed_size_list)
        if not any(kind(self.values.type) for kind in kinds):
            raise self.fault(None, f"must be a column of lists, not of {self.values.type}")

    def _refuse_nulls(self, values: pa.Array) -> None:
        if values.null_count:
            row = int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0])
            raise self.fault(row, "is null")
