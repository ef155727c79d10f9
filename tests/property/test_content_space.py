"""Every publication lies in one cell, the same one by one and in batches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import content as reference

from distributary.content.content_space import ContentSpace
from distributary.content.dimensions import NumberBins, TextBuckets, TextValues, bucket_of
from distributary.content.publication import Publication

NAMES = st.sampled_from(["type", "priority", "/price", "/name", "/deep/0", "absent"])
EDGES = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 10.0, 1e9]), min_size=1, unique=True).map(
    lambda edges: tuple(sorted(edges))
)
VALUES = st.lists(
    st.sampled_from(["a", "b", "é", "x", "10", "true", "nowhere"]), min_size=1, unique=True
).map(tuple)
DIMENSIONS = (
    st.builds(NumberBins, NAMES, EDGES)
    | st.builds(TextBuckets, NAMES, st.integers(1, 12))
    | st.builds(TextValues, NAMES, VALUES)
)
SPACES = st.lists(DIMENSIONS, min_size=1, max_size=3).map(lambda d: ContentSpace(tuple(d)))

LEAVES = st.sampled_from([0, -1, 0.5, 10, 1e300, -0.0, "x", "10", "", "é", None, True])
PRIORITIES = st.sampled_from([None, 0, -1, 10, True, "-1", "0.5", "1e1", "1e999", "x", "NaN", " 1"])


@st.composite
def events(draw: st.DrawFn) -> Publication:
    return Publication.parse(
        {
            "specversion": "1.0",
            "id": "1",
            "source": "/s",
            "type": draw(st.sampled_from(["a", "b", "é", "com.example.long.name"])),
            "priority": draw(PRIORITIES),
            "data": draw(
                st.fixed_dictionaries(
                    {}, optional={"price": LEAVES, "name": LEAVES, "deep": st.lists(LEAVES)}
                )
                | LEAVES
            ),
        }
    )


@given(SPACES, events())
def test_a_publication_lies_in_the_cell_of_the_definition(
    space: ContentSpace, publication: Publication
) -> None:
    cell = space.cell_of(publication)
    assert cell == reference.cell_of(space, publication)
    assert 0 <= cell < space.cell_count
    assert space.cell_from_bins(space.bins_of_cell(cell)) == cell


@given(SPACES, st.lists(events(), max_size=6), st.integers(0, 3))
def test_a_batch_gives_the_cells_of_its_rows(
    space: ContentSpace, publications: list[Publication], skipped: int
) -> None:
    pytest.importorskip("pyarrow")
    from distributary.content.publication_table import to_arrow

    batch = to_arrow(publications)
    cells = [space.cell_of(publication) for publication in publications]
    assert space.cells_of_batch(batch).tolist() == cells
    # A slice has offsets into buffers that it shares.
    assert space.cells_of_batch(batch.slice(skipped, 2)).tolist() == cells[skipped : skipped + 2]


@given(SPACES)
def test_a_space_survives_being_written_and_read(space: ContentSpace) -> None:
    again = ContentSpace.parse(space.document())
    assert again == space
    assert again.version == space.version


@given(SPACES, SPACES)
def test_spaces_have_one_version_only_when_they_are_equal(
    one: ContentSpace, other: ContentSpace
) -> None:
    assert (one.version == other.version) == (one == other)


@given(st.text(max_size=20), st.integers(1, 4095))
def test_a_bucket_is_the_hash_of_the_definition(text: str, buckets: int) -> None:
    assert bucket_of(text, buckets) == reference.text_hash(text) % buckets
