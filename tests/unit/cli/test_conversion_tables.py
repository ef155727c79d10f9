"""Tables of formats and conversions: figures that read well, and like things together."""

from __future__ import annotations

import pytest

from distributary.cli.conversion_tables import (
    conversion_groups,
    format_groups,
    number,
    number_range,
)


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        (0.0, "0"),
        (3e-32, "0"),
        (0.0000213456, "0.0000213"),
        (0.0123456, "0.0123"),
        (1.0, "1.00"),
        (12.345, "12.3"),
        (1234567.8, "1,234,568"),
    ],
)
def test_amounts_have_three_figures_and_no_exponent(amount: float, expected: str) -> None:
    assert number(amount) == expected


def test_amounts_that_look_alike_are_one() -> None:
    assert number_range([]) == "-"
    assert number_range([0.5, 0.50001]) == "0.500"
    assert number_range([0.5, 0.1, 2.0]) == "0.100 - 2.00"


def test_videos_of_one_step_share_a_line_and_the_widest_comes_first() -> None:
    names = ["image/png;width=640", "image/png;width=1280", "video/mp4;width=320", "audio/wav"]
    assert format_groups([*names, "video/x-flv;width=320"], every=False) == {
        "audio/wav": ["audio/wav"],
        "image/png;width=1280": ["image/png;width=1280"],
        "image/png;width=640": ["image/png;width=640"],
        "video/*;width=320": ["video/mp4;width=320", "video/x-flv;width=320"],
    }
    assert list(format_groups(names, every=True)) == [names[3], names[1], names[0], names[2]]


def test_conversions_into_one_type_share_a_line() -> None:
    pairs = [
        ("image/png;width=640", "image/jpeg;width=640"),
        ("image/webp;width=640", "image/jpeg;width=320"),
        ("application/pdf", "image/jpeg;width=640"),
    ]
    assert conversion_groups(pairs, every=False) == {
        ("application/pdf", "image/jpeg"): [pairs[2]],
        ("image/*", "image/jpeg"): pairs[:2],
    }
    assert list(conversion_groups(pairs, every=True)) == [pairs[2], pairs[0], pairs[1]]
