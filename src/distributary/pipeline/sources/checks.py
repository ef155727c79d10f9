"""What rows must be beyond their types, many rows at once.

Filters, profiles and tolerances are read by the code that uses them later, each distinct text
once, so that nothing is in a table that a job cannot read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from distributary.arrays import BoolArray, IntArray
from distributary.content.arrow_columns import text_column, validity
from distributary.content.attributes import ATTRIBUTES_MAX
from distributary.content.documents import parse_document
from distributary.content.json_pointer import LEAVES_MAX
from distributary.content.profile import DeviceProfile
from distributary.content.subscription import FILTERS_BYTES_MAX
from distributary.content.tolerance import Tolerance
from distributary.errors import BadInput
from distributary.pipeline.sources.source_rows import Faults, Layout

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_rows"]

_NOT_NEGATIVE = frozenset(
    {
        "capacity",
        "bytes",
        "bytes_per_second",
        "bytes_in",
        "bytes_out",
        "bytes_in_by_cells",
        "updates_per_second",
    }
)
_IDENTIFIER = r"\A[0-9a-f]{1,64}\z"
_ATTRIBUTE_TYPES = ("Boolean", "Integer", "String")


def check_rows(columns: pa.RecordBatch, layout: Layout, faults: Faults) -> None:
    """Mark the rows that break a rule of their table."""
    import pyarrow as pa

    for field in layout.schema:
        name, column = field.name, columns.column(field.name)
        if field.name in layout.required:
            faults.mark(~validity(column), f"{name}: has no value")
        if pa.types.is_string(field.type):
            _check_text(name, column, faults)
        elif pa.types.is_floating(field.type) or pa.types.is_integer(field.type):
            _check_numbers(name, column, faults)
        elif pa.types.is_list(field.type):
            _check_lists(name, column, faults)
        elif pa.types.is_map(field.type):
            _check_maps(name, column, faults)
    if layout.table == "subscriptions":
        _check_filters(columns.column("filters"), faults)
        _check_each("profile", columns.column("profile"), DeviceProfile.parse, faults)
        _check_each("tolerance", columns.column("tolerance"), Tolerance.parse, faults)


def _check_text(name: str, column: pa.StringArray, faults: Faults) -> None:
    import pyarrow.compute as pc

    faults.mark(_true(pc.equal(column, "")), f"{name}: must not be empty")
    if name == "identifier":
        faults.mark(
            _true(pc.invert(pc.match_substring_regex(column, _IDENTIFIER))),
            f"{name}: is not made of lower-case hexadecimal digits",
        )


def _check_numbers(name: str, column: pa.Array, faults: Faults) -> None:
    import pyarrow.compute as pc

    faults.mark(_true(pc.invert(pc.is_finite(column))), f"{name}: is not a finite number")
    if name in _NOT_NEGATIVE:
        faults.mark(_true(pc.less(column, 0)), f"{name}: must not be negative")


def _check_lists(name: str, column: pa.ListArray, faults: Faults) -> None:
    import pyarrow.compute as pc

    numbers = column.flatten()
    rows = pc.list_parent_indices(column).to_numpy()
    wrong = ~_true(pc.and_(pc.is_finite(numbers), pc.greater_equal(numbers, 0)))
    faults.mark(
        _rows_with(rows, wrong, len(column)), f"{name}: must be finite numbers of at least 0"
    )


def _check_maps(name: str, column: pa.MapArray, faults: Faults) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    offsets = column.offsets.to_numpy().astype(np.int64)
    counts = np.diff(offsets)
    values = column.items.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    rows = np.repeat(np.arange(len(column)), counts)
    kind = column.type.item_type
    limit = ATTRIBUTES_MAX if pa.types.is_struct(kind) else LEAVES_MAX
    faults.mark(counts > limit, f"{name}: has more than {limit} entries")
    if pa.types.is_floating(kind):
        sound, rule = _true(pc.is_finite(values)), "must be finite numbers"
    elif pa.types.is_struct(kind):
        known = pc.is_in(values.field("type"), pa.array(_ATTRIBUTE_TYPES))
        sound = _true(pc.and_(known, pc.is_valid(values.field("text"))))
        rule = f"must have a text and one of the types {', '.join(_ATTRIBUTE_TYPES)}"
    else:
        sound, rule = validity(values), "must be texts"
    faults.mark(_rows_with(rows, ~sound, len(column)), f"{name}: {rule}")


def _check_filters(column: pa.StringArray, faults: Faults) -> None:
    from distributary.filters.arrow_subscriptions import row_chunks, scanned
    from distributary.filters.text_table import TextTable

    texts = text_column(column)
    faults.mark(
        np.diff(texts.offsets) > FILTERS_BYTES_MAX,
        f"filters: takes more than {FILTERS_BYTES_MAX:,} bytes",
    )
    # Compiled code reads those of the usual form; the others are for Python to look at.
    plain = np.zeros(len(column), bool)
    for first, end in row_chunks(texts):
        plain[first:end] = scanned(texts, first, end, TextTable(0), TextTable(0)).plain
    others = np.flatnonzero(~plain & texts.valid & ~faults.bad)
    _check_some("filters", column, others, _filters_of, faults)


def _check_each(
    name: str, column: pa.StringArray, parse: Callable[[object], object], faults: Faults
) -> None:
    _check_some(name, column, np.flatnonzero(validity(column) & ~faults.bad), parse, faults)


def _check_some(
    name: str,
    column: pa.StringArray,
    rows: IntArray,
    parse: Callable[[object], object],
    faults: Faults,
) -> None:
    """Mark those of some rows whose text, a JSON document, `parse` does not read."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not len(rows):
        return
    encoded = pc.dictionary_encode(column.take(pa.array(rows)))
    reasons = [_fault(name, text, parse) for text in encoded.dictionary.to_pylist()]
    wrong = np.array([reason is not None for reason in reasons])
    for place in np.flatnonzero(wrong[encoded.indices.to_numpy()]).tolist():
        reason = reasons[encoded.indices[place].as_py()]
        faults.mark_each([int(rows[place])], [str(reason)])


@lru_cache(maxsize=4096)
def _fault(name: str, text: str, parse: Callable[[object], object]) -> str | None:
    try:
        parse(parse_document(text))
    except BadInput as error:
        within = error.place.startswith(name)
        return str(error if within else error.within(name))
    return None


def _filters_of(document: object) -> object:
    from distributary.filters.filter import Filter

    return Filter.parse(document)


def _true(answers: pa.BooleanArray) -> BoolArray:
    """Return where something is true, which it is not of a value that is not there."""
    import pyarrow.compute as pc

    return np.array(pc.fill_null(answers, False).to_numpy(zero_copy_only=False), bool)


def _rows_with(rows: IntArray, wrong: BoolArray, count: int) -> BoolArray:
    return np.bincount(rows[wrong], minlength=count).astype(bool)
