"""Settings that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A first call compiles, so single examples have no deadline; a failure prints its replay.
# Examples are the same in every run, so that a change is to blame when one fails, unless the
# environment asks to look for others, as `make test-full` does.
settings.register_profile(
    "distributary",
    deadline=None,
    print_blob=True,
    derandomize="EXPLORE" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("distributary")

HERE = Path(__file__).parent
# In the order in which they run, after everything else: fast tests come first, and the one
# process that has Spark starts while the other still has much to do.
SLOW = (
    "unit/pipeline",
    "docs",
    "unit/test_benchmarks.py",
    "scenario",
    "unit/media",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put fast tests first, and mark those that everyday work can do without."""
    places = {item: _place(item.path) for item in items}
    items.sort(key=places.__getitem__)
    for item, place in places.items():
        if place:
            item.add_marker(pytest.mark.slow)


def _place(path: Path) -> int:
    """Return where in SLOW a test stands, from 1, or 0 for a fast one."""
    places = (place for place, slow in enumerate(SLOW, 1) if path.is_relative_to(HERE / slow))
    return next(places, 0)
