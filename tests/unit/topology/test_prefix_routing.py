from __future__ import annotations

import numpy as np
import pytest
from tests.reference import prefix_routing as reference
from tests.reference.prefix_routing import named_entries

from distributary.arrays import FloatArray
from distributary.errors import BadInput
from distributary.topology import RoutingTables

BROKERS = ("10", "12", "1f", "50", "5a", "c3")


def on_a_line(positions: list[float]) -> FloatArray:
    place = np.array(positions)
    delays: FloatArray = np.abs(place[:, None] - place[None, :])
    return delays


@pytest.fixture
def tables() -> RoutingTables:
    """Six brokers on a line; 5a is closer to the ones than 50 is."""
    return RoutingTables.build(BROKERS, on_a_line([0, 1, 2, 9, 4, 20]))


def test_a_key_named_like_a_broker_has_that_broker_as_root(tables: RoutingTables) -> None:
    for broker in BROKERS:
        assert tables.root_of_key(broker) == broker


@pytest.mark.parametrize(
    ("key", "root"),
    [
        ("11", "12"),  # no 11: the next digit that somebody has is 2
        ("1a", "1f"),
        ("55", "5a"),
        ("5b", "50"),  # past the last digit the search goes round
        ("2a", "5a"),  # no 2.: 5 is next, and then the key's own second digit counts
        ("f2", "12"),  # round from f to 1 at the first digit
        ("d0", "10"),
    ],
)
def test_a_key_without_a_broker_goes_to_its_surrogate(
    tables: RoutingTables, key: str, root: str
) -> None:
    assert tables.root_of_key(key) == root
    for start in BROKERS:
        assert reference.walk(named_entries(tables), start, key)[-1] == root


def test_a_route_goes_over_the_closest_broker_with_the_first_digit(tables: RoutingTables) -> None:
    assert tables.route(start="10", end="50") == ("10", "5a", "50")
    assert tables.route(start="10", end="5a") == ("10", "5a")
    assert tables.route(start="c3", end="1f") == ("c3", "1f")
    assert tables.route(start="c3", end="10") == ("c3", "1f", "10")


def test_a_route_to_oneself_has_no_hop(tables: RoutingTables) -> None:
    assert tables.route(start="5a", end="5a") == ("5a",)


def test_of_equally_close_neighbours_the_smaller_identifier_is_taken() -> None:
    positions = [0.0, 3.0, 3.0]
    for brokers in (("00", "1a", "17"), ("00", "17", "1a")):
        tables = RoutingTables.build(brokers, on_a_line(positions))
        assert tables.tree_of("00", ["1a", "17"]) == {"00": None, "17": "00", "1a": "17"}


def test_a_broker_at_no_distance_does_not_displace_the_owner() -> None:
    tables = RoutingTables.build(("11", "12"), np.zeros((2, 2)))
    assert reference.walk(named_entries(tables), "12", "12") == ("12",)
    assert tables.route(start="12", end="11") == ("12", "11")


def test_the_tree_of_a_set_has_the_relays_and_one_parent_each(tables: RoutingTables) -> None:
    assert tables.tree_of("10", ["50", "c3", "1f"]) == {
        "10": None,
        "1f": "10",
        "50": "5a",
        "5a": "10",
        "c3": "10",
    }


def test_the_tree_of_nobody_is_the_root_alone(tables: RoutingTables) -> None:
    assert tables.tree_of("50", []) == {"50": None}


def test_a_broker_alone_is_the_root_of_everything() -> None:
    tables = RoutingTables.build(("10",), np.zeros((1, 1)))
    assert tables.root_of_key("ff") == "10"
    assert tables.tree_of("10", ["10"]) == {"10": None}


def test_unknown_brokers_and_malformed_keys_are_refused_by_name(tables: RoutingTables) -> None:
    with pytest.raises(BadInput, match="broker '77'"):
        tables.route(start="10", end="77")
    with pytest.raises(BadInput, match="broker '77'"):
        tables.tree_of("10", ["77"])
    with pytest.raises(BadInput, match="identifier '123'"):
        tables.root_of_key("123")
    with pytest.raises(BadInput, match="identifier 'XY'"):
        tables.root_of_key("XY")


@pytest.mark.parametrize("delay", [-1.0, np.inf, np.nan])
def test_delays_that_cannot_be_compared_are_refused(delay: float) -> None:
    delays = np.zeros((2, 2))
    delays[0, 1] = delay
    with pytest.raises(BadInput, match="delays: must be finite"):
        RoutingTables.build(("10", "20"), delays)


def test_an_overlay_needs_distinct_brokers_and_a_delay_for_every_pair() -> None:
    with pytest.raises(BadInput, match="'10' is given twice"):
        RoutingTables.build(("10", "20", "10"), np.zeros((3, 3)))
    with pytest.raises(BadInput, match=r"shape \(2, 3\) for 2 brokers"):
        RoutingTables.build(("10", "20"), np.zeros((2, 3)))
    with pytest.raises(BadInput, match="at least one broker"):
        RoutingTables.build((), np.zeros((0, 0)))
