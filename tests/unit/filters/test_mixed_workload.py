"""The workload that the index is timed on is the one that is asked for."""

from __future__ import annotations

from benchmarks.filters.mixed_workload import mixed_events, mixed_subscriptions

from distributary.filters.filter import Filter
from distributary.filters.index import Index


def test_an_event_matches_about_one_subscription_in_a_thousand() -> None:
    index = Index()
    documents = mixed_subscriptions(seed=1, count=4000)
    index.add_all((name, Filter.parse(filters)) for name, filters in documents.items())
    events = mixed_events(seed=1, count=400)
    matches = sum(map(len, index.match_each(events)))
    assert 0.0008 <= matches / len(events) / len(index) <= 0.0012
