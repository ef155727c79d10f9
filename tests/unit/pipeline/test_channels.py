"""The job `channels`: cells, what is published in them, and who wants it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from tests.pipeline_tables import publications, put, sorted_rows, subscriptions_table
from tests.reference import pipeline as reference

from distributary.content.content_space import ContentSpace
from distributary.content.dimensions import NumberBins, TextBuckets, TextValues
from distributary.content.publication import Publication
from distributary.content.publication_table import to_arrow
from distributary.errors import BadInput
from distributary.pipeline.jobs import channels as jobs
from distributary.pipeline.space_file import read_space
from distributary.pipeline.transforms import cell_sets
from distributary.pipeline.transforms import channels as transforms
from distributary.pipeline.transforms.space_choice import chosen_space, mass_edges, width_edges

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from distributary.pipeline.store import Store

SPACE = ContentSpace(
    (
        TextBuckets("type", 3),
        NumberBins("/x", (0.25, 0.5)),
        NumberBins("level", (1.0, 3.0)),
        TextBuckets("/place", 2),
    )
)
FILTERS: list[list[dict[str, Any]]] = [
    [{"exact": {"type": "t1"}}],
    [{"range": {"/x": {"min": 0.3}}}, {"exact": {"/place": "p1"}}],
    [{"sql": "level = 2"}],
    [{"prefix": {"type": "t"}}],
]
SUBSCRIPTIONS = [
    {"id": f"s{number}", "user": f"u{number % 5}", "filters": FILTERS[number % 4]}
    for number in range(24)
]


def test_the_tables_are_those_counted_row_by_row(store: Store) -> None:
    """Whatever the space looks at; what is nobody's and what has no time is in the report."""
    events = publications(200, seed=3)
    publishers = [None if number % 11 == 0 else f"u{number % 6}" for number in range(200)]
    put(store, "publications", to_arrow(events, publishers=publishers), files=3)
    put(store, "subscriptions", subscriptions_table(SUBSCRIPTIONS), files=2)
    report = jobs.channels(store, store, SPACE)
    expected = reference.rates_published(events, publishers, SPACE)
    assert sorted_rows(store.frame("rates_published")) == expected
    assert sorted_rows(store.frame("interests")) == reference.interests(SUBSCRIPTIONS, SPACE)
    assert read_space(store) == SPACE
    assert dict(report.rows_in) == {"publications": 200, "subscriptions": 24}
    assert report.rows_out["rates_published"] == len(expected)
    assert report.rows_out["channels"] == SPACE.cell_count == store.frame("channels").count()
    times = [event.time_ns for event in events if event.time_ns is not None]
    assert dict(report.figures) == {
        "without_publisher": publishers.count(None),
        "without_time": len(events) - len(times),
        "span_seconds": (max(times) - min(times)) / 1e9,
        "space": SPACE.version,
    }


def test_volumes_do_not_depend_on_how_publications_are_spread(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.Table.from_batches([to_arrow(publications(90, seed=4))])
    frame = spark.createDataFrame(rows)
    one = sorted_rows(transforms.volumes(frame.coalesce(1), SPACE))
    monkeypatch.setattr(transforms, "_PENDING_ROWS", 10)
    assert sorted_rows(transforms.volumes(frame.repartition(5), SPACE)) == one
    assert len(one) > 40


@pytest.mark.parametrize("time", [None, "2026-01-05T00:00:00Z"])
def test_publications_at_one_time_are_taken_to_span_a_second(
    spark: SparkSession, time: str | None
) -> None:
    attributes = {"source": "/a", "type": "t", **({} if time is None else {"time": time})}
    events = [Publication({"id": str(number), **attributes}, b"x" * 5) for number in range(3)]
    frame = spark.createDataFrame(pa.Table.from_batches([to_arrow(events)]))
    found = transforms.volumes(frame, ContentSpace.default())
    (row,) = transforms.rates_published(found).collect()
    assert (row.user, row.bytes_per_second) == ("/a", 15.0)


def test_the_cells_of_a_user_are_united_wherever_batches_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batch = subscriptions_table(SUBSCRIPTIONS).combine_chunks().to_batches()[0]
    monkeypatch.setattr(cell_sets, "_PAIRS_MAX", SPACE.cell_count * 3)
    sets = pa.Table.from_batches(cell_sets.cell_sets(batch, SPACE)).sort_by("user")
    assert sets.num_rows == 20
    for size in (1, 3, 20):
        parts = sets.combine_chunks().to_batches(max_chunksize=size)
        pieces = list(cell_sets.united_cells(parts, SPACE.cell_count))
        assert len(pieces) > 1
        pairs = [(row["user"], row["cell"]) for piece in pieces for row in piece.to_pylist()]
        assert pairs == reference.interests(SUBSCRIPTIONS, SPACE)
    assert list(cell_sets.united_cells([], 9)) == []


def test_bounds_say_what_lies_in_a_cell(spark: SparkSession) -> None:
    space = ContentSpace((NumberBins("/x", (1.0, 2.5)), TextBuckets("type", 2)))
    bounds = {
        row.cell: json.loads(row.bounds) for row in transforms.channels(spark, space).collect()
    }
    assert sorted(bounds) == list(range(12))
    assert bounds[space.cell_from_bins((0, 0))] == [
        {"name": "/x", "absent": True},
        {"name": "type", "absent": True},
    ]
    assert bounds[space.cell_from_bins((1, 1))][0] == {"name": "/x", "max": 1.0}
    assert bounds[space.cell_from_bins((2, 2))] == [
        {"name": "/x", "min": 1.0, "max": 2.5},
        {"name": "type", "bucket": 1, "buckets": 2},
    ]
    assert bounds[space.cell_from_bins((3, 1))][0] == {"name": "/x", "min": 2.5}


def test_edges_of_equal_width_and_of_equal_mass() -> None:
    assert width_edges(0.0, 8.0, 4) == (2.0, 4.0, 6.0)
    assert width_edges(-1e300, 1e300, 2) == (0.0,)
    assert width_edges(3.0, 3.0, 5) == (3.0,)
    assert width_edges(0.0, 1.0, 1) == (0.0,)
    values = np.array([5.0, 1.0, 2.0, 4.0, 3.0, 100.0, 7.0, 6.0])
    assert mass_edges(values, 4) == (3.0, 5.0, 7.0)
    assert mass_edges(np.array([1.0, 1.0, 1.0, 1.0, 2.0]), 4) == (1.0,)
    assert mass_edges(np.empty(0), 4) == ()


def test_a_space_to_measure_divides_numbers_by_edges_and_texts_by_buckets(
    spark: SparkSession,
) -> None:
    """The same one however the table is spread; and a number too large is no edge."""
    events = publications(120, seed=6)
    huge = Publication({"id": "huge", "source": "/a", "type": "t"}, {"x": 1.7e308})
    frame = spark.createDataFrame(pa.Table.from_batches([to_arrow([*events, huge])]))
    names = ["/x", "type", "/place"]
    space = chosen_space(frame, names, bins=4, by="mass")
    values = np.sort([event.numbers["/x"] for event in events if "/x" in event.numbers])
    expected = tuple(float(values[len(values) * part // 4]) for part in (1, 2, 3))
    assert space.dimensions == (
        NumberBins("/x", expected),
        TextBuckets("type", 4),
        TextBuckets("/place", 4),
    )
    assert chosen_space(frame.repartition(3), names, bins=4, by="mass") == space
    wide = chosen_space(frame, ["/x"], bins=2)
    assert wide.dimensions == (NumberBins("/x", width_edges(values[0], values[-1], 2)),)


def test_a_space_is_asked_for_in_one_way_only(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "space.json"
    file.write_text(json.dumps(SPACE.document()))
    assert jobs.SpaceWish(space="default").chosen(store) == ContentSpace.default()
    assert jobs.SpaceWish(space=str(file)).chosen(store) == SPACE
    with pytest.raises(BadInput, match="--dimension: cannot be combined with --space"):
        jobs.SpaceWish(space=str(file), dimensions=["type"]).chosen(store)
    with pytest.raises(BadInput, match="--bins: is for --dimension and --space types"):
        jobs.SpaceWish(space=str(file), bins=4).chosen(store)
    with pytest.raises(BadInput, match=r"_space\.json: there is no such file"):
        read_space(store)
    file.write_text('{"dimensions": [{"name": "type"}]}')
    with pytest.raises(BadInput, match=r"space\.json: dimensions\[0\]"):
        jobs.SpaceWish(space=str(file)).chosen(store)


def test_the_types_that_occur_have_cells_of_their_own(store: Store) -> None:
    """Without a word about it; the heaviest, when there are too many."""
    sizes = {"rain": 5, "wind": 40, "snow": 7, "hail": 7}
    events = [
        Publication({"id": name, "source": "/a", "type": name}, bytes(size))
        for name, size in sizes.items()
    ]
    # A type that is too long to be listed is one of the others.
    events.append(Publication({"id": "long", "source": "/a", "type": "x" * 257}, bytes(99)))
    put(store, "publications", to_arrow(events), files=2)
    space = jobs.SpaceWish().chosen(store)
    assert space.dimensions == (TextValues("type", ("hail", "rain", "snow", "wind")),)
    assert jobs.SpaceWish(space="types").chosen(store) == space
    assert jobs.SpaceWish(bins=2).chosen(store).dimensions == (
        TextValues("type", ("hail", "wind")),
    )
    put(store, "subscriptions", subscriptions_table(SUBSCRIPTIONS))
    jobs.channels(store, store, space)
    assert read_space(store) == space
    bounds = {row.cell: json.loads(row.bounds) for row in store.frame("channels").collect()}
    assert bounds == {
        0: [{"name": "type", "absent": True}],
        **{
            number: [{"name": "type", "value": value}]
            for number, value in enumerate(("hail", "rain", "snow", "wind"), start=1)
        },
        5: [{"name": "type", "others": True}],
    }
    put(store, "publications", to_arrow([]))
    assert jobs.SpaceWish().chosen(store) == ContentSpace.default()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"bins": 0}, "--bins: must be at least 1"),
        ({"dimensions": [], "bins": 0}, "--bins: must be between 1 and 4,094, not 0"),
        ({"dimensions": [], "bins": 4095}, "--bins: must be between 1 and 4,094, not 4095"),
        ({"by": "weight"}, "--by: must be one of width, mass, not 'weight'"),
        ({"dimensions": ["Type"]}, "neither an attribute nor a JSON Pointer"),
        ({"dimensions": ["a", "b", "c"], "bins": 64}, "at most 4,096"),
    ],
)
def test_a_space_that_cannot_be_is_refused(
    store: Store, asked: dict[str, Any], message: str
) -> None:
    put(store, "publications", to_arrow(publications(3, seed=1)))
    with pytest.raises(BadInput, match=message):
        jobs.SpaceWish(**{"dimensions": ["type"], **asked}).chosen(store)


def test_a_filter_that_breaks_the_rules_is_named(store: Store) -> None:
    """The fault is found on an executor, and still is one sentence about the table."""
    rows = [*SUBSCRIPTIONS, {"id": "bad", "user": "u", "filters": [{"sql": "1 +"}]}]
    put(store, "publications", to_arrow(publications(3, seed=1)))
    put(store, "subscriptions", subscriptions_table(rows))
    with pytest.raises(BadInput, match="subscriptions: subscription 'bad'"):
        jobs.channels(store, store, SPACE)
