"""Which home is best for a client, against trying every broker."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distributary.broker.core import Transitions
from distributary.broker.migration.arrivals import ARRIVING, Arriving, Coming
from distributary.broker.migration.departures import LEAVING, Going, Leaving
from distributary.broker.migration.migration import Choice, Summary, best_home, total, traffic
from distributary.wiring.cost import cost
from distributary.wiring.problem import WiringProblem

CELLS = 4
RATES = st.dictionaries(st.integers(0, CELLS - 1), st.integers(1, 20).map(float), max_size=3)
INTERESTS = st.frozensets(st.integers(0, CELLS - 1), max_size=3)


@st.composite
def situations(draw: st.DrawFn) -> tuple[Summary, str, dict[str, Summary]]:
    """A client, its home and everybody else, with prices that both ends agree on."""
    brokers = [f"b{k}" for k in range(draw(st.integers(2, 4)))]
    between = {
        frozenset((a, b)): float(draw(st.integers(1, 9))) for a in brokers for b in brokers if a < b
    }
    crowds = {
        a: Summary(
            draw(RATES),
            draw(INTERESTS),
            {b: between[frozenset((a, b))] for b in brokers if b != a},
        )
        for a in brokers
    }
    prices = {b: float(draw(st.integers(0, 9))) for b in brokers}
    client = Summary(draw(RATES), draw(INTERESTS), prices)
    return client, draw(st.sampled_from(brokers)), crowds


def totals(client: Summary, crowds: dict[str, Summary]) -> dict[str, float]:
    """What everything costs with the client at each broker."""
    brokers = sorted(crowds)
    # The client last, so that nothing hangs on the order in which the code puts them.
    parties = [*(crowds[b] for b in brokers), client]
    publishes = np.array([[p.publishes.get(c, 0.0) for c in range(CELLS)] for p in parties])
    subscribes = np.array([[c in p.interests for c in range(CELLS)] for p in parties])
    access = np.zeros((len(parties), len(brokers)))
    access[-1] = [client.prices[b] for b in brokers]
    core = np.array([[0.0 if a == b else crowds[a].prices[b] for b in brokers] for a in brokers])
    problem = WiringProblem.in_order(
        users=[*(f"crowd {b}" for b in brokers), "zz"],
        brokers=brokers,
        publishes=publishes,
        subscribes=subscribes,
        access_prices=access,
        core_prices=core,
    )
    fixed = list(range(len(brokers)))
    return {b: cost(problem, np.array([*fixed, at])).total for at, b in enumerate(brokers)}


@settings(max_examples=80, deadline=None)
@given(situations())
def test_no_broker_is_cheaper_than_the_one_chosen(
    situation: tuple[Summary, str, dict[str, Summary]],
) -> None:
    client, home, crowds = situation
    every = totals(client, crowds)
    choice = best_home(client, home, crowds, crowds)
    assert every[choice.home] == pytest.approx(min(every.values()))
    if every[home] == pytest.approx(min(every.values()), rel=1e-12):
        assert choice == Choice(home, 0.0)
    idle = Summary({}, frozenset(), client.prices)
    own = every[home] - totals(idle, crowds)[home]
    saved = every[home] - every[choice.home]
    assert choice.saving == pytest.approx(saved / own if own > 0.0 else 0.0)
    assert 0.0 <= choice.saving <= 1.0 + 1e-12


@settings(max_examples=30, deadline=None)
@given(situations())
def test_a_client_that_has_come_to_the_best_home_stays_there(
    situation: tuple[Summary, str, dict[str, Summary]],
) -> None:
    client, home, crowds = situation
    best = best_home(client, home, crowds, crowds).home
    assert best_home(client, best, crowds, crowds) == Choice(best, 0.0)


CROWDS = {
    "a": Summary({}, frozenset(), {"b": 1.0}),
    "b": Summary({1: 5.0}, frozenset(), {"a": 1.0}),
}
CLIENT = Summary({}, frozenset({1}), {"a": 9.0, "b": 1.0})


def test_a_client_moves_to_what_it_wants() -> None:
    choice = best_home(CLIENT, "a", CROWDS, ["b"])
    assert choice.home == "b"
    # 5 a second, each for 9 + 1 here and for 1 there.
    assert choice.saving == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("client", "candidates"),
    [
        (Summary({}, frozenset(), CLIENT.prices), ["b"]),
        (Summary({}, frozenset({2}), CLIENT.prices), ["b"]),
        (CLIENT, []),
        (CLIENT, ["c"]),
        (replace(CLIENT, prices={"a": 9.0}), ["b"]),
        (replace(CLIENT, prices={"b": 1.0}), ["b"]),
    ],
    ids=["idle", "unwritten", "nowhere", "unheard of", "price unknown", "own price unknown"],
)
def test_with_nothing_to_gain_or_to_tell_a_client_stays(
    client: Summary, candidates: list[str]
) -> None:
    assert best_home(client, "a", CROWDS, candidates) == Choice("a", 0.0)


@settings(max_examples=80, deadline=None)
@given(situations())
def test_the_traffic_of_a_client_is_what_it_publishes_and_what_it_wants_of_others(
    situation: tuple[Summary, str, dict[str, Summary]],
) -> None:
    client, _, crowds = situation
    sent = sum(client.publishes.values())
    taken = sum(
        rate
        for crowd in crowds.values()
        for cell, rate in crowd.publishes.items()
        if cell in client.interests
    )
    published = total([*crowds.values(), client])
    assert traffic(client, published) == pytest.approx(sent + taken)
    assert published == {
        c: sum(p.publishes.get(c, 0.0) for p in (*crowds.values(), client)) for c in published
    }


@pytest.mark.parametrize(
    ("table", "ends"),
    [
        (LEAVING, {Leaving.STAYING, Leaving.FORGOTTEN}),
        (ARRIVING, {Arriving.SETTLED, Arriving.FORGOTTEN}),
    ],
    ids=["leaving", "arriving"],
)
def test_every_state_can_be_reached_and_leads_to_an_end(
    table: Transitions[Any, Any], ends: set[Enum]
) -> None:
    steps = list(table)
    states = {state for state, _, _ in steps} | {following for _, _, following in steps}
    reached = {table.initial}
    ending = set(ends)
    for _ in states:
        reached |= {following for state, _, following in steps if state in reached}
        ending |= {state for state, _, following in steps if following in ending}
    assert reached == states == {*type(ends.copy().pop())}
    assert ending == states
    assert {state for state, _, _ in steps}.isdisjoint(ends)


def test_whatever_waits_for_another_broker_goes_on_when_that_is_lost() -> None:
    for leaving in set(Leaving) - {Leaving.STAYING, Leaving.FORGOTTEN}:
        assert LEAVING.step(leaving, Going.TARGET_LOST) in (Leaving.STAYING, Leaving.FORGOTTEN)
    for arriving in set(Arriving) - {Arriving.SETTLED, Arriving.FORGOTTEN}:
        assert ARRIVING.step(arriving, Coming.HOME_LOST) in (Arriving.SETTLED, Arriving.FORGOTTEN)
