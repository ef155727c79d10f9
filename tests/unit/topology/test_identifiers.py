from __future__ import annotations

import numpy as np
import pytest

from distributary.errors import BadInput
from distributary.topology import random_identifiers, shared_prefix_length
from distributary.topology.identifiers import digits_of


@pytest.mark.parametrize("digits", [0, 65])
def test_an_impossible_number_of_digits_is_refused(digits: int) -> None:
    with pytest.raises(BadInput, match="from 1 to 64"):
        random_identifiers(1, np.random.default_rng(0), digits=digits)


def test_random_identifiers_are_distinct_even_when_they_use_up_the_space() -> None:
    identifiers = random_identifiers(256, np.random.default_rng(7), digits=2)
    assert sorted(identifiers) == [f"{value:02x}" for value in range(256)]


def test_random_identifiers_repeat_with_the_seed_and_change_with_it() -> None:
    first = random_identifiers(5, np.random.default_rng(1))
    assert first == random_identifiers(5, np.random.default_rng(1))
    assert first != random_identifiers(5, np.random.default_rng(2))
    assert {len(identifier) for identifier in first} == {8}


@pytest.mark.parametrize(("count", "digits"), [(17, 1), (-1, 8)])
def test_an_impossible_number_of_identifiers_is_refused(count: int, digits: int) -> None:
    with pytest.raises(BadInput, match="count"):
        random_identifiers(count, np.random.default_rng(0), digits=digits)


@pytest.mark.parametrize(
    ("one", "other", "length"),
    [("1234", "1299", 2), ("1234", "1234", 4), ("1234", "0234", 0), ("12", "1234", 2)],
)
def test_the_shared_prefix_ends_where_identifiers_first_differ(
    one: str, other: str, length: int
) -> None:
    assert shared_prefix_length(one, other) == length
    assert shared_prefix_length(other, one) == length


def test_digits_are_read_from_left_to_right() -> None:
    assert digits_of(["0f", "a1"]).tolist() == [[0, 15], [10, 1]]


@pytest.mark.parametrize("identifier", ["0F", "0g", "123", ""])
def test_what_is_no_identifier_is_refused_by_name(identifier: str) -> None:
    with pytest.raises(BadInput, match=f"'{identifier}'.*2 lower-case"):
        digits_of(["00", identifier])
