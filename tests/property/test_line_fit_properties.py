"""The line through measurements is the best of all that have no negative part."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from tests.reference.line_fit import relative_error, searched_error

from distributary.media.line_fit import fit_line

SIZES = st.floats(1e-6, 1e4)
AMOUNTS = st.one_of(st.just(0.0), st.floats(1e-6, 1e4))
POINTS = st.lists(st.tuples(SIZES, AMOUNTS), min_size=1, max_size=6)


@given(POINTS)
def test_no_line_found_by_search_misses_less(points: list[tuple[float, float]]) -> None:
    line = fit_line(points)
    error = relative_error(points, line.fixed, line.per_mb)
    if len({size for size, _ in points}) == 1:
        # Through points of one size every line may pass; ours starts at zero.
        assert line.fixed == 0.0
    assert error <= searched_error(points) * (1 + 1e-6) + 1e-9


@given(POINTS, st.floats(0.0, 1e9))
def test_what_a_line_says_is_never_negative(
    points: list[tuple[float, float]], megabytes: float
) -> None:
    line = fit_line(points)
    assert line.fixed >= 0.0
    assert line.per_mb >= 0.0
    assert math.isfinite(line.at(megabytes))
    assert any(amount > 0.0 for _, amount in points) == (line.at(1e-6) > 0.0)
