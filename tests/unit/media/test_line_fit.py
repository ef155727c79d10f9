"""Lines through measurements: a fixed part and a part per megabyte, neither negative."""

from __future__ import annotations

import pytest

from distributary.media.line_fit import Line, fit_line


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([(1.0, 3.0), (2.0, 5.0)], Line(1.0, 2.0)),
        ([(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)], Line(1.0, 2.0)),
        ([(1.0, 2.0), (3.0, 6.0)], Line(0.0, 2.0)),
        ([(1.0, 4.0), (2.0, 4.0), (9.0, 4.0)], Line(4.0, 0.0)),
    ],
)
def test_measurements_on_a_line_give_that_line(
    points: list[tuple[float, float]], expected: Line
) -> None:
    found = fit_line(points)
    assert found.fixed == pytest.approx(expected.fixed, abs=1e-12)
    assert found.per_mb == pytest.approx(expected.per_mb, abs=1e-12)


def test_amounts_that_fall_with_size_give_a_level_line() -> None:
    found = fit_line([(1.0, 2.0), (2.0, 1.0)])
    assert found.per_mb == 0.0
    assert 1.0 < found.fixed < 2.0


def test_a_line_that_would_cut_the_axis_below_zero_starts_at_zero() -> None:
    found = fit_line([(1.0, 1.0), (2.0, 4.0)])
    assert found.fixed == 0.0
    assert 1.0 < found.per_mb < 2.0


@pytest.mark.parametrize("points", [[(0.5, 2.0)], [(0.5, 2.0), (0.5, 2.0)]])
def test_samples_of_one_size_say_nothing_about_a_fixed_part(
    points: list[tuple[float, float]],
) -> None:
    assert fit_line(points) == Line(0.0, 4.0)


def test_small_content_counts_as_much_as_large() -> None:
    """A line that weighs all errors alike puts the smallest amount here at 0.78."""
    found = fit_line([(0.1, 1.0), (1.0, 1.5), (100.0, 50.0), (110.0, 65.0)])
    assert found.at(0.1) == pytest.approx(1.0, rel=0.02)
    assert found.at(110.0) == pytest.approx(65.0, rel=0.1)


def test_content_that_vanishes_in_a_format_gives_a_line_of_nothing() -> None:
    assert fit_line([(1.0, 0.0), (2.0, 0.0)]) == Line(0.0, 0.0)


def test_a_line_is_written_with_six_digits() -> None:
    assert Line(1 / 3, 200_000 / 3).document() == {"fixed": 0.333333, "per_mb": 66666.7}


def test_an_amount_is_the_fixed_part_and_what_the_megabytes_add() -> None:
    assert Line(0.5, 2.0).at(3.0) == 6.5
    assert Line(0.5, 2.0).at(0.0) == 0.5
