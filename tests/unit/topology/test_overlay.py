from __future__ import annotations

import hashlib

import numpy as np
import pytest
from tests.reference import prefix_routing as reference

from distributary.errors import BadInput
from distributary.topology import Overlay


def test_the_same_seed_gives_the_same_overlay() -> None:
    one, same, other = (
        Overlay.in_unit_square(30, np.random.default_rng(seed)) for seed in (4, 4, 5)
    )
    assert one.identifiers == same.identifiers
    assert np.array_equal(one.delays, same.delays)
    assert np.array_equal(one.tables.entries, same.tables.entries)
    assert one.identifiers != other.identifiers


def test_brokers_lie_in_the_unit_square() -> None:
    """Delays are distances there: the mean over all pairs is known, and the diagonal the most."""
    delays = Overlay.in_unit_square(200, np.random.default_rng(0)).delays
    assert delays.shape == (200, 200)
    assert np.array_equal(delays, delays.T)
    assert not delays.diagonal().any()
    assert 1.2 < delays.max() < np.sqrt(2.0)
    assert delays.mean() == pytest.approx(0.5214, rel=0.05)


def test_a_thousand_brokers_agree_on_the_roots_of_keys() -> None:
    overlay = Overlay.in_unit_square(1024, np.random.default_rng(3))
    named = reference.named_entries(overlay.tables)
    for cell in range(20):
        key = hashlib.sha256(f"cell {cell}".encode()).hexdigest()[:8]
        root = overlay.tables.root_of_key(key)
        for start in overlay.identifiers[::64]:
            assert reference.walk(named, start, key)[-1] == root


def test_an_overlay_whose_identifiers_repeat_has_no_tables() -> None:
    overlay = Overlay(("0a", "0a"), np.zeros((2, 2)))
    with pytest.raises(BadInput, match="'0a' is given twice"):
        _ = overlay.tables


def test_measured_delays_decide_the_routes() -> None:
    overlay = Overlay(("0a", "1b", "1c"), np.array([[0.0, 9.0, 5.0], [9.0, 0, 1], [5.0, 1, 0]]))
    assert overlay.tables.route(start="0a", end="1b") == ("0a", "1c", "1b")
