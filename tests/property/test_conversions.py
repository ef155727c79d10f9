"""The cheapest conversions at one node against trying every way to convert."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.conversions import minimum_conversion_cost
from tests.strategies import conversion_costs, some_formats

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.errors import BadInput
from distributary.placement._conversion_kernels import steiner_by_formats, steiner_by_terminals
from distributary.placement.chains import cheapest_chains
from distributary.placement.conversions import ConversionPlanner
from distributary.placement.plan import NOT_MADE

Question = tuple[FloatArray, BoolArray, BoolArray]


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """Draw conversions, formats in hand, and formats needed that can be made."""
    direct = draw(st.integers(1, 5).flatmap(lambda count: conversion_costs(formats=count)))
    have = draw(some_formats(np.ones(len(direct), dtype=np.bool_), size_min=1))
    need = draw(some_formats(cheapest_chains(direct).makeable_from(have)))
    return direct, have, need


def made_in_order(made_from: IntArray, direct: FloatArray, have: BoolArray) -> BoolArray:
    """Return what is available after running the conversions, each at most once."""
    available = have.copy()
    for _ in range(len(have)):
        for k in np.flatnonzero(made_from != NOT_MADE).tolist():
            if available[int(made_from[k])] and np.isfinite(direct[int(made_from[k]), k]):
                available[k] = True
    return available


@settings(max_examples=80, deadline=None)
@given(question=questions())
def test_conversions_make_what_is_needed_at_the_least_cost(question: Question) -> None:
    direct, have, need = question
    made_from = ConversionPlanner(direct).conversions(have, need)
    available = made_in_order(made_from, direct, have)
    assert available[need].all()
    assert available[made_from != NOT_MADE].all()
    assert not (made_from != NOT_MADE)[have].any()
    found = ConversionPlanner(direct).cost(have, need)
    assert found.exact
    assert found.cost == pytest.approx(minimum_conversion_cost(direct, have, need))


@settings(max_examples=60, deadline=None)
@given(question=questions())
def test_both_dynamic_programs_find_the_same_cost(question: Question) -> None:
    direct, have, need = question
    missing = np.flatnonzero(need & ~have)
    others = np.flatnonzero(~have)
    expected = minimum_conversion_cost(direct, have, need)
    if len(missing) == 0:
        assert expected == 0.0
        return
    chain = cheapest_chains(direct).costs
    best, _, _ = steiner_by_terminals(
        chain, np.flatnonzero(have), np.zeros(int(have.sum())), missing
    )
    assert best[-1, -1] == pytest.approx(expected)
    needed = sum(1 << others.tolist().index(k) for k in missing.tolist())
    total, _ = steiner_by_formats(
        direct[np.ix_(have, others)].min(axis=0),
        np.ascontiguousarray(direct[np.ix_(others, others)]),
        needed,
    )
    assert total == pytest.approx(expected)


@settings(max_examples=40, deadline=None)
@given(question=questions())
def test_beyond_the_budget_the_approximation_is_valid_and_says_so(question: Question) -> None:
    direct, have, need = question
    conversion_planner = ConversionPlanner(direct, steps_max=0.0)
    found = conversion_planner.cost(have, need)
    made_from = conversion_planner.conversions(have, need)
    assert made_in_order(made_from, direct, have)[need].all()
    assert found.exact == (not (need & ~have).any())
    assert found.cost >= minimum_conversion_cost(direct, have, need) * (1.0 - 1e-12)


def test_many_formats_and_many_wishes_are_approximated_quickly() -> None:
    rng = np.random.default_rng(7)
    direct = rng.uniform(1.0, 9.0, (120, 120))
    np.fill_diagonal(direct, np.inf)
    have = np.arange(120) == 0
    found = ConversionPlanner(direct).cost(have, np.arange(120) >= 60)
    assert not found.exact
    assert np.isfinite(found.cost)


def test_a_format_that_cannot_be_made_is_refused() -> None:
    direct = np.full((2, 2), np.inf)
    with pytest.raises(BadInput, match="do not lead"):
        ConversionPlanner(direct).conversions(np.array([True, False]), np.array([False, True]))
