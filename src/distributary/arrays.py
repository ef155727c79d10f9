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
    "check_range",
    "shaped",
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
        raise WrongType(
            argument,
            f"must be an array of {np.dtype(dtype)}, not of {array.dtype}",
            hint=f"{argument}.astype(numpy.{np.dtype(dtype)})",
        )
    if array.shape != shape:
        raise _wrong_shape(argument, array, shape)
    array.flags.writeable = False


def shaped(argument: str, value: Any, shape: tuple[int | None, ...], dtype: type) -> NDArray[Any]:
    """Return `value` as an array of this shape and type, a copy only where it must be one.

    It may be a list, and floats may be whole numbers; a side of None is of any length.
    """
    if isinstance(value, np.ndarray) and value.dtype == dtype and value.shape == shape:
        return value
    try:
        array = np.asarray(value)
    except ValueError:  # Rows of different lengths.
        array = np.empty(0, dtype=object)
    kind = np.dtype(dtype).kind
    if array.size and array.dtype.kind not in (
        "fiu" if kind == "f" else "iu" if kind == "i" else kind
    ):
        found = f"of {array.dtype}" if array.dtype != object else kind_of(value)
        raise WrongType(argument, f"must be an array of {np.dtype(dtype)}, not {found}")
    if len(array.shape) != len(shape) or any(
        side not in (None, found) for side, found in zip(shape, array.shape, strict=True)
    ):
        raise _wrong_shape(argument, array, shape)
    return array.astype(dtype, copy=False)


def check_amounts(
    argument: str,
    array: Any,
    shape: tuple[int, ...],
    place: Callable[..., str] | None = None,
    *,
    unlimited: bool = False,
) -> None:
    """Raise `BadInput` unless `array` is one of this shape with numbers from 0 to AMOUNT_MAX.

    It is read-only afterwards.

    Parameters are those of `check_array` and `check_range`.
    """
    check_array(argument, array, shape, np.float64)
    check_range(argument, array, place, unlimited=unlimited)


def check_range(
    argument: str,
    array: FloatArray,
    place: Callable[..., str] | None = None,
    *,
    unlimited: bool = False,
) -> None:
    """Raise `BadInput` unless all numbers are from 0 to AMOUNT_MAX.

    `place` is what the message calls the entry with these indices, by default `argument[i][j]`;
    with `unlimited`, infinity is allowed as well.
    """
    # As integers, the numbers from 0 to AMOUNT_MAX come before all others: larger ones, NaN,
    # and whatever has a sign. Nearly always this is all there is to look at.
    if not array.size or array.view(np.uint64).max() <= _AMOUNT_BITS_MAX:
        return
    wrong = ~((array >= 0.0) & (array <= AMOUNT_MAX))
    if unlimited:
        wrong &= array != np.inf
    if wrong.any():
        first = np.unravel_index(int(wrong.argmax()), array.shape)
        at = tuple(int(index) for index in first)
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


def check_indices(argument: str, array: IntArray, count: int) -> None:
    """Raise `BadInput` unless all numbers are from 0 up to, but not including, `count`."""
    # As numbers without a sign, negative ones are the largest.
    if array.size and array.view(np.uint64).max() >= count:
        at = int(((array < 0) | (array >= count)).argmax())
        raise BadInput(f"{argument}[{at}]", f"is {array[at]}, and must be from 0 to {count - 1}")


def _wrong_shape(argument: str, array: NDArray[Any], shape: tuple[int | None, ...]) -> BadInput:
    found, wanted = (
        " x ".join("any" if side is None else str(side) for side in sides) or "a single number"
        for sides in (array.shape, shape)
    )
    return BadInput(argument, f"is {found}, and must be {wanted}")
