"""`covers` never lies and seldom misses; `merge` changes nothing about what matches."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.filter_pairs import (
    Document,
    any_filter,
    derived_pair,
    events,
    has_counterexample,
    random_pair,
)

from distributary.filters.covers import covers
from distributary.filters.example import example
from distributary.filters.filter import Filter
from distributary.filters.merging import merge

Maker: TypeAlias = Callable[[Random], tuple[list[Document], list[Document], tuple[str, ...]]]

RANDOMS = st.randoms(use_true_random=False)
MAKERS: st.SearchStrategy[Maker] = st.sampled_from([derived_pair, random_pair])
PAIRS_COUNT = 150
FOUND_SHARE_MIN = 0.9


@given(RANDOMS, MAKERS)
def test_what_is_said_to_be_covered_is_covered(random: Random, make: Maker) -> None:
    """No event aimed at the filters' own constants matches the narrower filter alone."""
    documents_a, documents_b, keys = make(random)
    a, b = Filter.parse(documents_a), Filter.parse(documents_b)
    if covers(a, b):
        assert not has_counterexample(a, b, keys)


@pytest.mark.parametrize("make", [derived_pair, random_pair])
def test_nine_of_ten_true_pairs_are_found(make: Maker) -> None:
    """Truth is by construction, or by trying out every combination of interesting values."""
    random = Random(20)
    true = found = 0
    for _ in range(PAIRS_COUNT):
        documents_a, documents_b, keys = make(random)
        a, b = Filter.parse(documents_a), Filter.parse(documents_b)
        if make is derived_pair or not has_counterexample(a, b, keys):
            true += 1
            found += covers(a, b)
    assert true >= PAIRS_COUNT // 4
    assert found >= FOUND_SHARE_MIN * true


@given(RANDOMS)
def test_a_filter_covers_itself_and_what_has_more_conditions(random: Random) -> None:
    keys = ("kind", "level", "/price")
    documents = [any_filter(random, keys) for _ in range(3)]
    narrow = Filter.parse(documents)
    assert covers(narrow, Filter.parse(list(documents)))
    assert covers(Filter.parse(documents[:2]), narrow)
    assert covers(Filter.parse([]), narrow)


@given(RANDOMS)
def test_an_example_matches_its_filter(random: Random) -> None:
    filter_ = Filter.parse([any_filter(random, ("kind", "/price")) for _ in range(2)])
    found = example(filter_)
    if found is not None:
        assert filter_.matches(found)


@given(RANDOMS)
def test_merged_filters_match_what_the_filters_match(random: Random) -> None:
    keys = ("kind", "/price")
    filters = [
        Filter.parse([any_filter(random, keys, depth=random.randint(0, 1)) for _ in range(2)])
        for _ in range(6)
    ]
    merged = merge(filters)
    assert len(merged) <= len(set(filters))
    for event in events(keys)[:: random.randint(31, 53)]:
        before = any(filter_.matches(event) for filter_ in filters)
        assert any(filter_.matches(event) for filter_ in merged) is before
    for filter_ in merged:
        assert Filter.parse(filter_.document()) == filter_


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 6), st.integers(0, 6)), min_size=1)
)
def test_merging_again_changes_nothing(rows: list[tuple[str, int, int]]) -> None:
    filters = [
        Filter.parse(
            [{"exact": {"kind": text}}, {"range": {"/price": {"min": min(x, y), "max": max(x, y)}}}]
        )
        for text, x, y in rows
    ]
    merged = merge(filters)
    assert merge(merged) == merged
    assert len(merged) <= len(set(filters))
