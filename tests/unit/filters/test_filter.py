"""Filters from JSON: what they mean, and what is said about those that mean nothing."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import pyarrow as pa
import pytest

from distributary.content.content_space import ContentSpace
from distributary.content.publication import Publication
from distributary.content.publication_table import to_arrow
from distributary.errors import BadInput
from distributary.filters.cells import cells
from distributary.filters.clauses import clause_set
from distributary.filters.covers import covers
from distributary.filters.filter import Filter
from distributary.filters.filter_parser import CONDITIONS_MAX, DEPTH_MAX, FILTERS_MAX
from distributary.filters.index import Index
from distributary.filters.sql_built_ins import BUILT_INS
from distributary.filters.sql_functions import Function
from distributary.filters.sql_tree import ValueType

EVENT = Publication(
    {"type": "order.placed", "level": 7, "urgent": True, "price": "9.50", "code": "007"},
    {"price": 9.5, "city": "Łódź", "items": [{"sku": ""}], "a/b": 1},
)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([], True),
        ([{"exact": {"type": "order.placed"}}], True),
        ([{"exact": {"type": "Order.placed"}}], False),
        ([{"exact": {"missing": "x"}}], False),
        ([{"exact": {"level": "7", "urgent": "true"}}], True),
        ([{"exact": {"urgent": "True"}}], False),
        ([{"exact": {"/items/0/sku": ""}}], True),
        ([{"exact": {"/price": "9.5"}}], False),
        ([{"prefix": {"type": "order."}}, {"suffix": {"/city": "ódź"}}], True),
        ([{"prefix": {"level": "7"}}], True),
        ([{"range": {"price": {"min": 9.5, "max": 9.5}}}], True),
        ([{"range": {"/price": {"min_exclusive": 9.5}}}], False),
        ([{"range": {"/price": {"max_exclusive": 9.500000000000002}}}], True),
        ([{"range": {"code": {"min": 0}}}], False),
        ([{"range": {"urgent": {"min": 0}}}], False),
        ([{"range": {"/a~1b": {}}}], True),
        ([{"range": {"/city": {}}}], False),
        ([{"not": {"range": {"/missing": {}}}}], True),
        ([{"sql": "missing = 'x'"}], False),
        ([{"not": {"sql": "missing = 'x'"}}], True),
        ([{"sql": "type"}], False),
        ([{"all": [{"sql": "level > 6"}, {"exact": {"level": "7"}}]}], True),
        ([{"any": [{"sql": "level > 7"}, {"exact": {"level": "8"}}]}], False),
    ],
)
def test_a_filter_holds_as_the_language_says(filters: list[Any], expected: bool) -> None:
    assert Filter.parse(filters).matches(EVENT) is expected


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({}, "filters: must be an array of filters, not an object"),
        (
            [5],
            "filters[0]: must be an object with one dialect, not 5; "
            "hint: the dialects are exact, prefix, suffix, range, all, any, not, sql",
        ),
        ([{}], "filters[0]: has 0 dialects; it must have one"),
        (
            [{"exact": {"a": "b"}, "prefix": {"a": "b"}}],
            "filters[0]: has 2 dialects; it must have one; "
            "hint: put several filters into an array, or into 'all'",
        ),
        (
            [{"all": [{"not": {"regex": {}}}]}],
            "filters[0].all[0].not.regex: 'regex' is not a filter dialect; "
            "hint: the dialects are exact, prefix, suffix, range, all, any, not, sql",
        ),
        ([{"any": []}], "filters[0].any: must not be empty"),
        ([{"all": []}], "filters[0].all: must not be empty"),
        (
            [{"exact": {}}],
            "filters[0].exact: must not be empty; "
            "hint: a subscription without filters gets everything",
        ),
        ([{"exact": {"type": 5}}], "filters[0].exact.type: must be a string, not 5"),
        ([{"exact": {"type": ""}}], "filters[0].exact.type: must not be empty"),
        ([{"prefix": {"/x": ""}}], 'filters[0].prefix["/x"]: must not be empty'),
        (
            [{"exact": {"/~2": "x"}}],
            "filters[0].exact[\"/~2\"]: '/~2' is not a JSON Pointer; hint: it is empty or "
            "begins with '/'; '~' is written '~0' and '/' in a name '~1'",
        ),
        (
            [{"exact": {"a": "\ud800"}}],
            "filters[0].exact.a: has half of a surrogate pair, which is not text",
        ),
        (
            [{"range": {"/price": {"min": "5"}}}],
            "filters[0].range[\"/price\"].min: must be a number, not the string '5'",
        ),
        (
            [{"range": {"/price": {"min": math.nan}}}],
            'filters[0].range["/price"].min: must be a finite number that a double can hold',
        ),
        (
            [{"range": {"/price": {"max": 10**400}}}],
            'filters[0].range["/price"].max: must be a finite number that a double can hold',
        ),
        (
            [{"range": {"/price": {"min_exclusive": -math.inf}}}],
            'filters[0].range["/price"].min_exclusive: must be a finite number that a double '
            "can hold",
        ),
        (
            [{"range": {"x": {"minimum": 1}}}],
            "filters[0].range.x.minimum: is not a bound; "
            "hint: the bounds are min, max, min_exclusive, max_exclusive",
        ),
        ([{"sql": None}], "filters[0].sql: must be a string, not null"),
    ],
)
def test_a_fault_is_told_with_its_place(filters: object, message: str) -> None:
    with pytest.raises(BadInput) as refused:
        Filter.parse(filters)
    assert str(refused.value) == message


def test_a_malformed_expression_is_told_with_its_position() -> None:
    with pytest.raises(BadInput, match=r"^filters\[0\]\.sql: .*character 8"):
        Filter.parse([{"sql": "type = AND"}])


def _deep(depth: int) -> list[Any]:
    item: dict[str, Any] = {"exact": {"a": "b"}}
    for _ in range(depth - 1):
        item = {"not": item}
    return [item]


def test_the_deepest_filter_is_read_and_a_deeper_one_is_refused() -> None:
    assert Filter.parse(_deep(DEPTH_MAX)).parts
    with pytest.raises(BadInput, match=f"is nested more than {DEPTH_MAX} deep"):
        Filter.parse(_deep(DEPTH_MAX + 1))
    with pytest.raises(BadInput, match=f"is nested more than {DEPTH_MAX} deep"):
        Filter.parse(_deep(100_000))


@pytest.mark.parametrize(
    "filters",
    [
        [{"exact": {"a": "b"}}] * (FILTERS_MAX + 1),
        [{"exact": {f"a{i}": "b" for i in range(CONDITIONS_MAX + 1)}}],
        [{"all": [{"exact": {f"a{i}": "b" for i in range(100)}}] * 11}],
        [{"exact": {"a": "b" * 10_000}}],
        [{"exact": {"a" * 10_000: "b"}}],
        [{"exact": {"/" + "a" * 10_000: "b"}}],
        [{"sql": "TRUE AND " * 2000 + "TRUE"}],
    ],
)
def test_what_is_beyond_a_limit_is_refused_with_a_short_message(filters: list[Any]) -> None:
    with pytest.raises(BadInput, match="has") as refused:
        Filter.parse(filters)
    assert len(str(refused.value)) < 200


def test_exclusive_bounds_are_written_back_as_they_came() -> None:
    filters = [{"range": {"/x": {"min_exclusive": 0.0, "max_exclusive": 3.0}, "y": {"min": 1.5}}}]
    assert Filter.parse(filters).document() == filters


@pytest.mark.parametrize(
    "bounds",
    [
        {"min": 1, "max": 0},
        {"max": 0, "min": 1},
        {"min": 5, "max_exclusive": 5},
        {"min_exclusive": 5, "max": 5},
        {"min_exclusive": 1, "max_exclusive": 1.0000000000000002},
        {"min_exclusive": sys.float_info.max},
        {"max_exclusive": -sys.float_info.max, "min": 3},
    ],
)
def test_bounds_that_leave_no_number_match_nothing(bounds: dict[str, float]) -> None:
    """They are no fault: the rules name what is refused, and this is not among it."""
    document = [{"range": {"/x": bounds}}]
    never = Filter.parse(document)
    assert Filter.parse(json.loads(json.dumps(never.document()))) == never
    events = [
        Publication({"id": "1", "source": "s", "type": "t"}, {"x": number})
        for number in (0, 0.5, 1, 3, 5, sys.float_info.max, -sys.float_info.max)
    ]
    table = pa.table({"subscription_id": ["never"], "filters": [json.dumps(document)]})
    one = Index()
    one.add_filter("never", never)
    one.add_filter("always", Filter.parse([{"not": {"range": {"/x": bounds}}}]))
    two = Index.from_arrow(table)
    for event in events:
        assert not never.matches(event)
        assert one.match(event) == ["always"]
        assert two.match(event) == []
    assert two.match_batch(to_arrow(events)).num_rows == 0
    assert clause_set(never).never
    assert covers(Filter.parse([{"exact": {"type": "t"}}]), never)
    assert not covers(never, Filter.parse([{"exact": {"type": "t"}}]))
    space = ContentSpace.parse({"dimensions": [{"name": "type", "buckets": 4}]})
    assert cells(never, space).tolist() == []


def test_an_expression_may_call_the_functions_it_is_given() -> None:
    shout = Function("SHOUT", (ValueType.STRING,), ValueType.STRING, lambda text: text + "!")
    filters = [{"sql": "SHOUT(type) = 'order.placed!'"}]
    assert Filter.parse(filters, functions=BUILT_INS.extended(shout)).matches(EVENT)
    assert not Filter.parse(filters).matches(EVENT)
