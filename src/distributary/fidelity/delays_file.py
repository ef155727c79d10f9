"""The delays of a fidelity problem: a matrix in its file, or an array beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from distributary.arrays import FloatArray, shaped
from distributary.content.fields import Record
from distributary.content.number_rows import first_fault, in_range, number_rows
from distributary.errors import BadInput, quoted
from distributary.fidelity.problem import FidelityProblem
from distributary.files import drafted, naming
from distributary.topology.delay_matrix import HOSTS_MAX, load_array

__all__ = ["DELAYS_INSIDE_MAX", "DELAYS_READABLE_MAX", "delays_from", "write_delays"]

DELAYS_INSIDE_MAX = 500
"""From how many nodes on delays are better written to a file of their own."""
DELAYS_READABLE_MAX = 4_000
"""From how many nodes on a document with the delays inside could not be read back."""

_BLOCK_ROWS = 256


def delays_from(top: Record, count: int, folder: Path | None) -> FloatArray:
    """Return the delays of a document, from it or from the file that it names.

    The file is looked for in `folder`, which is None when the document has no files beside it.
    """
    value = top.value("delays")
    if isinstance(value, str):
        return _delays_in_file(value, count, folder)
    rows = top.entries("delays", count_max=HOSTS_MAX)
    if len(rows) != count:
        raise BadInput("delays", f"has {len(rows):,} rows for {count:,} nodes")
    for i, row in enumerate(rows):
        if not isinstance(row, list):
            raise BadInput(f"delays[{i}]", "must be a list of numbers")
    return number_rows(rows, lambda i: f"delays[{i}]", width=count, noun="node")


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
        with np.errstate(all="ignore"):
            delays: FloatArray = shaped("array", array, (count, count), np.float64) + 0.0
        for first in range(0, count, _BLOCK_ROWS):
            block = delays[first : first + _BLOCK_ROWS]
            if not in_range(block):
                at, problem = first_fault(block.ravel().tolist())
                raise BadInput(f"array[{first + at // count}][{at % count}]", problem)
    return delays


def write_delays(problem: FidelityProblem, path: Path) -> None:
    """Write the delays of `problem` to a `.npy` file, whole or not at all.

    The name of `path` is what `problem_document` is told.
    """
    with drafted(path) as draft, draft.open("wb") as file:
        np.save(file, problem.delays, allow_pickle=False)
