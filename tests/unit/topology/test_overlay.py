from __future__ import annotations

import numpy as np
import pytest

from distributary.errors import BadInput
from distributary.topology import Overlay, key_identifier


def test_delays_are_distances_in_the_plane() -> None:
    overlay = Overlay.at(np.array([[0.0, 0.0], [0.3, 0.4]]), ["0a", "0b"])
    assert overlay.delays == pytest.approx(np.array([[0.0, 0.5], [0.5, 0.0]]))


def test_the_same_seed_gives_the_same_overlay() -> None:
    one, same, other = (
        Overlay.in_unit_square(30, np.random.default_rng(seed)) for seed in (4, 4, 5)
    )
    assert one.identifiers == same.identifiers
    assert np.array_equal(one.delays, same.delays)
    assert np.array_equal(one.tables.entries, same.tables.entries)
    assert one.identifiers != other.identifiers


def test_brokers_lie_in_the_unit_square() -> None:
    overlay = Overlay.in_unit_square(200, np.random.default_rng(0))
    assert overlay.coordinates is not None
    assert overlay.broker_count == 200
    assert overlay.coordinates.min() >= 0.0
    assert overlay.coordinates.max() < 1.0
    assert overlay.coordinates.std() > 0.2


def test_a_thousand_brokers_agree_on_the_roots_of_keys() -> None:
    overlay = Overlay.in_unit_square(1024, np.random.default_rng(3))
    starts = overlay.identifiers[::64]
    for cell in range(20):
        key = key_identifier(f"cell {cell}")
        assert len({overlay.tables.root_of_key(key, start=start) for start in starts}) == 1


def test_an_overlay_whose_identifiers_repeat_has_no_tables() -> None:
    overlay = Overlay.at(np.zeros((2, 2)), ["0a", "0a"])
    with pytest.raises(BadInput, match="'0a' is given twice"):
        _ = overlay.tables


def test_measured_delays_do_without_coordinates() -> None:
    overlay = Overlay(("0a", "1b", "1c"), np.array([[0.0, 9.0, 5.0], [9.0, 0, 1], [5.0, 1, 0]]))
    assert overlay.coordinates is None
    assert overlay.tables.route(start="0a", end="1b") == ("0a", "1c", "1b")
