"""Cells of single filters, by hand; and of tables, with what can be wrong with them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from distributary.content.content_space import ContentSpace
from distributary.errors import BadInput
from distributary.filters.cells import cells, cells_batch
from distributary.filters.filter import Filter

PRICES = ContentSpace.parse({"dimensions": [{"name": "/price", "edges": [10, 20]}]})
LEVELS = ContentSpace.parse({"dimensions": [{"name": "level", "edges": [10, 20]}]})
TYPES = ContentSpace.default()
ABSENT = 0


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([], [0, 1, 2, 3]),
        ([{"range": {"/price": {}}}], [1, 2, 3]),
        ([{"range": {"/price": {"min": 10, "max_exclusive": 20}}}], [2]),
        ([{"range": {"/price": {"min": 10, "max": 20}}}], [2, 3]),
        ([{"range": {"/price": {"max_exclusive": 10}}}], [1]),
        ([{"range": {"/price": {"min_exclusive": 25}}}], [3]),
        ([{"range": {"/price": {"max": 15}}}, {"range": {"/price": {"min": 12}}}], [2]),
        ([{"range": {"/price": {"max": 5}}}, {"range": {"/price": {"min": 25}}}], []),
        ([{"not": {"range": {"/price": {"max": 25}}}}], [0, 3]),
        ([{"not": {"range": {"/price": {"max_exclusive": 20}}}}], [0, 3]),
        ([{"any": [{"range": {"/price": {"max": 5}}}, {"exact": {"/price": "a"}}]}], [0, 1]),
        # A text in the data is no number, whatever it says.
        ([{"exact": {"/price": "15"}}], [0]),
        ([{"prefix": {"/price": "1"}}, {"range": {"/price": {}}}], []),
        ([{"sql": "level > 3"}], [0, 1, 2, 3]),
        ([{"sql": "1 = 2"}], []),
    ],
)
def test_numbers_in_data(filters: list[Any], expected: list[int]) -> None:
    assert cells(filters, PRICES).tolist() == expected


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([{"range": {"level": {"min": 10, "max_exclusive": 20}}}], [2]),
        ([{"exact": {"level": "15"}}], [2]),
        ([{"exact": {"level": "015"}}], [0]),
        ([{"sql": "level IN (5, 15)"}], [0, 1, 2]),  # The Boolean true is found among Integers.
        ([{"sql": "level = 15"}], [0, 2]),  # "+15" is an Integer, and no number in JSON.
        ([{"sql": "level > 25"}], [0, 3]),
        ([{"sql": "EXISTS level"}], [0, 1, 2, 3]),
        ([{"not": {"sql": "EXISTS level"}}], [0]),
        ([{"prefix": {"level": "abc"}}], [0, 1, 2, 3]),
        ([{"sql": "LENGTH(level) = 2"}], [0, 1, 2, 3]),
    ],
)
def test_numbers_in_attributes(filters: list[Any], expected: list[int]) -> None:
    assert cells(filters, LEVELS).tolist() == expected


def test_a_text_lies_in_one_bucket_and_a_prefix_in_all() -> None:
    wind, rain = ({"exact": {"type": text}} for text in ("wind", "rain"))
    [windy] = cells([wind], TYPES).tolist()
    [rainy] = cells([rain], TYPES).tolist()
    assert ABSENT not in (windy, rainy)
    assert cells([{"any": [wind, rain]}], TYPES).tolist() == sorted({windy, rainy})
    assert cells([{"sql": "type IN ('wind', 'rain')"}], TYPES).tolist() == sorted({windy, rainy})
    assert cells([wind, {"range": {"/price": {}}}], TYPES).tolist() == [windy]
    assert cells([wind, rain], TYPES).tolist() == []
    assert cells([{"prefix": {"type": "w"}}], TYPES).tolist() == list(range(1, 65))
    assert cells([{"not": wind}], TYPES).tolist() == list(range(65))


KINDS = ContentSpace.parse({"dimensions": [{"name": "type", "values": ["rain", "wind", "5"]}]})
RAIN, WIND, FIVE, OTHERS = 1, 2, 3, 4


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([], [ABSENT, RAIN, WIND, FIVE, OTHERS]),
        ([{"exact": {"type": "wind"}}], [WIND]),
        ([{"exact": {"type": "hail"}}], [OTHERS]),
        ([{"sql": "type IN ('wind', 'hail')"}], [WIND, OTHERS]),
        ([{"sql": "type = 'rain' OR type = 'wind'"}], [RAIN, WIND]),
        ([{"prefix": {"type": "w"}}], [WIND, OTHERS]),
        ([{"suffix": {"type": "n"}}], [RAIN, OTHERS]),
        ([{"sql": "type LIKE '%in%'"}], [RAIN, WIND, OTHERS]),
        ([{"sql": "type LIKE 'r_in'"}], [RAIN, OTHERS]),
        ([{"sql": "type LIKE 'rain'"}], [RAIN]),
        ([{"not": {"exact": {"type": "wind"}}}], [ABSENT, RAIN, FIVE, OTHERS]),
        ([{"sql": "type NOT IN ('wind', 'rain')"}], [FIVE, OTHERS]),
        ([{"sql": "type LIKE '%in%'"}, {"not": {"prefix": {"type": "w"}}}], [RAIN, OTHERS]),
        ([{"sql": "LENGTH(type) = 1"}], [FIVE, OTHERS]),
        ([{"sql": "UPPER(type) = 'WIND'"}], [WIND, OTHERS]),
        ([{"sql": "type > 4"}], [FIVE, OTHERS]),
        ([{"range": {"type": {"min": 6}}}], [OTHERS]),
        ([{"prefix": {"type": "w"}}, {"suffix": {"type": "n"}}], [OTHERS]),
        ([{"exact": {"type": "wind"}}, {"range": {"/price": {"min": 2}}}], [WIND]),
        ([{"exact": {"type": "wind"}}, {"exact": {"type": "rain"}}], []),
    ],
)
def test_texts_with_cells_of_their_own(filters: list[Any], expected: list[int]) -> None:
    """A filter gets the cells that it matches, and others only if it does not list its texts."""
    assert cells(filters, KINDS).tolist() == expected


def test_cells_are_products_over_the_dimensions() -> None:
    space = ContentSpace.parse(
        {"dimensions": [{"name": "/price", "edges": [10]}, {"name": "/size", "edges": [1]}]}
    )
    cheap, small = {"range": {"/price": {"max": 5}}}, {"range": {"/size": {"max": 0}}}
    assert cells([cheap, small], space).tolist() == [4]
    assert cells([cheap], space).tolist() == [3, 4, 5]
    assert cells([{"any": [cheap, small]}], space).tolist() == [1, 3, 4, 5, 7]
    assert cells([cheap, {"any": [{"range": {"/price": {"min": 7}}}, small]}], space).tolist() == [
        4
    ]


def table(*filters: str | None) -> pa.Table:
    return pa.table(
        {"subscription_id": [f"s{i}" for i in range(len(filters))], "filters": list(filters)},
        schema=pa.schema([("subscription_id", pa.string()), ("filters", pa.string())]),
    )


def test_rows_with_the_same_cells_share_a_list() -> None:
    rows = ['[{"range": {"/price": {"min": 12}}}]', '[{"range": {"/price": {"min": 13}}}]', "[]"]
    chunks = pa.concat_tables([table(*rows), table("[]")])
    for subscriptions in (chunks, chunks.combine_chunks().to_batches()[0]):
        lists = cells_batch(subscriptions, PRICES)
        assert lists.list_of_row.tolist() == [0, 0, 1, 1]
        assert [lists.of_row(row).tolist() for row in (1, 3)] == [[2, 3], [0, 1, 2, 3]]
    empty = cells_batch(table(), PRICES)
    assert (len(empty.list_of_row), empty.offsets.tolist(), len(empty.cells)) == (0, [0], 0)


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ("[{]", "subscription 's1': filters: are not JSON"),
        ("[" * 100_000, "subscription 's1': filters: are not JSON"),
        ('[{"any": []}]', "subscription 's1': filters[0].any: must not be empty"),
        (None, "subscription 's1': has no filters"),
    ],
)
def test_a_bad_row_is_named(filters: str | None, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        cells_batch(table("[]", filters), PRICES)
    assert str(caught.value).startswith(message)


def test_a_filter_is_taken_as_it_is() -> None:
    document = [{"range": {"/price": {"min": 12}}}]
    assert cells(Filter.parse(document), PRICES).tolist() == cells(document, PRICES).tolist()
    assert json.dumps(document) == '[{"range": {"/price": {"min": 12}}}]'
