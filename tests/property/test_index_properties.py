"""The index answers as evaluating every filter does: one by one, in batches, after changes."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.filters import condition_holds, matches, matching
from tests.strategies_filters import FILTERS, Filters, publications

from distributary.content.publication import Publication
from distributary.content.publication_table import to_arrow
from distributary.filters.clauses import clause_set
from distributary.filters.filter import Filter
from distributary.filters.index import Index

EVENTS = st.lists(publications(), min_size=1, max_size=4)
SUBSCRIPTIONS = st.dictionaries(
    st.text("abcé", min_size=1, max_size=3), FILTERS, min_size=1, max_size=12
)


def table_of(subscriptions: Mapping[str, Filters]) -> pa.Table:
    return pa.table(
        {
            "subscription_id": pa.array(list(subscriptions), pa.string()),
            "filters": pa.array([json.dumps(f) for f in subscriptions.values()], pa.string()),
        }
    )


def batch_matches(index: Index, events: list[Publication]) -> list[list[str]]:
    found = index.match_batch(to_arrow(events)).to_pydict()
    matched: list[list[str]] = [[] for _ in events]
    for event, name in zip(found["event_index"], found["subscription_id"], strict=True):
        matched[event].append(name)
    assert found["event_index"] == sorted(found["event_index"])
    return [sorted(names) for names in matched]


@given(FILTERS, EVENTS)
def test_a_filter_matches_as_its_document_says(filters: Filters, events: list[Publication]) -> None:
    compiled = Filter.parse(filters)
    again = Filter.parse(json.loads(json.dumps(compiled.document())))
    assert again == compiled
    for event in events:
        assert compiled.matches(event) == matches(filters, event)


@given(FILTERS, EVENTS)
def test_conditions_say_no_more_than_the_filter(
    filters: Filters, events: list[Publication]
) -> None:
    """A filter that holds has all of its clauses hold; if they are complete, also vice versa."""
    needed = clause_set(Filter.parse(filters))
    for event in events:
        holds = not needed.never and all(
            any(condition_holds(condition, event) for condition in clause)
            for clause in needed.clauses
        )
        if matches(filters, event):
            assert holds
        elif needed.complete:
            assert not holds


@given(SUBSCRIPTIONS, EVENTS)
def test_the_index_finds_what_evaluating_every_filter_finds(
    subscriptions: dict[str, Filters], events: list[Publication]
) -> None:
    index = Index()
    for name, filters in subscriptions.items():
        index.add_filter(name, Filter.parse(filters))
    expected = [matching(subscriptions, event) for event in events]
    assert [index.match(event) for event in events] == expected
    assert list(index.match_each(events)) == expected
    assert batch_matches(index, events) == expected


@given(SUBSCRIPTIONS, EVENTS)
def test_an_index_from_a_table_is_the_same_index(
    subscriptions: dict[str, Filters], events: list[Publication]
) -> None:
    index = Index.from_arrow(table_of(subscriptions))
    expected = [matching(subscriptions, event) for event in events]
    assert [index.match(event) for event in events] == expected
    assert batch_matches(index, events) == expected
    assert len(index) == len(subscriptions)


@settings(max_examples=50)
@given(SUBSCRIPTIONS, SUBSCRIPTIONS, EVENTS, st.data())
def test_what_is_removed_matches_nothing_and_may_come_back_different(
    before: dict[str, Filters],
    after: dict[str, Filters],
    events: list[Publication],
    data: st.DataObject,
) -> None:
    index = Index.from_arrow(table_of(before))
    gone = data.draw(st.lists(st.sampled_from(sorted(before)), unique=True))
    if data.draw(st.booleans()):
        index.remove_batch(pa.array(gone, pa.string()))
    else:
        for name in gone:
            index.remove(name)
    current = {name: filters for name, filters in before.items() if name not in gone}
    new = {name: filters for name, filters in after.items() if name not in current}
    index.add_batch(table_of(new))
    current.update(new)
    expected = [matching(current, event) for event in events]
    assert [index.match(event) for event in events] == expected
    assert batch_matches(index, events) == expected
    assert all((name in index) == (name in current) for name in (*before, *after))
