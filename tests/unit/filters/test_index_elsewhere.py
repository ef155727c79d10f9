"""The index in another process, and its answers as numbers: what a cluster needs of it."""

from __future__ import annotations

import json
import pickle
from operator import methodcaller
from typing import Any, TypeVar

import pyarrow as pa

from distributary.content.publication import Publication
from distributary.content.publication_table import to_arrow
from distributary.filters.filter import Filter
from distributary.filters.index import Index
from distributary.filters.sql_built_ins import BUILT_INS
from distributary.filters.sql_functions import Function
from distributary.filters.sql_tree import ValueType

SUBSCRIPTIONS: dict[str, Any] = {
    "computed": [{"sql": "LENGTH(type) = 2 XOR level = 1"}],
    "plain": [{"exact": {"type": "aa"}}],
    "choice": [{"any": [{"prefix": {"type": "a"}}, {"sql": "level > 0"}]}],
    "number": [{"range": {"/n": {"min": 1}}}],
}
EVENTS = [
    Publication({"id": str(i), "source": "s", "type": kind, "level": i % 3}, {"n": i})
    for i, kind in enumerate(["aa", "a", "b", "bb"] * 3)
]


T = TypeVar("T")


def sent(value: T) -> T:
    """Return what another process would get."""
    got: T = pickle.loads(pickle.dumps(value))  # noqa: S301  (we packed it)
    return got


def index_of(subscriptions: dict[str, Any]) -> Index:
    filters = [json.dumps(item) for item in subscriptions.values()]
    return Index.from_arrow(pa.table({"subscription_id": list(subscriptions), "filters": filters}))


def test_an_index_that_was_used_answers_the_same_elsewhere() -> None:
    """Closures made on the way stay behind; every answer is that of the original."""
    index = index_of(SUBSCRIPTIONS)
    expected = [index.match(event) for event in EVENTS]
    assert any("computed" in names for names in expected)
    elsewhere = sent(index)
    assert [elsewhere.match(event) for event in EVENTS] == expected
    elsewhere.remove("plain")
    elsewhere.add_filter("new", Filter.parse([{"sql": "type = 'bb'"}]))
    assert elsewhere.match(EVENTS[3]) == sorted([*expected[3], "new"])


def test_the_built_in_functions_are_the_same_object_elsewhere() -> None:
    """Expressions are equal only if they call the same functions."""
    assert sent(BUILT_INS) is BUILT_INS
    lower = methodcaller("lower")
    more = BUILT_INS.extended(Function("LOWERED", (ValueType.STRING,), ValueType.STRING, lower))
    found = sent(more).find("lowered", 1)
    assert found is not None
    assert found.call("ABC") == "abc"


def test_numbers_name_the_same_subscriptions_as_ids() -> None:
    """Rows of the table for a fresh index, and whatever `ids` says after changes."""
    batch = to_arrow(EVENTS)
    index = index_of(SUBSCRIPTIONS)
    assert index.ids().to_pylist() == list(SUBSCRIPTIONS)
    for gone in ("plain", "choice"):
        ids = index.ids().to_pylist()
        pairs = [
            (row, ids[number])
            for rows, numbers in index.match_numbers(batch)
            for row, number in zip(rows.tolist(), numbers.tolist(), strict=True)
        ]
        expected = index.match_batch(batch).to_pydict()
        assert pairs == list(zip(expected["event_index"], expected["subscription_id"], strict=True))
        assert len(pairs) > len(EVENTS)
        index.remove(gone)
        index.add_filter(f"not {gone}", Filter.parse([]))
