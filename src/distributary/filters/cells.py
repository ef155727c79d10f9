"""Where in the content space a filter can match.

A subscription is registered at the rendezvous brokers of these cells, so none may be missing
in which an event could match; one too many costs a message. Facts that must hold together
are taken together by key, and each dimension of the space says which of its bins they
leave. Products and unions of those bins are the cells.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from distributary.arguments import checked
from distributary.arrays import BoolArray, IntArray
from distributary.content.arrow_columns import check_table
from distributary.content.attributes import attribute_number
from distributary.content.content_space import ContentSpace
from distributary.content.dimensions import Dimension, TextBuckets, TextValues
from distributary.errors import BadInput, quoted
from distributary.filters.atoms import Found, Kind, Numbers, text_of
from distributary.filters.filter import Filter
from distributary.filters.filter_formula import filter_formula
from distributary.filters.formula import (
    Complement,
    Conjunction,
    Fact,
    Formula,
    complement,
)
from distributary.filters.region import (
    Literals,
    effort,
    fits,
    is_asserted,
    is_empty,
    kinds_of,
    numbers_left,
    values_left,
)
from distributary.filters.sql_casts import integer_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CellLists", "cells", "cells_batch"]

_REMEMBERED_MAX = 65_536
# How many facts are looked at for one filter, some tenths of a second: alternatives within
# alternatives, as in a chain of XOR, double with each.
_STEPS_MAX = 20_000

_Known: TypeAlias = Mapping[str, Literals]
"""Facts by key."""


@checked
def cells(filters: Filter | Sequence[object], space: ContentSpace) -> IntArray:
    """Return the cells in which the filters can match, in order, and possibly more.

    No more than needed for exact texts, sets of them and ranges, and for what `all` and `any`
    make of those, unless several choices must be made about one key at once, or so many that
    the search for cells gives up. A prefix or a
    suffix says nothing about the hash of a text, so it leaves every bucket; so does an
    expression that computes. Where texts have cells of their own, each is tried out, and a
    filter of any form leaves those that it matches and, unless it lists its texts, that of
    all others.
    """
    filter_ = filters if isinstance(filters, Filter) else Filter.parse(filters)
    return np.flatnonzero(_Cells(space).mask(filter_)).astype(np.int64)


class CellLists(NamedTuple):
    """The cells of many subscriptions; those with the same cells share one list.

    Every row has the number of a list; list `i` is `cells[offsets[i]:offsets[i + 1]]`, in order.
    """

    list_of_row: IntArray
    offsets: IntArray
    cells: IntArray

    def of_row(self, row: int) -> IntArray:
        """Return the cells of a row."""
        number = self.list_of_row[row]
        return self.cells[self.offsets[number] : self.offsets[number + 1]]


@checked
def cells_batch(subscriptions: pa.Table | pa.RecordBatch, space: ContentSpace) -> CellLists:
    """Return the cells of every subscription of a table, as `cells` gives them.

    The columns `subscription_id` and `filters` are read, the latter JSON as in
    `Filter.parse`. Needs pyarrow.

    Raises `BadInput` naming the subscription and the place in its filters.
    """
    import pyarrow as pa

    check_table("subscriptions", subscriptions)
    column = subscriptions.column("filters")
    encoded = pa.chunked_array([column] if isinstance(column, pa.Array) else column.chunks)
    encoded = encoded.cast(pa.string()).combine_chunks().dictionary_encode()
    finder = _Cells(space)
    lists: dict[bytes, int] = {}
    found: list[IntArray] = []
    list_of_text: list[int] = []
    for number, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            mask = finder.mask(Filter.parse(_parsed(text)))
        except BadInput as error:
            row = int(np.flatnonzero(np.asarray(encoded.indices) == number)[0])
            name = subscriptions.column("subscription_id")[row].as_py()
            raise error.within(f"subscription {quoted(name)}") from None
        packed = np.packbits(mask).tobytes()
        if packed not in lists:
            lists[packed] = len(found)
            found.append(np.flatnonzero(mask).astype(np.int64))
        list_of_text.append(lists[packed])
    if encoded.null_count:
        row = int(np.flatnonzero(encoded.is_null().to_numpy(zero_copy_only=False))[0])
        name = subscriptions.column("subscription_id")[row].as_py()
        raise BadInput(f"subscription {quoted(name)}", "has no filters")
    return CellLists(
        np.array(list_of_text, np.int64)[np.asarray(encoded.indices)],
        np.cumsum([0, *(len(entry) for entry in found)]),
        np.concatenate([np.empty(0, np.int64), *found]),
    )


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise BadInput("filters", "are not JSON") from None


class _Cells:
    """Finds the cells of filters in one space."""

    def __init__(self, space: ContentSpace) -> None:
        self._shape = space.shape
        self._axes: dict[str, list[tuple[int, Dimension]]] = defaultdict(list)
        for axis, dimension in enumerate(space.dimensions):
            self._axes[dimension.name].append((axis, dimension))
        self._everywhere = np.ones((1,) * len(self._shape), bool)
        self._remembered: dict[Literals, BoolArray] = {}
        self._left = 0

    def mask(self, filter_: Filter) -> BoolArray:
        """Return for every cell whether the filter can match in it."""
        self._left = _STEPS_MAX
        possible = self._possible(filter_formula(filter_), {})
        return np.broadcast_to(possible, self._shape).ravel()

    def _possible(self, formula: Formula, known: _Known) -> BoolArray:
        """Return where a formula can hold beside what is known.

        The result has any shape that broadcasts to the space's. The depth of a formula is
        limited. When all steps are taken, what was not looked at can hold everywhere.
        """
        self._left -= 1
        if self._left < 0:
            return self._everywhere
        negated = isinstance(formula, Complement)
        inner = formula.part if isinstance(formula, Complement) else formula
        if isinstance(inner, Fact):
            return self._all_of((inner,), known)
        parts = tuple(complement(part) for part in inner.parts) if negated else inner.parts
        if isinstance(inner, Conjunction) is not negated:
            return self._all_of(parts, known)
        found = ~self._everywhere
        for part in parts:
            found = found | self._possible(part, known)
        return found

    def _all_of(self, parts: tuple[Formula, ...], known: _Known) -> BoolArray:
        facts = [part for part in parts if isinstance(part, Fact)]
        known = dict(known)
        for fact in facts:
            key = fact.atom.key
            known[key] = (*known.get(key, ()), (fact.atom, fact.sign))
        found = self._everywhere
        for key in dict.fromkeys(fact.atom.key for fact in facts):
            found = found & self._holding(known[key])
        for part in parts:
            if not isinstance(part, Fact):
                found = found & self._possible(part, known)
        return found

    def _holding(self, literals: Literals) -> BoolArray:
        """Return where facts on one key can hold together."""
        found = self._remembered.get(literals)
        if found is not None:
            return found
        self._left -= effort(literals)
        if self._left < 0:
            return self._everywhere
        found = self._everywhere
        axes = self._axes.get(literals[0][0].key, ())
        if not axes and len(literals) > 1 and is_empty(literals):
            found = ~found
        for axis, dimension in axes:
            along = [1] * len(self._shape)
            along[axis] = -1
            found = found & _bins(dimension, literals).reshape(along)
        if len(self._remembered) < _REMEMBERED_MAX:
            self._remembered[literals] = found
        return found


def _bins(dimension: Dimension, literals: Literals) -> BoolArray:
    """Return the bins of a dimension in which facts on its key can hold."""
    found = np.zeros(dimension.bin_count, bool)
    for kind in kinds_of(dimension.name):
        values = values_left(kind, literals)
        if values is None:
            _mark_many(dimension, kind, literals, found)
        else:
            for value in values:
                found[_bin(dimension, value)] = True
    return found


def _bin(dimension: Dimension, value: Found) -> int:
    if isinstance(dimension, TextBuckets | TextValues):
        return dimension.bin_of_text(text_of(value))
    if value is None or isinstance(value, float):
        return dimension.bin_of_number(value)
    number = None if dimension.name.startswith("/") else attribute_number(value)
    return dimension.bin_of_number(number)


def _mark_many(dimension: Dimension, kind: Kind, literals: Literals, found: BoolArray) -> None:
    """Mark the bins of the values of a kind that are left, when they cannot be listed."""
    if isinstance(dimension, TextValues):
        _mark_values(dimension, kind, literals, found)
        return
    if isinstance(dimension, TextBuckets):
        if kind is Kind.NUMBER:
            found[0] = True
        else:
            found[1:] = True
        return
    textual = kind is Kind.STRING
    if textual and not is_asserted(literals, Numbers):
        # A text that is no number counts as absent.
        found[0] = True
    if not (textual and dimension.name.startswith("/")):
        for span in numbers_left(literals):
            low, high = dimension.bin_of_number(span.low), dimension.bin_of_number(span.high)
            found[low : high + 1] = True


def _mark_values(dimension: TextValues, kind: Kind, literals: Literals, found: BoolArray) -> None:
    """Mark the texts of a dimension that are left, and the others: some of them are."""
    if kind is Kind.NUMBER:
        found[0] = True
        return
    found[dimension.others] = True
    for number, text in enumerate(dimension.values, start=1):
        value: Found = text
        if kind is Kind.INTEGER:
            value = integer_of(text)
            if value is None or str(value) != text:
                continue
        if not found[number]:
            found[number] = fits(value, literals)
