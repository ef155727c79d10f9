"""Sampled publications: events that could have been published, the same however made."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distributary.content.publication import parse_event
from distributary.content.publication_table import publications_schema, to_arrow
from distributary.content.timestamps import parse_timestamp
from distributary.pipeline.sample import SampleSizes
from distributary.pipeline.sample.counter_rng import CounterRng, picked, zipf_picked, zipf_weights
from distributary.pipeline.sample.events import START_US
from distributary.pipeline.sample.publications import MEAN_BYTES, publications_block
from distributary.pipeline.sample.texts import decimals, hexadecimals, json_lengths, timestamps
from distributary.pipeline.sample.timeline import publication_times

SIZES = SampleSizes(publications=20_000, users=500)
DAY_US = 86_400_000_000


def block(rows: int, seed: int = 7, sizes: SampleSizes = SIZES) -> pa.RecordBatch:
    return publications_block(sizes, seed, np.arange(rows))


def event_of(row: dict[str, Any]) -> str:
    """Return the event that a row says was published, in CloudEvents' JSON."""
    values: dict[str, Callable[[str], object]] = {
        "String": str,
        "Integer": int,
        "Boolean": lambda text: text == "true",
    }
    event = {name: values[held["type"]](held["text"]) for name, held in row["attributes"]}
    if row["media_type"] == "application/json":
        event["data"] = {
            pointer.removeprefix("/"): value for pointer, value in row["numbers"] + row["texts"]
        }
    elif row["media_type"].startswith("text/"):
        event["data"] = "x" * row["bytes"]
    else:
        event["data_base64"] = base64.b64encode(bytes(row["bytes"])).decode()
    return json.dumps(event)


@pytest.mark.parametrize("seed", [0, 8123])
def test_a_row_is_what_parsing_its_event_gives(seed: int) -> None:
    batch = block(1_500, seed)
    sizes = batch["bytes"].to_numpy()
    # The largest take long to encode: one of them is enough.
    chosen = batch.take(np.flatnonzero((sizes < 60_000) | (sizes == sizes.max())))
    rows = chosen.to_pylist()
    parsed = to_arrow(
        [parse_event(event_of(row)) for row in rows],
        publishers=[row["publisher"] for row in rows],
    )
    assert len(rows) > 500
    assert {row["media_type"].split("/")[0] for row in rows} >= {"application", "text"}
    assert parsed.to_pylist() == rows


def test_rows_do_not_depend_on_the_rows_made_with_them() -> None:
    whole = block(1_000)
    cuts = [0, 1, 130, 131, 640, 1_000]
    parts = [
        publications_block(SIZES, 7, np.arange(begin, end))
        for begin, end in itertools.pairwise(cuts)
    ]
    assert whole.schema.equals(publications_schema())
    whole.validate(full=True)
    assert pa.Table.from_batches(parts).combine_chunks().to_batches()[0].equals(whole)


def test_another_seed_gives_other_rows_and_the_same_seed_the_same() -> None:
    assert block(50).equals(block(50))
    assert not block(50)["source"].equals(block(50, seed=8)["source"])


def test_values_are_skewed_and_all_kinds_of_events_occur() -> None:
    batch = block(8_192)
    for column, share in (("publisher", 0.08), ("source", 0.08)):
        counts = sorted(entry["counts"] for entry in batch[column].value_counts().to_pylist())
        assert counts[-1] > share * len(batch)
        assert counts[-1] > 20 * counts[len(counts) // 2]
    kinds = {dict(row)["type"]["text"].split(".")[0] for row in batch["attributes"].to_pylist()}
    assert kinds == {"notice", "sensor", "clip", "quote"}
    assert batch["event_id"].value_counts().to_pylist()[0]["counts"] == 1
    assert batch["bytes"].to_numpy().mean() == pytest.approx(MEAN_BYTES, rel=0.1)


def test_a_stream_has_one_publisher_and_sequences_that_rise_with_time() -> None:
    streams: dict[str, list[tuple[int, datetime, str]]] = {}
    for row in block(8_192).to_pylist():
        attributes = dict(row["attributes"])
        if attributes["type"]["text"] == "quote":
            version = (int(attributes["sequence"]["text"]), row["time"], row["publisher"])
            streams.setdefault(attributes["subject"]["text"], []).append(version)
    assert len(streams) == SIZES.objects
    for versions in streams.values():
        assert versions == sorted(versions)
        assert [time for _, time, _ in versions] == sorted(time for _, time, _ in versions)
        assert len({publisher for _, _, publisher in versions}) == 1


@given(
    st.integers(1, 5_000),
    st.floats(1e-9, 40.0, allow_nan=False),
    st.lists(st.floats(0.0, 1.0, exclude_max=True), min_size=1, max_size=20),
)
def test_times_lie_within_the_span_and_nothing_is_very_late(
    publications: int, days: float, lateness: list[float]
) -> None:
    sizes = SampleSizes(publications=publications, days=days)
    rows = np.linspace(0, publications - 1, len(lateness)).astype(np.int64)
    times = publication_times(sizes, rows, np.array(lateness)) - START_US
    on_time = publication_times(sizes, rows, np.zeros(len(rows))) - START_US
    assert (times >= 0).all()
    assert (times < sizes.span_us).all()
    assert (np.diff(on_time) >= 0).all()
    assert (on_time - times <= min(30_000_000, sizes.span_us // 100 + 1)).all()


def test_more_is_published_by_day_than_by_night() -> None:
    sizes = SampleSizes(publications=20_000, days=2.0)
    times = publication_times(sizes, np.arange(20_000), np.zeros(20_000)) - START_US
    for day in range(2):
        night, noon = (
            np.count_nonzero((times >= begin) & (times < begin + DAY_US // 6))
            for begin in (day * DAY_US, day * DAY_US + DAY_US // 2)
        )
        assert noon > 2.5 * night > 0


@given(st.lists(st.integers(0, 4_000_000_000_000_000), min_size=1, max_size=30))
def test_times_are_written_as_events_have_them(times: list[int]) -> None:
    written = timestamps(np.array(times)).to_pylist()
    for time, text in zip(times, written, strict=True):
        seconds, micros = divmod(time, 1_000_000)
        clock = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()
        assert text == parse_timestamp("time", f"{clock}.{micros:06d}Z")


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=30), st.integers(0, 4))
def test_the_length_of_a_number_is_that_of_its_json(steps: list[int], after: int) -> None:
    expected = [len(json.dumps(step / 10**after)) for step in steps]
    assert json_lengths(np.array(steps), after).tolist() == expected


@given(st.lists(st.integers(0, 9_999_999), min_size=1, max_size=20))
def test_numbers_are_written_with_all_their_digits(numbers: list[int]) -> None:
    written = decimals(np.array(numbers), before=2, after=5).to_pylist()
    assert written == [f"{n // 100_000:02d}.{n % 100_000:05d}" for n in numbers]
    assert hexadecimals(np.array(numbers), 6).to_pylist() == [f"{n:06x}" for n in numbers]


@given(st.integers(0, 2**40), st.lists(st.integers(0, 2**40), min_size=1, max_size=20))
@settings(max_examples=50)
def test_a_random_number_belongs_to_its_row_alone(seed: int, rows: list[int]) -> None:
    rng = CounterRng(seed, "a table")
    together = rng.uniform("a purpose", np.array(rows))
    alone = [rng.uniform("a purpose", np.array([row]))[0] for row in rows]
    assert together.tolist() == alone
    assert ((together >= 0.0) & (together < 1.0)).all()
    other = rng.uniform("another purpose", np.array(rows))
    assert (together != other).all()


def test_random_numbers_are_spread_evenly_and_normally() -> None:
    rows = np.arange(40_000)
    rng = CounterRng(3, "a table")
    assert np.histogram(rng.uniform("even", rows), 20, (0, 1))[0] == pytest.approx(2_000, rel=0.1)
    normal = rng.normal("normal", rows)
    assert normal.mean() == pytest.approx(0.0, abs=0.02)
    assert normal.std() == pytest.approx(1.0, abs=0.02)
    assert np.corrcoef(normal[1:], normal[:-1])[0, 1] == pytest.approx(0.0, abs=0.02)
    assert set(rng.below("whole", rows, 7).tolist()) == set(range(7))


def test_ranks_are_picked_as_often_as_their_weights_say() -> None:
    evenly = (np.arange(10_000) + 0.5) / 10_000
    ranks = zipf_picked(evenly, 50)
    assert np.array_equal(ranks, picked(evenly, zipf_weights(50)))
    counts = np.bincount(ranks, minlength=50)
    assert counts == pytest.approx(10_000 * zipf_weights(50), abs=1.0)
