"""Whatever the problem, the rules make plans that hold, and never better ones than there are."""

# ruff: noqa: D103  (the names of tests are sentences)

from __future__ import annotations

import numpy as np
import pytest
from distributary_simple_rules import nearest_parent, on_demand, two_homes

from distributary import fidelity, placement, wiring
from distributary.errors import InfeasiblePlan
from distributary.fidelity.generate import generate_problem as stream
from distributary.placement.generate import generate_problem as publication
from distributary.wiring.generate import generate_problem as users


@pytest.mark.parametrize("seed", range(5))
def test_conversions_are_placed_no_worse_than_all_in_the_root(seed: int) -> None:
    problem = publication("map", seed=seed, brokers=10)
    plan = on_demand(problem, seed=seed)
    placement.check(problem, plan)
    root = placement.place(problem, method="all-in-root").total_cost
    best = placement.place(problem, method="exact").total_cost
    assert best * (1 - 1e-9) <= placement.cost(problem, plan).total <= root * (1 + 1e-9)


@pytest.mark.parametrize("approach", fidelity.APPROACHES)
@pytest.mark.parametrize("fanout", [None, 1, 3])
def test_nobody_has_more_children_than_there_is_room_for(approach: str, fanout: int | None) -> None:
    problem = stream(seed=3, servers=12, objects=3, routers=40)
    forest = nearest_parent(problem, approach=approach, fanout=fanout)
    fidelity.check(problem, forest)
    for parents in forest.parents:
        assert np.bincount(parents[parents >= 0]).max() <= (fanout or 4)


def test_everybody_is_at_one_of_two_brokers() -> None:
    problem = users(seed=3, users=20, brokers=5, capacity_factor=None)
    broker_of = two_homes(problem, core="mst")
    wiring.check(problem, broker_of)
    assert len(np.unique(broker_of)) <= 2
    best = wiring.wire(problem).lower_bound
    assert wiring.cost(problem, broker_of).total >= best * (1 - 1e-9)


def test_where_no_two_have_room_there_is_no_wiring() -> None:
    problem = users(seed=3, users=20, brokers=5, capacity_factor=1.5)
    with pytest.raises(InfeasiblePlan, match="no two brokers"):
        two_homes(problem, core="mst")
