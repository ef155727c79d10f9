"""Arrays: the types that every package shares, and what those of a problem must be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from distributary.arguments import AMOUNT_MAX, amount_fault, check_number, kind_of
from distributary.errors import BadInput, WrongType

__all__ = [
    "BoolArray",
    "FloatArray",
    "IntArray",
    "UintArray",
    "amounts_of",
    "check_amounts",
    "check_array",
    "check_indices",
]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
UintArray: TypeAlias = NDArray[np.uint64]
BoolArray: TypeAlias = NDArray[np.bool_]

_NUMBERS = frozenset({float, int, np.float64})
_AMOUNT_BITS_MAX = np.float64(AMOUNT_MAX).view(np.uint64)


def check_array(argument: str, array: Any, shape: tuple[int, ...], dtype: type) -> None:
    """Raise `BadInput` unless `array` is one of this shape and type; make it read-only.

    Compiled loops have one type each. A table of another would be compiled for anew, or be taken
    for something else.
    """
    if not isinstance(array, np.ndarray):
        hint = f"numpy.asarray({argument}, dtype=numpy.{np.dtype(dtype)})"
        raise WrongType(argument, f"must be an array, not {kind_of(array)}", hint=hint)
    if array.dtype != dtype:
        wanted = np.dtype(dtype)
        raise WrongType(
            argument,
            f"must be an array of {wanted}, not of {array.dtype}",
            hint=f"{argument}.astype(numpy.{wanted})",
        )
    if array.shape != shape:
        raise BadInput(argument, f"is {_size(array.shape)}, and must be {_size(shape)}")
    array.flags.writeable = False


def check_amounts(
    argument: str,
    array: Any,
    shape: tuple[int, ...],
    place: Callable[..., str] | None = None,
    *,
    unlimited: bool = False,
) -> None:
    """Raise `BadInput` unless `array` is one of this shape with numbers from 0 to AMOUNT_MAX.

    Parameters
    ----------
    argument, array, shape
        As of `check_array`.
    place
        What the message calls the entry with these indices; by default `argument[i][j]`.
    unlimited
        Whether infinity is allowed as well.
    """
    check_array(argument, array, shape, np.float64)
    # As integers, the numbers from 0 to AMOUNT_MAX come before all others: larger ones, NaN,
    # and whatever has a sign. Nearly always this is all there is to look at.
    if not array.size or array.view(np.uint64).max() <= _AMOUNT_BITS_MAX:
        return
    wrong = ~((array >= 0.0) & (array <= AMOUNT_MAX))
    if unlimited:
        wrong &= array != np.inf
    if wrong.any():
        at = tuple(int(index) for index in np.unravel_index(int(wrong.argmax()), shape))
        where = place(*at) if place else argument + "".join(f"[{index}]" for index in at)
        fault = amount_fault(float(array[at]))
        assert fault is not None
        raise BadInput(where, fault)


def amounts_of(values: Sequence[object], place: Callable[[int], str]) -> FloatArray:
    """Return numbers that were given one by one as an array, each from 0 to AMOUNT_MAX.

    They are looked at together; only when something is wrong is it searched for, and `place`
    asked where it is.
    """
    if _NUMBERS.issuperset(map(type, values)):
        try:
            array = np.array(values, dtype=np.float64)
        except OverflowError:
            array = np.full(1, np.inf)
        if not array.size or (array.min() >= 0.0 and array.max() <= AMOUNT_MAX):
            return array + 0.0  # Turns -0.0 into 0.0.
    for at, value in enumerate(values):
        check_number(place(at), value)
    return np.array(values, dtype=np.float64) + 0.0


def check_indices(argument: str, array: Any, count: int, shape: tuple[int, ...]) -> None:
    """Raise `BadInput` unless `array` is one of this shape with whole numbers below `count`."""
    check_array(argument, array, shape, np.int64)
    if array.size and not (array.min() >= 0 and array.max() < count):
        at = int(((array < 0) | (array >= count)).argmax())
        raise BadInput(f"{argument}[{at}]", f"is {array[at]}, and must be from 0 to {count - 1}")


def _size(shape: tuple[int, ...]) -> str:
    return " x ".join(str(side) for side in shape) or "a single number"
