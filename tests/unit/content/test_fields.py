"""Records check what they are asked for, and say where it went wrong."""

from __future__ import annotations

import math

import pytest

from distributary.content.fields import NUMBER_MAX, NUMBER_MIN, Record, UnknownKeys, no_such_name
from distributary.errors import BadInput


@pytest.mark.parametrize("value", [0, 1, 2.5, NUMBER_MIN, NUMBER_MAX, 10**15])
def test_a_number_in_range_is_returned_as_a_float(value: float) -> None:
    number = Record({"x": value}).number("x")
    assert isinstance(number, float)
    assert number == value


def test_negative_zero_becomes_zero() -> None:
    assert math.copysign(1.0, Record({"x": -0.0}).number("x")) == 1.0


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (10**15 + 1, "must be at most 1e+15, not 1e+15"),
        (10**400, "must be at most 1e+15, not an integer of hundreds of digits"),
        (-(10**400), "must be at least 0, not an integer of hundreds of digits"),
        (math.inf, "must be at most 1e+15, not inf"),
        (math.nan, "must be a finite number, not nan"),
        (5e-324, "must be at least 1e-100, or 0, not 4.94066e-324"),
        ((1,), "must be a number, not tuple"),
    ],
)
def test_a_number_out_of_range_is_refused(value: object, problem: str) -> None:
    with pytest.raises(BadInput) as raised:
        Record({"x": value}, "tree", 3).number("x")
    assert raised.value.place == "tree[3].x"
    assert raised.value.problem == problem


@pytest.mark.parametrize("value", [0, -0.0, -1, math.nan, 1e-200])
def test_a_positive_number_is_above_zero(value: float) -> None:
    with pytest.raises(BadInput, match=r"^x: must be"):
        Record({"x": value}).number("x", positive=True)


def test_a_default_stands_in_for_a_missing_number_only() -> None:
    assert Record({}).number("x", 3.0) == 3.0
    with pytest.raises(BadInput, match=r"^x: must be a number, not null$"):
        Record({"x": None}).number("x", 3.0)


def test_null_is_told_from_a_missing_name() -> None:
    assert Record({"parent": None}).name_or_null("parent") is None
    assert Record({"parent": "N1"}).name_or_null("parent") == "N1"
    with pytest.raises(BadInput, match=r"^parent: is missing$"):
        Record({}).name_or_null("parent")


def test_a_name_outside_ascii_is_welcome() -> None:
    assert Record({"name": "Köln 🗺"}).name("name") == "Köln 🗺"


def test_a_list_has_a_limit() -> None:
    record = Record({"x": ["a", "b", "c"]})
    assert record.names("x", count_max=3) == ["a", "b", "c"]
    with pytest.raises(BadInput, match=r"^x: has 3 entries; at most 2 are read$"):
        record.names("x", count_max=2)


def test_a_record_inside_a_record_knows_its_place() -> None:
    [entry] = Record({"formats": [{"size": {"fixed": "much"}}]}).records("formats", count_max=9)
    with pytest.raises(BadInput, match=r"^formats\[0\]\.size\.fixed: must be a number"):
        entry.record("size").number("fixed")


def test_unknown_keys_are_counted_by_section() -> None:
    """A million entries with the same stray key make one warning, not a million."""
    unknown = UnknownKeys()
    unknown.note(Record({"tree": [], "note": 1}), {"tree"})
    for index in range(1200):
        unknown.note(Record({"node": 1, "colour": 2}, "tree", index + 5), {"node"})
    assert unknown.warnings() == (
        "note: is not a known key, and is ignored",
        "tree[5].colour: is not a known key, and is ignored (and 1,199 more like it)",
    )


def test_a_near_miss_gets_a_hint() -> None:
    assert no_such_name("x", "jpg", ["pdf", "jpeg"], "a format").hint == "did you mean 'jpeg'?"
    assert no_such_name("x", "zzz", ["pdf", "jpeg"], "a format").hint is None
