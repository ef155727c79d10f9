"""Rows of numbers in an untrusted document: fast when they are right, exact when not.

A document of ten thousand users holds millions of numbers. Whole rows are looked at; only
a row that has something wrong with it is searched, for the message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import BoolArray, FloatArray
from distributary.content.fields import NUMBER_MAX, NUMBER_MIN, Record
from distributary.errors import BadInput, counted

__all__ = ["first_fault", "flag_rows", "in_range", "length_fault", "number_rows"]

_NUMBERS = frozenset({float, int})
_FLAGS = frozenset({bool, float, int})


def number_rows(
    rows: Sequence[object], place: Callable[[int], str], *, width: int, noun: str
) -> FloatArray:
    """Return rows of numbers that are 0 or between NUMBER_MIN and NUMBER_MAX as a table.

    `place` tells where in the document a row is. Each must have `width` numbers, one for each
    `noun` ("broker"), as the message has it.
    """
    table = np.empty((len(rows), width))
    for i, row in enumerate(rows):
        values = _listed(row, place(i), width, noun)
        numbers = _converted(values, _NUMBERS)
        if numbers is None or not in_range(numbers):
            at, problem = first_fault(values)
            raise BadInput(f"{place(i)}[{at}]", problem)
        table[i] = numbers
    table += 0.0  # Turns -0.0 into 0.0.
    return table


def flag_rows(
    rows: Sequence[object], place: Callable[[int], str], *, width: int, noun: str
) -> BoolArray:
    """Return rows of 0 and 1, or false and true, as a table; parameters as of `number_rows`."""
    table = np.empty((len(rows), width), dtype=np.bool_)
    for i, row in enumerate(rows):
        values = _listed(row, place(i), width, noun)
        numbers = _converted(values, _FLAGS)
        if numbers is None or not ((numbers == 0.0) | (numbers == 1.0)).all():
            for j, value in enumerate(values):
                if type(value) not in _FLAGS or value not in (0, 1):
                    raise BadInput(f"{place(i)}[{j}]", _flag_fault(value))
        table[i] = numbers == 1.0
    return table


def in_range(numbers: NDArray[Any]) -> bool:
    """Say whether all numbers are 0 or between NUMBER_MIN and NUMBER_MAX; NaN is not."""
    if not numbers.size:
        return True
    # A minimum or maximum with a NaN among the numbers is NaN, and compares as false.
    least, largest = numbers.min(), numbers.max()
    if not (least >= 0.0 and largest <= NUMBER_MAX):
        return False
    small = numbers[numbers < NUMBER_MIN]
    return not small.any()


def first_fault(values: Sequence[object]) -> tuple[int, str]:
    """Return where the first value is that is no number in range, and what is wrong with it."""
    for at, value in enumerate(values):
        problem = _number_fault(value)
        if problem is not None:
            return at, problem
    raise AssertionError("a fault that was noticed is somewhere among the values")


def _number_fault(value: object) -> str | None:
    """Return what is wrong with a number, or None if nothing is."""
    try:
        Record({"number": value}).number("number")
    except BadInput as error:
        return error.problem
    return None


def length_fault(entries: int, width: int, noun: str) -> str:
    """Return what is wrong with a list of so many entries, where `width` are needed."""
    return f"has {counted(entries, 'entry', 'entries')} for {counted(width, noun)}"


def _listed(row: object, place: str, width: int, noun: str) -> list[object]:
    if not isinstance(row, list):
        try:
            Record({"row": row}).entries("row", count_max=0)
        except BadInput as error:
            raise BadInput(place, error.problem) from None
    assert isinstance(row, list)
    if len(row) != width:
        raise BadInput(place, length_fault(len(row), width, noun))
    return row


def _converted(row: list[object], kinds: frozenset[type]) -> FloatArray | None:
    """Return the row as an array, or None where something in it is not of these types."""
    if not kinds.issuperset(map(type, row)):
        return None
    try:
        return np.array(row, dtype=np.float64)
    except OverflowError:
        return None


def _flag_fault(value: object) -> str:
    fault = _number_fault(value)
    shown = f"{value:g}" if fault is None else fault.partition("not ")[2]
    return f"must be 0 or 1, not {shown}"
