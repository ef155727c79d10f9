"""The compiled reader of filters in JSON and the one in Python agree on every text."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies_filters import FILTERS, Filters

from distributary.content.arrow_columns import text_column
from distributary.content.documents import parse_document
from distributary.errors import BadInput
from distributary.filters.arrow_subscriptions import scanned
from distributary.filters.clauses import clause_set
from distributary.filters.decision import ENDS, decision
from distributary.filters.filter import Filter
from distributary.filters.index import Index
from distributary.filters.text_table import TextTable

PIECES = st.sampled_from(
    ("", " ", "\n", ",", ":", "{", "}", "[", "]", '"', "\\", "0", "-", ".", "e9", "1e999", "null")
)
MORE = st.sampled_from(
    ('"min":2,', '"max":-1', '"exact":', '"a":"b",', "NaN", "\\u0061", "~", "é", "\t\r")
)


@st.composite
def spoilt_texts(draw: st.DrawFn) -> str:
    """Draw filters as JSON with something put into, or in place of, a stretch of it."""
    text = json.dumps(draw(FILTERS), ensure_ascii=draw(st.booleans()))
    for _ in range(draw(st.integers(0, 2))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.sampled_from([0, 0, 1, 3, 10])))
        text = text[:begin] + draw(PIECES | MORE) + text[end:]
    return text


def subscriptions(text: str) -> pa.Table:
    return pa.table({"subscription_id": ["s"], "filters": [text]})


def fault(text: str) -> str | None:
    """Return what the reader in Python has against a text."""
    try:
        Filter.parse(parse_document(text))
    except BadInput as error:
        return str(error)
    return None


@given(spoilt_texts())
def test_both_readers_refuse_the_same_texts(text: str) -> None:
    problem = fault(text)
    if problem is None:
        assert "s" in Index.from_arrow(subscriptions(text))
    else:
        with pytest.raises(BadInput) as refused:
            Index.from_arrow(subscriptions(text))
        assert str(refused.value) == f"subscription 's': {problem}"


@given(FILTERS, st.sampled_from([None, 1, "\t"]))
def test_plain_filters_become_the_conditions_that_python_finds(
    filters: Filters, indent: int | str | None
) -> None:
    column = text_column(pa.array([json.dumps(filters, indent=indent, ensure_ascii=False)]))
    keys, texts = TextTable(1), TextTable(1)
    found = scanned(column, 0, 1, keys, texts)
    simple = all(set(item) <= {"exact", "prefix", "suffix", "range"} for item in filters)
    awkward = any("\n" in text or "~" in text for text in _strings(filters))
    parsed = Filter.parse(filters)
    hopeless = any(clause_set(Filter((part,))).never for part in parsed.parts)
    assert bool(found.plain[0]) == (simple and not awkward and not hopeless)
    if found.plain[0]:
        read = {
            (
                int(step["op"]),
                keys[int(step["key"])],
                "" if step["text"] < 0 else _forwards(step, texts),
                float(step["low"]),
                float(step["high"]),
            )
            for step in found.steps
        }
        one_by_one = [decision(Filter((part,))).steps for part in parsed.parts]
        assert read == {
            (step.op, step.key, step.text, step.interval.low, step.interval.high)
            for steps in one_by_one
            for step in steps
        }


def _forwards(step: np.void, texts: TextTable) -> str:
    arrays = texts.arrays
    number = int(step["text"])
    data = arrays.arena[arrays.starts[number] : arrays.starts[number + 1]].tobytes()
    return (data[::-1] if step["op"] == ENDS else data).decode()


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.items() for part in item for text in _strings(part)]
    if isinstance(value, list):
        return [text for part in value for text in _strings(part)]
    return []
