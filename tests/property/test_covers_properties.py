"""`covers` never lies and seldom misses."""

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
    has_counterexample,
    random_pair,
)

from distributary.filters.covers import covers
from distributary.filters.filter import Filter

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
