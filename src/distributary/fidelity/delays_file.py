"""The delays of a fidelity problem: a matrix in its file, or an array beside it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import FloatArray
from distributary.content.fields import NUMBER_MAX, NUMBER_MIN, Record
from distributary.errors import BadInput, quoted
from distributary.fidelity.problem import FidelityProblem
from distributary.files import naming
from distributary.topology.delay_matrix import HOSTS_MAX, load_array

__all__ = ["DELAYS_INSIDE_MAX", "DELAYS_READABLE_MAX", "delays_from", "write_delays"]

DELAYS_INSIDE_MAX = 500
"""From how many nodes on delays are better written to a file of their own."""
DELAYS_READABLE_MAX = 4_000
"""From how many nodes on a document with the delays inside could not be read back."""

_BLOCK_ROWS = 256


def delays_from(top: Record, count: int, folder: Path | None) -> FloatArray:
    """Return the delays of a document, from it or from the file that it names.

    Parameters
    ----------
    top
        The document.
    count
        How many nodes it has.
    folder
        Where the file is to be found; None when the document has no files beside it.
    """
    value = top.value("delays")
    if isinstance(value, str):
        return _delays_in_file(value, count, folder)
    rows = top.entries("delays", count_max=HOSTS_MAX)
    if len(rows) != count:
        raise BadInput("delays", f"has {len(rows):,} rows for {count:,} nodes")
    delays = np.empty((count, count))
    for i, row in enumerate(rows):
        delays[i] = _delay_row(row, i, count)
    return delays


def _delay_row(row: object, index: int, count: int) -> FloatArray:
    """Return one row of delays; entry by entry only to say what is wrong with it."""
    place = f"delays[{index}]"
    if not isinstance(row, list):
        raise BadInput(place, "must be a list of numbers")
    if len(row) != count:
        raise BadInput(place, f"has {len(row):,} entries for {count:,} nodes")
    if all(type(value) is float or type(value) is int for value in row):
        try:
            numbers = np.array(row, dtype=np.float64) + 0.0  # Adding 0 turns -0.0 into 0.0.
        except OverflowError:
            pass
        else:
            if _is_in_range(numbers):
                return numbers
    return np.array([_delay(value, f"{place}[{j}]") for j, value in enumerate(row)])


def _delay(value: object, place: str) -> float:
    try:
        return Record({"delay": value}).number("delay")
    except BadInput as error:
        raise BadInput(place, error.problem) from None


def _is_in_range(numbers: NDArray[Any]) -> bool:
    small = numbers < NUMBER_MIN
    return bool(np.all(numbers <= NUMBER_MAX) and np.all(numbers[small] == 0.0))


def _delays_in_file(name: str, count: int, folder: Path | None) -> FloatArray:
    """Return the delays in the `.npy` file of that name in `folder`.

    Only a plain name is followed: a problem from a stranger must not choose which files
    of ours are read.
    """
    if not name.endswith(".npy"):
        raise BadInput("delays", f"must be a matrix or the name of a .npy file, not {quoted(name)}")
    if not name.isprintable() or set(name) & set("/\\:") or name.startswith("."):
        raise BadInput(
            "delays",
            f"{quoted(name)} is not the plain name of a file",
            hint="the file of delays stands beside the problem",
        )
    if folder is None:
        raise BadInput(
            "delays",
            f"names the file {quoted(name)}, but this problem has no files beside it",
            hint="read the problem from a file",
        )
    with naming(f"delays: {name}"):
        array = load_array(folder / name)
        if array.shape != (count, count):
            shape = " x ".join(str(side) for side in array.shape) or "a single number"
            raise BadInput("array", f"is {shape}, and must be {count} x {count}")
        with np.errstate(all="ignore"):
            delays: FloatArray = array.astype(np.float64)
        delays += 0.0
        for first in range(0, count, _BLOCK_ROWS):
            block = delays[first : first + _BLOCK_ROWS]
            if not _is_in_range(block):
                for i, j in np.ndindex(block.shape):
                    _delay(float(block[i, j]), f"array[{first + i}][{j}]")
    return delays


def write_delays(
    problem: FidelityProblem, path: Path, *, node_order: Sequence[str] | None = None
) -> None:
    """Write the delays of `problem` to a `.npy` file, whole or not at all.

    Parameters
    ----------
    problem
        The problem.
    path
        Where to; its name is what `problem_document` is told.
    node_order
        The order of the document's nodes; the problem's own unless given.
    """
    delays = problem.delays
    if node_order is not None:
        position = {name: i for i, name in enumerate(problem.names)}
        order = [position[name] for name in node_order]
        delays = delays[np.ix_(order, order)]
    target = path.resolve()
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with draft.open("wb") as file:
            np.save(file, delays, allow_pickle=False)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
