"""The index: what it refuses, and that large ones answer as small ones do."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.reference.filters import matching

from distributary.content.publication import Publication
from distributary.content.publication_table import to_arrow
from distributary.content.subscription import Subscription
from distributary.errors import BadInput
from distributary.filters.filter import Filter
from distributary.filters.index import Index
from distributary.filters.sql_built_ins import BUILT_INS
from distributary.filters.sql_functions import Function
from distributary.filters.sql_tree import ValueType

EVERYTHING = Filter.parse([])


def table_of(subscriptions: dict[str, Any]) -> pa.Table:
    return pa.table(
        {
            "subscription_id": pa.array(list(subscriptions), pa.string()),
            "filters": pa.array([json.dumps(item) for item in subscriptions.values()]),
        }
    )


def mixed_subscriptions(count: int, *, seed: int) -> dict[str, Any]:
    """Return subscriptions of ranges and texts, many of which share a text."""
    rng = np.random.default_rng(seed)
    subscriptions: dict[str, Any] = {}
    for i in range(count):
        keys = rng.choice(6, size=rng.integers(1, 5), replace=False)
        bounds = {}
        for key in sorted(keys.tolist()):
            low = round(float(rng.random()), 2)
            bounds[f"/n{key}"] = {"min": low, "max": round(low + 0.5 * float(rng.random()), 2)}
        filters: list[dict[str, Any]] = [{"range": bounds}]
        if i % 3:
            filters.append({"exact": {"type": "ab"[int(rng.integers(2))]}})
        if i % 50 == 0:
            filters.append(
                {"any": [{"sql": "type = 'a' XOR level = 1"}, {"prefix": {"type": "b"}}]}
            )
        subscriptions[f"{seed}-{i}"] = filters
    return subscriptions


def numeric_events(count: int) -> list[Publication]:
    rng = np.random.default_rng(count)
    return [
        Publication(
            {
                "id": str(i),
                "source": "s",
                "type": "abc"[i % 3],
                "level": i % 2,
                "specversion": "1.0",
            },
            {f"n{key}": round(float(rng.random()), 2) for key in range(i % 7)},
        )
        for i in range(count)
    ]


def assert_answers(index: Index, subscriptions: dict[str, Any], events: list[Publication]) -> None:
    expected = [matching(subscriptions, event) for event in events]
    assert [index.match(event) for event in events] == expected
    assert list(index.match_each(events)) == expected
    found = index.match_batch(to_arrow(events)).to_pydict()
    pairs = sorted(zip(found["event_index"], found["subscription_id"], strict=True))
    assert pairs == [(i, name) for i, names in enumerate(expected) for name in names]
    assert sum(map(len, expected)) > len(events)


def test_pages_lists_and_removals_answer_as_every_filter_does() -> None:
    """Subscriptions for several lanes at once, then more, then many fewer: all in between."""
    events = numeric_events(16)
    current = mixed_subscriptions(2500, seed=1)
    index = Index.from_arrow(table_of(current))
    assert_answers(index, current, events)
    more = mixed_subscriptions(1200, seed=2)
    index.add_batch(table_of(more))
    current.update(more)
    assert_answers(index, current, events)
    gone = sorted(current)[::2]
    index.remove_batch(pa.array(gone))
    current = {name: item for name, item in current.items() if name not in set(gone)}
    assert_answers(index, current, events)
    assert len(index) == len(current)


def test_an_index_that_has_seen_many_changes_is_sorted_afresh(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("distributary.filters.index._CHANGES_MIN", 300)
    current = mixed_subscriptions(600, seed=3)
    index = Index.from_arrow(table_of(current))
    for seed in (4, 5):
        more = mixed_subscriptions(700, seed=seed)
        for name, filters in more.items():
            index.add_filter(name, Filter.parse(filters))
        current.update(more)
        gone = sorted(current)[:650]
        for name in gone:
            index.remove(name)
            del current[name]
        assert_answers(index, current, numeric_events(20))


def test_events_of_many_batches_are_told_apart() -> None:
    index = Index()
    index.add_filter("s", Filter.parse([{"exact": {"type": "a"}}]))
    events = numeric_events(9000)
    found = index.match_batch(to_arrow(events)).to_pydict()["event_index"]
    assert found == [i for i, event in enumerate(events) if event.type == "a"]


def test_however_many_events_fit_they_get_the_same_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = Index.from_arrow(table_of(mixed_subscriptions(60, seed=7)))
    events = numeric_events(50)
    expected = [index.match(event) for event in events]
    assert list(index.match_each([])) == []
    for name, limit in (("_EVENTS_MAX", 7), ("_PAIRS_MAX", 200), ("_PLACES_MAX", 3)):
        monkeypatch.setattr(f"distributary.filters.index.{name}", limit)
        assert list(index.match_each(events)) == expected


def test_a_subscription_is_added_with_its_filters() -> None:
    index = Index()
    index.add(Subscription.parse({"id": "s", "filters": [{"exact": {"type": "a"}}]}))
    assert [index.match(event) for event in numeric_events(3)] == [
        ["s"] if event.type == "a" else [] for event in numeric_events(3)
    ]
    with pytest.raises(BadInput, match="dialect"):
        index.add(Subscription("other", ({"exactly": {"type": "a"}},)))
    assert len(index) == 1


def test_an_id_is_there_once() -> None:
    index = Index()
    index.add_filter("s", EVERYTHING)
    with pytest.raises(BadInput, match=r"^subscription: 's' is there already$"):
        index.add_filter("s", EVERYTHING)
    with pytest.raises(BadInput, match=r"^subscription: 'u' is there already$"):
        index.add_batch(table_of({"t": [], "u": []}).take([0, 1, 1]))
    assert "t" not in index
    index.remove("s")
    with pytest.raises(BadInput, match=r"^subscription: 's' is not there$"):
        index.remove("s")
    with pytest.raises(BadInput, match=r"^subscription: 's' is not there$"):
        index.remove_batch(pa.array(["s"]))
    assert len(index) == 0
    index.add_filter("s", EVERYTHING)
    assert index.match(Publication({})) == ["s"]


@pytest.mark.parametrize("name", ["", "x" * 2000, "\ud800", None])
def test_an_id_is_text(name: Any) -> None:
    with pytest.raises(BadInput, match=r"^subscription: "):
        Index().add_filter(name, EVERYTHING)


def test_a_table_with_a_fault_adds_nothing() -> None:
    index = Index.from_arrow(table_of({"kept": []}))
    with pytest.raises(
        BadInput, match=r"^subscription 'bad': filters\[0\]\.any: must not be empty$"
    ):
        index.add_batch(table_of({"fine": [], "bad": [{"any": []}]}))
    assert len(index) == 1
    assert index.match(Publication({"type": "t"})) == ["kept"]
    index.add_batch(table_of({"fine": []}))
    assert index.match(Publication({"type": "t"})) == ["fine", "kept"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"subscription_id": ["a"]}), "subscriptions: has no column 'filters'"),
        (
            pa.table({"subscription_id": ["a", None], "filters": ["[]", "[]"]}),
            "subscriptions.subscription_id: row 1 is null",
        ),
        (
            pa.table({"subscription_id": ["a", ""], "filters": ["[]", "[]"]}),
            "subscriptions.subscription_id: row 1 is empty",
        ),
        (
            pa.table({"subscription_id": ["a"], "filters": ["[}"]}),
            "subscription 'a': line 1, column 2: malformed JSON: expecting value",
        ),
    ],
)
def test_a_bad_table_is_told_with_its_place(table: pa.Table, message: str) -> None:
    with pytest.raises(BadInput) as refused:
        Index.from_arrow(table)
    assert str(refused.value) == message


def test_publications_lack_a_column() -> None:
    batch = to_arrow(numeric_events(3)).drop_columns(["texts"])
    with pytest.raises(BadInput, match=r"^publications: has no column 'texts'$"):
        Index().match_batch(batch)


def test_nulls_in_a_batch_are_missing() -> None:
    index = Index()
    index.add_filter("number", Filter.parse([{"range": {"/x": {"min": 0}}}]))
    index.add_filter("text", Filter.parse([{"exact": {"/y": "a"}}]))
    index.add_filter("not", Filter.parse([{"not": {"exact": {"type": "t"}}}]))
    index.add_filter("sql", Filter.parse([{"sql": "type LIKE '_' AND LENGTH(type) = 1"}]))
    whole = to_arrow([Publication({"id": "1", "source": "s", "type": "t"}, {"x": 1, "y": "a"})])
    empty = whole.schema.empty_table()
    rows = pa.Table.from_batches([whole]).to_pylist()
    rows.append({**rows[0], "attributes": None, "numbers": None, "texts": None})
    rows.append(
        {
            **rows[0],
            "attributes": [("type", None)],
            "numbers": [("/x", None)],
            "texts": [("/y", None)],
        }
    )
    rows.append({**rows[0], "numbers": [("/x", float("nan"))]})
    batch = pa.Table.from_pylist(rows, schema=whole.schema).combine_chunks().to_batches()[0]
    found = index.match_batch(batch).to_pydict()
    assert sorted(zip(found["event_index"], found["subscription_id"], strict=True)) == [
        (0, "number"),
        (0, "sql"),
        (0, "text"),
        (1, "not"),
        (2, "not"),
        (3, "sql"),
        (3, "text"),
    ]
    assert index.match_batch(batch.slice(3)).to_pydict()["event_index"] == [0, 0]
    assert index.match_batch(pa.RecordBatch.from_pylist([], schema=empty.schema)).num_rows == 0


@pytest.mark.parametrize(
    "text",
    [
        "EXISTS type",
        "level = 1 AND EXISTS id",
        "NOT EXISTS type",
        "EXISTS data",
        "data = 'x'",
        "data LIKE '%'",
        "'x' = data",
        "data IN ('x')",
        "level = 1 OR data = 'x'",
        "NOT EXISTS data",
    ],
)
def test_what_always_exists_and_what_never_does_is_so_in_the_index_too(text: str) -> None:
    """Events made by hand may lack what every valid one has, or have what none can."""
    subscriptions: dict[str, Any] = {"s": [{"sql": text}], "not": [{"not": {"sql": text}}]}
    extras: list[dict[str, Any]] = [{}, {"level": 1}, {"data": "x"}, {"data": "x", "type": "t"}]
    events = [Publication({"id": "1", "source": "s", **more}) for more in extras]
    index = Index.from_arrow(table_of(subscriptions))
    expected = [matching(subscriptions, event) for event in events]
    assert list(index.match_each(events)) == expected
    found = index.match_batch(to_arrow(events)).to_pydict()
    assert list(zip(found["event_index"], found["subscription_id"], strict=True)) == [
        (row, name) for row, names in enumerate(expected) for name in names
    ]


def test_filters_of_a_table_may_call_the_functions_of_the_index() -> None:
    twice = Function("TWICE", (ValueType.STRING,), ValueType.STRING, lambda text: text + text)
    table = table_of({"s": [{"sql": "TWICE(type) = 'aa'"}]})
    event = Publication({"type": "a"})
    assert Index.from_arrow(table, functions=BUILT_INS.extended(twice)).match(event) == ["s"]
    assert Index.from_arrow(table).match(event) == []


def test_keys_beyond_the_limit_are_refused_and_others_still_welcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("distributary.filters.subscription_store.KEYS_MAX", 300)
    index = Index()
    for begin in (0, 100, 200):
        keys = [f"k{i}" for i in range(begin, begin + 100)]
        index.add_filter(f"s{begin}", Filter.parse([{"exact": dict.fromkeys(keys, "x")}]))
    with pytest.raises(BadInput, match="different keys"):
        index.add_filter("more", Filter.parse([{"exact": {"new": "x"}}]))
    index.add_filter("fine", Filter.parse([{"exact": {"k1": "x"}}]))
    assert index.match(Publication({"k1": "x"})) == ["fine"]


def test_a_set_too_long_for_a_decision_is_still_answered() -> None:
    choices = ", ".join(f"'{i}'" for i in range(1000))
    filters = [{"sql": f"type IN ({choices})"}, {"any": [{"sql": f"level IN ({choices})"}] * 9}]
    index = Index()
    index.add_filter("s", Filter.parse(filters))
    assert index.match(Publication({"type": "x7", "level": "7"})) == []
    assert index.match(Publication({"type": "7", "level": "999"})) == ["s"]
