"""Pairs of filters and whether one covers the other."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from distributary.filters.covers import covers
from distributary.filters.filter import Filter
from distributary.filters.sql_built_ins import BUILT_INS
from distributary.filters.sql_functions import Function
from distributary.filters.sql_tree import ValueType


def exact(**entries: str) -> dict[str, Any]:
    return {"exact": entries}


def prefix(**entries: str) -> dict[str, Any]:
    return {"prefix": entries}


def suffix(**entries: str) -> dict[str, Any]:
    return {"suffix": entries}


def price(**bounds: float) -> dict[str, Any]:
    return {"range": {"/price": bounds}}


def level(**bounds: float) -> dict[str, Any]:
    return {"range": {"level": bounds}}


def either(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"any": list(parts)}


def no(part: dict[str, Any]) -> dict[str, Any]:
    return {"not": part}


def sql(text: str) -> dict[str, Any]:
    return {"sql": text}


COVERED = [
    ([prefix(x="a")], [exact(x="ab")]),
    ([prefix(x="a")], [prefix(x="ab"), suffix(y="q")]),
    ([suffix(x="b")], [suffix(x="ab")]),
    ([exact(x="a")], [exact(x="a", y="b")]),
    ([price(min=1)], [price(min=2, max=3)]),
    ([price(min=1)], [price(min_exclusive=1)]),
    ([either(price(min=1, max=2), price(min_exclusive=2))], [price(min=1.5, max=3)]),
    ([either(price(max=2), exact(x="a"), price(min=2))], [price(min=-9)]),
    ([level(min=5, max=5)], [exact(level="5.0")]),
    ([no(exact(x="a"))], [prefix(x="b")]),
    ([no(prefix(x="a"))], [either(exact(x="b"), exact(x="c"))]),
    ([no(level(min=2))], [level(max=1)]),
    ([no(price(min=2))], [exact(x="a"), {"exact": {"/price": "5"}}]),
    ([{"all": [prefix(x="a"), suffix(x="b")]}], [exact(x="ab")]),
    ([exact(x="z")], [prefix(x="a"), prefix(x="b")]),
    ([exact(x="z")], [prefix(x="a"), level(min=1), no(sql("EXISTS x"))]),
    ([exact(x="z")], [prefix(level="abc"), level(min=1)]),
    ([exact(x="z")], [exact(x="a"), no(prefix(x="a"))]),
    # The same in another dialect.
    ([sql("x = 'a'")], [exact(x="a")]),
    ([exact(x="a")], [sql("x = 'a' AND y > 3")]),
    ([sql("x LIKE 'a%'")], [prefix(x="ab")]),
    ([prefix(x="a")], [sql("x LIKE 'ab_%'")]),
    ([sql("x LIKE '%b%'")], [prefix(x="abc")]),
    ([sql("x LIKE 'a%ba'")], [prefix(x="ab"), suffix(x="ba")]),
    ([sql("x LIKE 'a%b'")], [{"all": [prefix(x="a"), suffix(x="b")]}]),
    ([sql("x LIKE 'a%b%'")], [sql("x LIKE 'a%bc%d'")]),
    ([sql("x IN ('a', 'b', 'c')")], [either(exact(x="a"), exact(x="b"))]),
    ([sql("x = 'a' OR x = 'b'")], [sql("x IN ('b', 'a')")]),
    ([sql("EXISTS x")], [level(min=1), suffix(x="a")]),
    # Integers, Booleans and casts.
    ([sql("level > 2")], [sql("x = 'a' AND level > 3")]),
    ([sql("level < 4")], [sql("level IN (1, 2, 3)")]),
    ([sql("level <= 4")], [sql("5 > level")]),
    ([sql("level != 4")], [sql("level > 4")]),
    ([sql("level = 3")], [sql("level > 2 AND level < 4")]),
    ([sql("level > -(3)")], [sql("level > 1 + 1")]),
    ([sql("x = TRUE")], [exact(x="true")]),
    ([sql("x = TRUE")], [sql("NOT (x = FALSE)")]),
    ([sql("x = TRUE OR x = FALSE")], [sql("x")]),
    # Errors: missing attributes, and what NOT makes of them.
    ([no(sql("x > 3"))], [sql("x <= 3")]),
    ([no(sql("x > 3"))], [no(sql("EXISTS x"))]),
    ([sql("x != 'a'")], [sql("x = 'b'")]),
    ([sql("x NOT IN ('a')")], [sql("x NOT IN ('a', 'b')")]),
    ([sql("x NOT LIKE 'a%'")], [exact(x="b")]),
    ([sql("level > 2 OR z = 'q'")], [sql("level > 3")]),
    ([sql("(x = 'a') XOR (y = 'b')")], [sql("x = 'a' AND y = 'c'")]),
    # Expressions that only equal themselves, and have to read their attributes.
    ([sql("x + 1 > y")], [sql("x + 1 > y AND z = 'a'")]),
    ([sql("EXISTS y")], [sql("x + 1 > y")]),
    ([sql("LOWER(x) = 'a'")], [exact(x="A")]),
    ([sql("TRUE")], [exact(x="A")]),
    ([exact(x="A")], [sql("1 = 2")]),
    ([exact(x="A")], [sql("data = 'a'")]),
    ([exact(x="A")], [sql("ABSENT() = 1")]),
    ([sql("EXISTS id")], [exact(x="A")]),
]

NOT_COVERED = [
    ([prefix(x="ab")], [prefix(x="a")]),
    ([exact(x="a")], [exact(y="a")]),
    ([price(min=1)], [level(min=1)]),
    ([price(min_exclusive=1)], [price(min=1)]),
    ([either(price(max=1), price(min_exclusive=1.5))], [price(min=0)]),
    # A text inside the data is no number, and "5" is not the only way to write 5.
    ([price(min=0)], [{"exact": {"/price": "5"}}]),
    ([exact(level="5")], [level(min=5, max=5)]),
    # "+4" and "007" are Integers in CESQL, and no numbers in JSON; "4.5" the other way round.
    ([level(min=3)], [sql("level > 3")]),
    ([sql("level > 2")], [level(min=3, max=5)]),
    ([exact(x="true")], [sql("x = TRUE")]),
    ([sql("x")], [exact(x="true")]),
    # An error on the left spoils what the right says.
    ([sql("z = 'q' OR level > 2")], [sql("level > 3")]),
    ([sql("x <= 3")], [no(sql("x > 3"))]),
    ([sql("x != 'a'")], [no(exact(x="a"))]),
    ([sql("NOT (x = 'a')")], [no(sql("x = 'a'"))]),
    ([sql("x LIKE 'a_%'")], [prefix(x="a")]),
    ([sql("x LIKE 'ab%ba'")], [prefix(x="ab"), suffix(x="ba")]),
    ([exact(type="a")], []),
]


@pytest.mark.parametrize(("a", "b"), COVERED)
def test_a_pair_that_covers_is_found(a: list[Any], b: list[Any]) -> None:
    assert covers(Filter.parse(a), Filter.parse(b))


@pytest.mark.parametrize(("a", "b"), NOT_COVERED)
def test_a_pair_that_does_not_cover_is_refused(a: list[Any], b: list[Any]) -> None:
    assert not covers(Filter.parse(a), Filter.parse(b))


def test_expressions_with_different_functions_are_not_the_same() -> None:
    """Two registries may mean different things by one name."""
    always = Function("ODD", (ValueType.INTEGER,), ValueType.BOOLEAN, lambda number: True)
    never = Function("ODD", (ValueType.INTEGER,), ValueType.BOOLEAN, lambda number: False)
    documents = [sql("ODD(level)")]
    a = Filter.parse(documents, functions=BUILT_INS.extended(always))
    b = Filter.parse(documents, functions=BUILT_INS.extended(never))
    assert covers(a, a)
    assert not covers(b, a)


def test_no_other_character_turns_into_a_letter_of_true_or_false() -> None:
    """The spellings that CESQL reads as Booleans are all tried out: there are 48."""
    letters = set("truefalse")
    others = (chr(code) for code in range(128, sys.maxunicode + 1))
    assert not any(letters & set(character.lower()) for character in others)


def test_a_search_that_grows_too_long_answers_no() -> None:
    """Sixty alternatives of two parts each would take longer than anybody waits."""
    clauses = [either(exact(**{f"x{i}": "a"}), exact(**{f"y{i}": "b"})) for i in range(60)]
    crossed = [either(exact(**{f"x{i}": "a"}), exact(**{f"y{i + 1}": "b"})) for i in range(59)]
    assert not covers(Filter.parse([either(*crossed)]), Filter.parse([no(c) for c in clauses]))
    assert not covers(Filter.parse([no({"all": crossed})]), Filter.parse(clauses))
    assert covers(Filter.parse(clauses[:30]), Filter.parse(clauses))


def test_long_chains_and_deep_brackets_are_survived() -> None:
    chain = " OR ".join(f"x{i % 7} = 'v{i}'" for i in range(400))
    assert covers(Filter.parse([sql(chain)]), Filter.parse([sql(chain), exact(y="a")]))
    deep = "NOT (" * 60 + "x = 'a' XOR y = 'b'" + ")" * 60
    assert covers(Filter.parse([sql(deep)]), Filter.parse([sql("x = 'a' AND y = 'c'")]))
    wide = [either(*(exact(x=f"v{i}") for i in range(256)))]
    assert covers(Filter.parse(wide), Filter.parse([sql("x IN ('v17', 'v200')")]))
    pattern = "%a" * 4000
    assert not covers(
        Filter.parse([sql(f"x LIKE '{pattern}%b'")]), Filter.parse([sql(f"x LIKE '{pattern}%'")])
    )
