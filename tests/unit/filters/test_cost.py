"""No filter and no event within the limits takes more than a moment of the processor's time.

Seconds here are processor time, several times what they take on an ordinary machine, and a
fraction of what the same filters took when only their size was limited.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from distributary.content.attributes import ATTRIBUTE_CHARACTERS_MAX
from distributary.content.content_space import ContentSpace
from distributary.content.publication import Publication
from distributary.errors import BadInput
from distributary.filters import Filter, Index
from distributary.filters.cells import cells
from distributary.filters.covers import covers
from distributary.filters.expression import parse_expression
from distributary.filters.filter_parser import SQL_CHARACTERS_MAX, TEXT_CHARACTERS_MAX
from distributary.filters.sql_cost import TEXT_PASSES_MAX

# Three characters in upper case, and no function is slower on any other.
SLOW = "\u0390" * ATTRIBUTE_CHARACTERS_MAX
ZEROS = "0" * (ATTRIBUTE_CHARACTERS_MAX - 1) + "1"
NEARLY = "a" * 49 + "b" + "a" * 25
SPACE = ContentSpace.parse(
    {
        "dimensions": [
            {"name": "type", "buckets": 15},
            {"name": "a", "buckets": 15},
            {"name": "level", "edges": list(range(1, 14))},
        ]
    }
)


def sql(text: str, join: str = " OR ", count_max: int = 10_000) -> list[object]:
    """Return filters that repeat a condition as often as they may."""
    count = min(count_max, (TEXT_CHARACTERS_MAX + len(join)) // (len(text) + len(join)))
    expression = join.join([text] * count)
    times = min(SQL_CHARACTERS_MAX // len(expression), max(1, count_max // count))
    return [{"any": [{"sql": expression}] * times}]


def numbered(text: str, count: int, join: str) -> list[object]:
    return [{"sql": join.join(text.replace("#", str(number)) for number in range(count))}]


def member(first: int, count: int) -> str:
    listed = ", ".join(f"'{number}'" for number in range(first, first + count))
    return f"a IN ({listed})"


COSTLY: dict[str, tuple[list[object], str]] = {
    "functions": (sql("UPPER(a) = 'x'", count_max=TEXT_PASSES_MAX), SLOW),
    "nested functions": (sql("LOWER(UPPER(a)) = 'x'", count_max=TEXT_PASSES_MAX // 2), SLOW),
    "blanks": (sql("TRIM(a) = 'x'", count_max=TEXT_PASSES_MAX), " " * len(SLOW)),
    "integers": (sql("a < 1"), ZEROS),
    "digits": (sql("a IN (1, 2)"), ZEROS),
    "booleans": (sql("a", " XOR "), SLOW),
    "comparisons": (sql("a = subject"), SLOW),
    "searches": (sql(f"a LIKE '%{NEARLY}%'", count_max=80), "a" * 29_999),
    "any character": ([{"sql": "UPPER(a) LIKE '%" + "\u0399_" * 4000 + "b%'"}], SLOW),
    "segments": (
        [{"any": [{"sql": f"a LIKE '%{'a_b%' * 1190}c'"}] * 4}],
        ("axc" * 17 + "axb") * 1200 + "c",
    ),
    "XOR": (numbered("x# = 1", 22, " XOR "), "x"),
    "XOR of one attribute": (numbered("level < #", 22, " XOR "), "x"),
    "XOR of sets": (
        [{"sql": " XOR ".join(member(first, 60) for first in range(16))}],
        "x",
    ),
    "nested XOR": (
        [{"sql": "(" * 60 + "a = '1'" + "".join(f" XOR b{i} = '1')" for i in range(60))}],
        "x",
    ),
    "large sets": (
        [{"sql": member(0, 1000)}] * 8,
        "x",
    ),
    "patterns that must and must not": (
        [
            {
                "sql": " AND ".join(
                    [f"a LIKE 'x%{'p' * 40}{i}%'" for i in range(60)]
                    + [f"NOT (a LIKE 'x%{'q' * 40}{i}%y')" for i in range(60)]
                )
            }
        ],
        "x",
    ),
    "alternatives": (
        [
            {
                "any": [
                    {"exact": {"a": f"v{i}"}},
                    {"prefix": {"type": f"w{i}"}},
                    {"range": {"b": {}}},
                ]
            }
            for i in range(255)
        ],
        "x",
    ),
    "long texts": (
        [{"prefix": {"a": "\u0390" * 8000 + str(i)}} for i in range(250)],
        SLOW,
    ),
}


def seconds(action: Callable[[], object]) -> float:
    begun = time.process_time()
    action()
    return time.process_time() - begun


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """Compile what is compiled on first use."""
    index = Index()
    index.add_filter("s", Filter.parse([{"sql": "a = '1' AND level < 3"}]))
    index.match(event("x"))
    cells([{"sql": "level < 3"}], SPACE)


def event(text: str) -> Publication:
    return Publication.parse(
        {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "subject": text, "a": text}
    )


@pytest.mark.parametrize(("filters", "text"), COSTLY.values(), ids=COSTLY.keys())
def test_whatever_is_within_the_limits_costs_a_moment(filters: list[object], text: str) -> None:
    published = event(text)
    index = Index()
    other = Filter.parse([{"sql": "a LIKE '%zz%' AND level < 7"}])
    assert seconds(lambda: Filter.parse(filters)) < 2.0
    parsed = Filter.parse(filters)
    # The first time an expression is compiled, which takes as long as to parse it.
    assert seconds(lambda: parsed.matches(published)) < 2.0
    assert seconds(lambda: parsed.matches(published)) < 0.5
    assert seconds(lambda: index.add_filter("s", parsed)) < 3.0
    assert seconds(lambda: index.match(published)) < 0.5
    assert seconds(lambda: cells(parsed, SPACE)) < 1.0
    assert seconds(lambda: covers(parsed, other)) < 1.5
    assert seconds(lambda: covers(other, parsed)) < 1.5


@pytest.mark.parametrize(
    "condition",
    ["UPPER(a) = 'x'", "a LIKE '%x%'", "a LIKE 'x%y%z'", "a LIKE '%x_y%'"],
)
def test_so_many_times_and_no_more_a_text_is_gone_through(condition: str) -> None:
    at_limit = " OR ".join([condition] * TEXT_PASSES_MAX)
    assert parse_expression(at_limit).text_passes == TEXT_PASSES_MAX
    with pytest.raises(BadInput, match="may go through a text 129 times; at most 128 are allowed"):
        parse_expression(f"{at_limit} OR {condition}")
    half = [{"sql": " OR ".join([condition] * (TEXT_PASSES_MAX // 2))}]
    Filter.parse(half * 2)
    with pytest.raises(BadInput, match=r"filters\[2\].sql: may go through a text 192 times"):
        Filter.parse(half * 3)


@pytest.mark.parametrize("pattern", ["abc", "a_c", "abc%", "%abc", "abc%def", "%", "a%%b"])
def test_patterns_that_are_tied_to_an_end_cost_nothing(pattern: str) -> None:
    assert parse_expression(" OR ".join([f"a LIKE '{pattern}'"] * 500)).text_passes == 0


def test_expressions_of_a_subscription_have_a_length_together() -> None:
    expression = "a = '" + "x" * (TEXT_CHARACTERS_MAX - 6) + "'"
    Filter.parse([{"sql": expression}] * 16)
    with pytest.raises(BadInput, match=r"filters\[16\].sql: has the character beyond the 131,072"):
        Filter.parse([*[{"sql": expression}] * 16, {"sql": "a"}])


def test_where_the_search_for_cells_gives_up_all_of_them_are_left() -> None:
    few = numbered("level = #", 4, " XOR ")
    many = numbered("level = #", 22, " XOR ")
    level = {"sql": "EXISTS level AND level < 2"}
    assert 0 < len(cells([level, *few], SPACE)) < len(cells(many, SPACE))
    for number in (1, 5, 21):
        published = Publication.parse(
            {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "level": number}
        )
        assert Filter.parse(many).matches(published)
        assert SPACE.cell_of(published) in cells(many, SPACE)


def test_integers_have_at_most_1024_characters() -> None:
    at_limit = parse_expression("a = 1 AND IS_INT(a)")
    assert at_limit.passes({"a": "0" * 1023 + "1"})
    assert not at_limit.passes({"a": "0" * 1024 + "1"})
