"""Measured delays between hosts, in the files in which such measurements are published.

Text with a row per host, numbers apart by blanks, tabs, commas or semicolons, packed with
gzip or not; or a NumPy array. A first line of names says what hosts are called, and then each row
may begin with its name as well. Measurements have gaps, and the reader closes them.
"""

from __future__ import annotations

import re
import stat
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distributary.arguments import check_choice, checked, checked_fields
from distributary.arrays import BoolArray, FloatArray
from distributary.errors import BadInput, counted, quoted
from distributary.files import file_bytes, naming

__all__ = ["HOSTS_MAX", "UNITS", "DelayMatrix", "complete_delays", "load_array", "read_delays"]

# Sixteen thousand hosts are two gigabytes of delays.
HOSTS_MAX = 16_384
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
DELAY_MAX = 1e15

_BYTES_MAX = 2**30
_SEPARATOR = re.compile(r"[ \t]*[,;][ \t]*|[ \t]+")
_BETWEEN_NAMES = tuple(re.compile(rf"[ \t]*{by}[ \t]*") for by in (";", ",", "\t"))
# What stands above the names of rows, in front of those of columns.
_CORNERS = frozenset({"", "from", "host", "name", "place", "site"})
# How a measurement that failed is written, beside a negative number.
_MISSING = frozenset({"", "-", "*", "?", "na", "n/a", "nan", "null", "none", "inf"})


@checked_fields
@dataclass(frozen=True, eq=False)
class DelayMatrix:
    """Delays between hosts, without gaps.

    Seconds from each host to each other, 0 on the diagonal, shape (hosts, hosts), how many of
    them the file did not have, and what the file calls hosts: `n0`, `n1` and so on unless it says.
    """

    delays: FloatArray = field(repr=False)
    missing_count: int
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.names:
            width = len(str(len(self.delays) - 1))
            names = tuple(f"n{host:0{width}d}" for host in range(len(self.delays)))
            object.__setattr__(self, "names", names)

    @property
    def notes(self) -> tuple[str, ...]:
        """What whoever relies on the delays should know, a sentence each."""
        if not self.missing_count:
            return ()
        missing = counted(self.missing_count, "delay")
        return (
            f"{missing} missing; the way back, or else the best way over a third host, stands in",
        )


@checked
def read_delays(path: Path | str, *, unit: str = "ms", round_trip: bool = False) -> DelayMatrix:
    """Return the delays in a file, or raise `BadInput`.

    The file is a `.npy` array, or text, packed if the name ends in `.gz`. It measures in "s", "ms"
    or "us"; with `round_trip` there and back, of which a delay is half.
    """
    check_choice("unit", unit, UNITS)
    with naming(path):
        table: NDArray[Any]
        names: tuple[str, ...] = ()
        if Path(path).suffix == ".npy":
            table = load_array(path)
        else:
            names, table = _parse_text(file_bytes(path, bytes_max=_BYTES_MAX))
        if table.ndim != 2 or table.shape[0] != table.shape[1]:
            shape = " x ".join(str(side) for side in table.shape) or "a single number"
            raise BadInput("matrix", f"is {shape}, and must have as many columns as rows")
        if len(table) > HOSTS_MAX:
            raise BadInput("matrix", f"has {len(table):,} rows; at most {HOSTS_MAX:,} are read")
        with np.errstate(all="ignore"):
            # What overflows is infinite, and so counts as missing.
            seconds = table.astype(np.float64) * (UNITS[unit] * (0.5 if round_trip else 1.0))
        return replace(complete_delays(seconds), names=names)


def complete_delays(table: FloatArray) -> DelayMatrix:
    """Close the gaps in measured delays, or raise `BadInput` where that cannot be done.

    A delay is missing when it is not a number, infinite, negative, or 0 between different
    hosts: no message takes no time. The delay of the way back stands in, or failing
    that the best way over a third host.

    The table has seconds, shape (hosts, hosts); what is on the diagonal does not matter.
    """
    known: BoolArray = (table > 0.0) & (table <= DELAY_MAX)
    delays = np.where(known, table, np.inf)
    np.fill_diagonal(delays, 0.0)
    missing = np.isinf(delays)
    count = int(missing.sum())
    if count:
        delays = np.where(missing, delays.T, delays)
        measured = delays.copy()
        for i in np.flatnonzero(np.isinf(measured).any(axis=1)).tolist():
            gaps = np.flatnonzero(np.isinf(measured[i]))
            delays[i, gaps] = (measured[i][:, None] + measured[:, gaps]).min(axis=0)
        if np.isinf(delays).any():
            i, j = np.argwhere(np.isinf(delays))[0].tolist()
            raise BadInput(
                f"matrix[{i}][{j}]",
                "is missing, and no third host connects the two",
                hint="leave out hosts that were not measured",
            )
    return DelayMatrix(delays, count)


def load_array(path: Path | str) -> NDArray[Any]:
    """Return the array in a `.npy` file, still on disk, or raise `BadInput`.

    Only plain numbers are read: a file may also hold pickled objects, and to load those
    is to run whatever program the file's author wrote.
    """
    # Asked before it is opened: opening a pipe waits for somebody to write into it.
    if not stat.S_ISREG(Path(path).stat().st_mode):
        raise BadInput("document", "is not a regular file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Mapped, so that a header which promises more than the file holds is found
            # out before anybody makes room for it.
            array = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError:
        raise
    except Exception:
        # NumPy evaluates the header as Python source, and a damaged one can fail in as
        # many ways as a program can.
        raise BadInput("document", "is not a NumPy array of numbers") from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        raise BadInput("document", "is not a NumPy array of numbers")
    return array


def _parse_text(data: bytes) -> tuple[tuple[str, ...], FloatArray]:
    """Return the names in the first line of a text, if it has any, and the numbers.

    What is missing is NaN.
    """
    rows: list[FloatArray] = []
    names: tuple[str, ...] = ()
    separator = _SEPARATOR
    for number, line in enumerate(data.decode("utf-8-sig", errors="replace").splitlines(), start=1):
        words = line.strip(" \t")
        if not words or words.startswith("#"):
            continue
        cells = separator.split(words)
        if not rows and not names and _are_names(cells):
            # Names may have blanks in them where something else stands between them.
            separator = next((by for by in _BETWEEN_NAMES if by.search(words)), _SEPARATOR)
            names = _header(separator.split(words), number)
            continue
        if names and cells[0] == names[len(rows) % len(names)]:
            del cells[0]
        row = _row(cells, number)
        if rows and len(row) != len(rows[0]):
            raise BadInput(
                f"line {number}", f"has {len(row):,} numbers where others have {len(rows[0]):,}"
            )
        rows.append(row)
        if len(rows) > HOSTS_MAX:
            raise BadInput("matrix", f"has more rows than the {HOSTS_MAX:,} that are read")
    if not rows:
        raise BadInput("document", "has no numbers")
    if names and len(names) != len(rows[0]):
        raise BadInput("document", f"names {len(names):,} hosts above {len(rows[0]):,} columns")
    return names, np.array(rows)


def _are_names(cells: list[str]) -> bool:
    """Whether a first line names hosts: but for a word in the corner, all are names."""
    first, *others = cells
    corner = first.lower() in _CORNERS or _is_name(first)
    return corner and bool(others) and all(map(_is_name, others))


def _is_name(cell: str) -> bool:
    if cell.lower() in _MISSING:
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False


def _header(cells: list[str], number: int) -> tuple[str, ...]:
    """Return the names in a line; where rows have names too, there may be a word in the corner."""
    names = cells[1:] if cells[0].lower() in _CORNERS else cells
    known: set[str] = set()
    for name in names:
        if not name or name in known:
            said = f"host {quoted(name)} is given twice" if name else "a host has no name"
            raise BadInput(f"line {number}", said)
        known.add(name)
    return tuple(names)


def _row(words: list[str], number: int) -> FloatArray:
    try:
        return np.array(words, dtype=np.float64)
    except ValueError:
        pass
    row = np.full(len(words), np.nan)
    for column, word in enumerate(words):
        if word.lower() in _MISSING:
            continue
        try:
            row[column] = float(word)
        except ValueError:
            raise BadInput(
                f"line {number}, column {column + 1}", f"{quoted(word)} is not a number"
            ) from None
    return row
