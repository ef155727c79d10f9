"""Columns of text turned into columns of other types, all rows at once.

What a text means is decided elsewhere: numbers are those of JSON (`arrow_columns.numbers_of`),
times those of events (`timestamps.parse_timestamp`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distributary.arrays import BoolArray
from distributary.content.arrow_columns import numbers_of, validity
from distributary.content.attributes import JSON_NUMBER
from distributary.content.documents import parse_document
from distributary.content.timestamps import parse_timestamp, timestamp_ns
from distributary.errors import BadInput
from distributary.pipeline.sources.documents import value_of
from distributary.pipeline.sources.source_rows import Faults, read_each

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["times_of", "typed"]

# Times of this form need no second look: days that exist in their month (29 February in years
# that have one), seconds below 60, at most nanoseconds, an offset. All others, leap seconds
# among them, are read one by one.
_DAY = (
    r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    r"|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_LEAP_DAY = r"[12][0-9](?:0[48]|[2468][048]|[13579][26])-02-29"
_PLAIN_TIME = (
    rf"\A(?:[12][0-9]{{3}}-{_DAY}|{_LEAP_DAY})"
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?"
    r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])\z"
)
_BEYOND_MICROSECONDS = r"(\.[0-9]{6})[0-9]{1,3}"
_INTEGER = r"\A-?(?:0|[1-9][0-9]{0,17})\z"
_NUMBER_LIST = rf"\A\[\s*(?:{JSON_NUMBER}(?:\s*,\s*{JSON_NUMBER})*)?\s*\]\z"


def typed(name: str, texts: pa.StringArray, kind: pa.DataType, faults: Faults) -> pa.Array:
    """Return a column of texts as a column of a type; what cannot be read is marked and null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string(kind):
        return texts
    if pa.types.is_map(kind):
        return _maps(name, texts, kind, faults)
    texts = pc.ascii_trim_whitespace(texts)
    if pa.types.is_timestamp(kind):
        return times_of(name, texts, faults)
    present = validity(texts)
    if pa.types.is_floating(kind):
        numbers = numbers_of(texts)
        wrong = present & np.isnan(numbers)
        faults.mark(wrong, f"{name}: is not a finite number")
        return pa.array(numbers, kind, mask=np.isnan(numbers))
    if pa.types.is_list(kind):
        return _lists(name, texts, faults).cast(kind)
    sound = _matches(texts, _INTEGER)
    integers = pc.cast(pc.if_else(pa.array(sound), texts, None), pa.int64())
    bound = 2 ** (kind.bit_width - 1)
    small = pc.and_(pc.less_equal(integers, bound - 1), pc.greater_equal(integers, -bound))
    sound &= pc.fill_null(small, False).to_numpy(zero_copy_only=False)
    faults.mark(present & ~sound, f"{name}: is not a whole number, or too large a one")
    return pc.cast(pc.if_else(pa.array(sound), integers, None), kind)


def times_of(name: str, texts: pa.StringArray, faults: Faults) -> pa.TimestampArray:
    """Return times to the microsecond, earlier ones where they are finer."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = pa.timestamp("us", tz="UTC")
    plain = _matches(texts, _PLAIN_TIME)
    written = texts if plain.all() else pc.if_else(pa.array(plain), texts, None)
    if pc.any(pc.match_substring_regex(written, _BEYOND_MICROSECONDS)).as_py():
        written = pc.replace_substring_regex(written, _BEYOND_MICROSECONDS, r"\1")
    times = pc.cast(written, kind)
    others = np.flatnonzero(validity(texts) & ~plain)
    if not len(others):
        return times
    # Odd times repeat: each is read once.
    encoded = pc.dictionary_encode(texts.take(pa.array(others)))
    read: list[int | None] = []
    reasons: list[str] = []
    for text in encoded.dictionary.to_pylist():
        try:
            read.append(timestamp_ns(parse_timestamp(name, text)) // 1000)
            reasons.append("")
        except BadInput as error:
            read.append(None)
            reasons.append(str(error))
    places = encoded.indices.to_numpy()
    wrong = [(row, reasons[place]) for row, place in zip(others, places, strict=True)]
    faults.mark_each(
        (int(row) for row, reason in wrong if reason), (reason for _, reason in wrong if reason)
    )
    mask = np.zeros(len(texts), bool)
    mask[others] = True
    values = pa.array(read, pa.int64()).take(encoded.indices).cast(kind)
    return pc.replace_with_mask(times, pa.array(mask), values)


def _lists(name: str, texts: pa.StringArray, faults: Faults) -> pa.ListArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    sound = _matches(texts, _NUMBER_LIST)
    faults.mark(validity(texts) & ~sound, f"{name}: is not a list of numbers")
    inside = pc.utf8_trim(pc.if_else(pa.array(sound), texts, None), "[] \t")
    empty = pc.fill_null(pc.equal(inside, ""), False)
    parts = pc.split_pattern(inside, ",")
    items = pc.ascii_trim_whitespace(parts.values)
    numbers = pc.cast(pc.if_else(pc.equal(items, ""), None, items), pa.float64())
    lists = pa.ListArray.from_arrays(parts.offsets, numbers, mask=pc.is_null(parts))
    return pc.if_else(empty, pa.scalar([], lists.type), lists)


def _maps(name: str, texts: pa.StringArray, kind: pa.DataType, faults: Faults) -> pa.MapArray:
    """Return maps that are written as JSON objects, one by one: no two need be alike."""
    import pyarrow as pa

    values = read_each(texts, faults, lambda text: value_of(name, _document(name, text), kind))
    return pa.array(values, kind)


def _document(name: str, text: str) -> object:
    try:
        return parse_document(text)
    except BadInput as error:
        raise BadInput(name, error.problem) from None


def _matches(texts: pa.StringArray, pattern: str) -> BoolArray:
    import pyarrow.compute as pc

    found: BoolArray = pc.fill_null(pc.match_substring_regex(texts, pattern), False).to_numpy(
        zero_copy_only=False
    )
    return np.array(found)
