"""Trees for content, plan parts, and what a broker makes of a plan that is not true."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.content_worlds import JPEG, MAP_GRAPH, PDF, SPEECH, TEXT
from tests.strategies import placement_problems

from distributary.broker.dissemination.messages import Item, Portion
from distributary.broker.encoding import decode, encode
from distributary.broker.links.messages import Step
from distributary.broker.plan_part import NOTHING_BEFORE, RELAY, Grant, Home, PlanPart, Route
from distributary.broker.planning import (
    Formats,
    around,
    longest_work,
    plan_tree,
    reversed_route,
    tree_along,
)
from distributary.broker.relays import other_hops, refined
from distributary.broker.settings import ContentSettings
from distributary.content.calibrated_graph import graph_for
from distributary.placement import PlacementProblem, check, cost, place
from distributary.topology import Overlay

GRAPH = graph_for(MAP_GRAPH, 1_000_000)
FORMATS = Formats(GRAPH, GRAPH, GRAPH.names.index(PDF), universal=False)
SETTINGS = ContentSettings()


def parents_of(root: str, routes: dict[str, Route]) -> dict[str, str | None]:
    tree = tree_along(root, 1.0, routes)
    return {
        name: None if parent < 0 else tree.names[parent]
        for name, parent in zip(tree.names, tree.parents.tolist(), strict=True)
    }


def wanted(**names: str) -> dict[str, tuple[int, ...]]:
    return {home: (GRAPH.names.index(name),) for home, name in names.items()}


def test_the_way_back_is_a_registration_s_in_reverse_with_the_costs_of_its_links() -> None:
    path = (Step("home", 0.0, 1.5), Step("hop", 2.0, 1.25), Step("root", 3.0, 1.0))
    assert reversed_route(path) == (("hop", 3.0, 1.25), ("home", 2.0, 1.5))
    assert reversed_route((Step("root", 0.0, 1.0),)) == ()


def test_a_way_around_brokers_that_are_away_costs_no_less_than_its_dearest_link() -> None:
    route = (("a", 1.0, 1.0), ("b", 5.0, 1.0), ("c", 2.0, 1.0))
    assert around(route, {"b"}) == (("a", 1.0, 1.0), ("c", 5.0, 1.0))
    assert around(route, {"a", "b"}) == (("c", 5.0, 1.0),)
    assert around(route, set()) == route


def test_ways_that_contradict_each_other_still_make_a_tree() -> None:
    routes: dict[str, Route] = {
        "x": (("a", 1.0, 1.0), ("b", 1.0, 1.0), ("x", 1.0, 1.0)),
        "y": (("b", 1.0, 1.0), ("a", 1.0, 1.0), ("y", 1.0, 1.0)),
        "z": (("root", 1.0, 1.0), ("z", 1.0, 1.0)),
    }
    assert parents_of("root", routes) == {
        "root": None,
        "a": "root",
        "b": "a",
        "x": "b",
        "y": "a",
        "z": "root",
    }


@given(st.integers(0, 50))
@settings(max_examples=20)
def test_a_tree_discovered_is_the_union_of_routes(seed: int) -> None:
    """The property: ways that probes find add up to what `RoutingTables.tree_of` says."""
    tables = Overlay.in_unit_square(40, np.random.default_rng(seed)).tables
    root, *homes = tables.identifiers[:12]
    routes = {
        home: tuple((step, 1.0, 1.0) for step in tables.route(start=root, end=home)[1:])
        for home in homes
    }
    assert parents_of(root, routes) == tables.tree_of(root, homes)


def every(part: PlanPart) -> list[PlanPart]:
    return [part] + [below for child in part.children() for below in every(child)]


def homes_of(problem: PlacementProblem) -> dict[str, Home]:
    """Homes with a registration for each format that they want, and one that gets none."""
    names = problem.graph.names
    return {
        broker: Home(
            (1, v, 1),
            (
                *(Grant(f"{broker} {k}", names[k]) for k in np.flatnonzero(problem.wants[v])),
                Grant(broker, None, "there is none"),
            ),
        )
        for v, broker in enumerate(problem.tree.names)
        if problem.wants[v].any()
    }


def homed(*wants: int) -> Home:
    """A home with a registration for each format; with one that gets none, if there is none."""
    grants = tuple(Grant(f"s{k}", FORMATS.graph.names[k]) for k in wants)
    return Home(NOTHING_BEFORE, grants or (Grant("s", None, "there is none"),))


@given(placement_problems())
def test_a_plan_part_says_what_the_plan_does(problem: PlacementProblem) -> None:
    """The property: nothing is lost on the way to parts and back, on wires neither."""
    plan = place(problem).plan
    homes = homes_of(problem)
    part = PlanPart.of(problem, plan, homes)
    item = Item("/s", "1", 3, 4, 5, "home", 6, "{}", PDF, 7, inline=False)
    portion = Portion(item, "root", 1, PDF, part, (None,) * len(part.first.receives))
    assert decode(encode(portion)) == portion
    assert part.homes() == homes
    again = part.problem(alpha=problem.alpha, beta=problem.beta)
    check(again, part.plan())
    assert cost(again, part.plan()).total == pytest.approx(cost(problem, plan).total)
    for name, route in part.routes().items():
        node = problem.tree.names.index(name)
        for broker, link_cost, node_cost in reversed(route):
            assert problem.tree.names[node] == broker
            assert problem.tree.link_costs[node] == link_cost
            assert problem.tree.node_costs[node] == node_cost
            node = int(problem.tree.parents[node])
        assert node == 0


@given(placement_problems())
def test_every_part_of_a_plan_is_a_plan_of_its_own(problem: PlacementProblem) -> None:
    """The property: whoever holds what a part receives can carry it out."""
    part = PlanPart.of(problem, place(problem).plan, homes_of(problem))
    parts = every(part)
    assert sorted(below.first.broker for below in parts) == sorted(problem.tree.names)
    for below in parts:
        if below.first.receives:
            check(below.problem(), below.plan())


def planned(
    routes: dict[str, Route],
    wants: dict[str, tuple[int, ...]],
    waits_s: Mapping[str, float] | None = None,
) -> PlanPart:
    return plan_tree(
        FORMATS,
        tree_along("root", 1.0, routes),
        held=(FORMATS.held,),
        homes={home: homed(*wants.get(home, ())) for home in routes},
        waits_s=waits_s or {},
        settings=SETTINGS,
    ).part


ROUTES: dict[str, Route] = {
    "x": (("a", 1.0, 1.0), ("x", 1.0, 2.0)),
    "y": (("a", 1.0, 1.0), ("y", 1.0, 1.0)),
    "z": (("b", 1.0, 1.0), ("z", 1.0, 1.0)),
}
WANTS = wanted(x=SPEECH, y=JPEG, z=TEXT)


def test_a_plan_is_followed_where_the_next_hops_are_its_children() -> None:
    part = planned(ROUTES, WANTS)
    assert other_hops(part, {"x": "a", "y": "a", "z": "b"}.get) == {}


def test_a_broker_with_other_next_hops_plans_its_subtree_anew() -> None:
    part = planned(ROUTES, WANTS)
    other = other_hops(part, {"x": "c", "y": "a", "z": "z"}.get)
    assert other == {"x": "c", "z": "z"}
    again = refined(
        part,
        other,
        link_cost_to={"c": 4.0, "z": 5.0}.__getitem__,
        own_cost=1.0,
        own_wait_s=0.0,
        settings=SETTINGS,
    )
    check(again.problem, again.plan)
    parents = {child.first.broker: set(child.homes()) for child in again.part.children()}
    assert parents == {"a": {"y"}, "c": {"x"}, "z": {"z"}}
    nodes = {node.broker: node for node in again.part.nodes}
    assert nodes["c"].link_cost == 4.0
    assert nodes["c"].after == RELAY
    assert nodes["x"].node_cost == 2.0
    assert again.part.homes()["x"] == homed(*WANTS["x"])
    formats = again.part.formats
    assert [formats[k] for k in nodes["x"].wants] == [SPEECH]


def test_a_plan_goes_around_work_that_only_its_maker_and_its_relay_know_of() -> None:
    """What a root knows of others travels with the plan, and a relay knows of itself."""
    waits_s = {"a": 30.0, "x": 4.0}
    part = planned(ROUTES, WANTS, waits_s)
    assert {node.broker: node.wait_s for node in part.nodes if node.wait_s} == waits_s
    hurried = replace(SETTINGS, delay_weight=100.0)
    again = refined(
        part,
        {"z": "z"},
        link_cost_to=lambda _: 1.0,
        own_cost=1.0,
        own_wait_s=60.0,
        settings=hurried,
    )
    waits = {node.broker: node.wait_s for node in again.part.nodes if node.wait_s}
    assert waits == {**waits_s, "root": 60.0}
    made_at = {node.broker for node in again.part.nodes if node.made}
    assert made_at == {"x", "y", "z"}, "whoever waits for others waits the longest"


def test_a_home_that_cannot_be_reached_is_left_out_of_a_new_plan() -> None:
    part = planned(ROUTES, WANTS)
    again = refined(
        part,
        {"x": None},
        link_cost_to=lambda _: 1.0,
        own_cost=1.0,
        own_wait_s=0.0,
        settings=SETTINGS,
    )
    assert set(again.part.homes()) == {"y", "z"}


def test_a_home_that_gets_nothing_but_the_event_is_part_of_the_plan() -> None:
    part = planned(ROUTES, {})
    assert set(part.homes()) == {"x", "y", "z"}
    assert all(not child.first.receives for child in part.children())
    below = part.children()[0]
    again = refined(
        below,
        {"x": "x"},
        link_cost_to=lambda _: 1.0,
        own_cost=1.0,
        own_wait_s=0.0,
        settings=SETTINGS,
    )
    assert set(again.part.homes()) == {"x", "y"}


def test_work_adds_up_along_a_way_and_not_across_ways() -> None:
    dear_links: dict[str, Route] = {
        "x": (("x", 100.0, 2.0),),
        "y": (("y", 100.0, 1.0),),
    }
    planning = plan_tree(
        FORMATS,
        tree_along("root", 1.0, dear_links),
        held=(FORMATS.held,),
        homes={home: homed(*wants) for home, wants in wanted(x=SPEECH, y=SPEECH).items()},
        waits_s={},
        settings=SETTINGS,
    )
    costs = {
        (conversion["from"], conversion["to"]): sum(conversion["cost"].values())
        for conversion in json.loads(json.dumps(MAP_GRAPH))["conversions"]
    }
    # Text is made at the root and speech where it is wanted, twice as slowly at `x`.
    expected = costs[PDF, TEXT] + 2.0 * costs[TEXT, SPEECH]
    assert longest_work(planning) == pytest.approx(expected)
    waiting = {"root": 5.0, "x": 1.0, "elsewhere": 9.0}
    assert longest_work(planning, waiting) == pytest.approx(expected + 6.0)
