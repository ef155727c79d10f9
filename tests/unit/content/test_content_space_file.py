"""Content spaces: limits, edges and what a document may not say."""

from __future__ import annotations

import hashlib
import math

import pytest

from distributary.content.content_space import ContentSpace
from distributary.content.dimensions import NumberBins, TextBuckets, TextValues
from distributary.errors import BadInput


def test_bins_begin_at_their_edges_and_the_outer_ones_reach_to_infinity() -> None:
    bins = NumberBins("/x", (0.0, 10.0))
    assert [bins.bin_of_number(x) for x in (-math.inf, -1.0, 0.0, 9.9, 10.0, math.inf)] == [
        1,
        1,
        2,
        2,
        3,
        3,
    ]
    assert bins.bin_of_number(None) == bins.bin_of_number(math.nan) == 0
    assert bins.bin_count == 4


def test_the_default_space_and_its_keys_do_not_change() -> None:
    """Brokers of different ages must agree where an event goes."""
    space = ContentSpace.default()
    assert space.dimensions == (TextBuckets("type", 64),)
    assert space.cell_count == 65
    assert space.version == "16f182f19f1675b9bbceeb1b0650c3a3d06b9fc61d914148a0f52d27eec67d7f"
    assert space.key(7) == hashlib.sha256(f"{space.version}/7".encode()).digest()
    assert len({space.key(cell) for cell in range(space.cell_count)}) == 65


def test_each_value_has_a_bin_and_all_others_have_one_together() -> None:
    values = TextValues("type", ("rain", "wind"))
    assert [values.bin_of_text(text) for text in (None, "rain", "wind", "hail", "")] == [
        0,
        1,
        2,
        3,
        3,
    ]
    space = ContentSpace((values,))
    assert space.document() == {"dimensions": [{"name": "type", "values": ["rain", "wind"]}]}
    assert space.cell_count == 4
    assert space.key(2) == hashlib.sha256(f"{space.version}/2".encode()).digest()


@pytest.mark.parametrize(
    ("dimensions", "place", "problem"),
    [
        ([], "dimensions", "are 0; a space has 1 to 12"),
        ([{"name": "a", "buckets": 1}] * 13, "dimensions", "has 13 entries; at most 12 are read"),
        (
            [{"name": "a", "buckets": 63}, {"name": "b", "buckets": 64}],
            "dimensions",
            "make 4,160 cells; a space has at most 4,096",
        ),
        ([{"name": "a"}], "dimensions[0]", "must have either edges, buckets or values"),
        ([{"name": "a", "edges": [1], "buckets": 2}], "dimensions[0]", "must have either"),
        ([{"name": "a", "values": ["x"], "buckets": 2}], "dimensions[0]", "must have either"),
        ([{"name": "a", "values": []}], "dimensions[0].values", "is empty"),
        ([{"name": "a", "values": ["x", ""]}], "dimensions[0].values[1]", "must not be empty"),
        ([{"name": "a", "values": ["x", "x"]}], "dimensions[0].values[1]", "is given twice"),
        ([{"name": "a", "values": [1]}], "dimensions[0].values[0]", "must be a string, not 1"),
        (
            [{"name": "a", "values": [f"v{number}" for number in range(4_095)]}],
            "dimensions",
            "make 4,097 cells; a space has at most 4,096",
        ),
        ([{"name": "a", "bins": 2}], "dimensions[0].bins", "is not a field of a dimension"),
        ([{"name": "A", "buckets": 2}], "dimensions[0].name", "is neither an attribute nor"),
        ([{"name": "/~", "buckets": 2}], "dimensions[0].name", "is not a JSON Pointer"),
        ([{"name": "a", "buckets": 0}], "dimensions[0].buckets", "must be a whole number"),
        ([{"name": "a", "buckets": 2.0}], "dimensions[0].buckets", "must be a whole number"),
        ([{"name": "a", "edges": []}], "dimensions[0].edges", "is empty"),
        ([{"name": "a", "edges": [1, 1]}], "dimensions[0].edges[1]", "must be greater"),
        ([{"name": "a", "edges": [True]}], "dimensions[0].edges[0]", "must be a number"),
        ([{"name": "a", "edges": [math.inf]}], "dimensions[0].edges[0]", "must be a finite"),
    ],
)
def test_a_bad_space_is_refused(dimensions: object, place: str, problem: str) -> None:
    with pytest.raises(BadInput) as raised:
        ContentSpace.parse({"dimensions": dimensions})
    assert raised.value.place == place
    assert problem in raised.value.problem


def test_a_batch_without_the_columns_is_refused() -> None:
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(BadInput, match="column 'attributes': must be there, as a map"):
        ContentSpace.default().cells_of_batch(pa.record_batch({"attributes": [1]}))
