"""The job `sample`: all tables at once, users and brokers, quotes, and what is refused."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from distributary.cli.pipeline.sample import sample as command
from distributary.errors import BadInput
from distributary.pipeline.jobs.sample import frames, sample
from distributary.pipeline.sample import SampleSizes, network, sample_tables
from distributary.pipeline.sample._quote_kernels import reverting_jumps
from distributary.pipeline.sample.publications import publications_block
from distributary.pipeline.sample.quotes import object_means, object_quotes
from distributary.pipeline.sample.subscriptions import subscriptions_block
from distributary.pipeline.schemas import table_schema
from distributary.topology.overlay import Overlay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from distributary.pipeline.store import Store

SMALL = SampleSizes(
    publications=9_000, subscriptions=60, users=300, brokers=12, objects=3, seconds=40
)


def by_hand(sizes: SampleSizes, seed: int) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of all tables, each made in one go and without Spark."""
    blocks = {
        "publications": (publications_block, sizes.publications),
        "subscriptions": (subscriptions_block, sizes.subscriptions),
        "users": (network.users_block, sizes.users),
        "brokers": (network.brokers_block, sizes.brokers),
        "access_costs": (network.access_costs_block, sizes.users),
        "core_costs": (network.core_costs_block, sizes.brokers),
        "overlay": (network.overlay_block, sizes.brokers),
    }
    rows = {
        name: block(sizes, seed, np.arange(count)).to_pylist()
        for name, (block, count) in blocks.items()
    }
    quotes = [batch for n in range(sizes.objects) for batch in object_quotes(sizes, seed, n)]
    return {**rows, "quotes": pa.Table.from_batches(quotes).to_pylist()}


def test_the_job_writes_every_table_and_its_rows_are_those_made_by_hand(store: Store) -> None:
    report = sample(store, SMALL, seed=11)
    expected = by_hand(SMALL, 11)
    assert dict(report.rows_out) == {name: len(rows) for name, rows in expected.items()}
    for name, rows in expected.items():
        read = store.frame(name)
        assert read.schema.simpleString() == table_schema(name).struct_type.simpleString()
        key = itemgetter(*table_schema(name).key)
        assert sorted(read.toArrow().to_pylist(), key=key) == sorted(rows, key=key)


def test_frames_are_not_made_before_they_are_used(spark: SparkSession) -> None:
    huge = SampleSizes(publications=1_000_000_000, users=10_000_000, brokers=1_024)
    made = sample_tables(spark, huge, 1)
    assert (
        made["publications"].schema.simpleString()
        == table_schema("publications").struct_type.simpleString()
    )
    assert len(made) == 8


def test_distances_are_a_metric_and_the_overlay_can_be_routed_in() -> None:
    rows = {name: made for name, made in by_hand(SMALL, 2).items() if name != "publications"}
    core = np.array([row["costs"] for row in rows["core_costs"]])
    access = np.array([row["costs"] for row in rows["access_costs"]])
    assert core.shape == (12, 12)
    assert access.shape == (300, 12)
    assert np.array_equal(core, core.T)
    assert not core.diagonal().any()
    detours = core[:, :, None] + core[None, :, :]
    assert (core[:, None, :] <= detours + 1e-12).all()
    assert (access[:, :, None] <= access[:, None, :] + core[None, :, :] + 1e-12).all()
    nearest = access.argmin(axis=1)
    assert np.mean(nearest == np.arange(300) % 12) > 0.5
    names = [row["broker"] for row in rows["brokers"]]
    assert names == sorted(names) == [row["broker"] for row in rows["overlay"]]
    assert all(row["capacity"] > 0.0 for row in rows["brokers"])
    delays = np.array([row["delays"] for row in rows["overlay"]])
    overlay = Overlay(tuple(row["identifier"] for row in rows["overlay"]), delays)
    assert len(set(overlay.identifiers)) == len(overlay.identifiers) == 12
    assert overlay.tables is not None


def test_most_users_have_a_home_and_some_have_none_yet() -> None:
    users = network.users_block(SMALL, 2, np.arange(300))
    assert 0 < users["broker"].null_count < 30
    assert set(users["broker"].drop_null().to_pylist()) == {f"broker-{b:04d}" for b in range(12)}


def reverting_jumps_slowly(
    jumps: list[bool], shocks: list[float], mean: float, reversion: float
) -> list[float]:
    """The twin of the kernel, one value from the one before."""
    values = []
    value = mean
    for jump, shock in zip(jumps, shocks, strict=True):
        value = value + (reversion * (mean - value) + shock) if jump else value
        values.append(value)
    return values


@given(
    st.lists(st.tuples(st.booleans(), st.floats(-5.0, 5.0)), max_size=40),
    st.floats(1.0, 200.0),
    st.floats(0.0, 1.0),
)
def test_the_compiled_process_is_the_obvious_one(
    steps: list[tuple[bool, float]], mean: float, reversion: float
) -> None:
    jumps, shocks = [jump for jump, _ in steps], [shock for _, shock in steps]
    values = np.empty(len(steps))
    reverting_jumps(np.array(jumps, bool), np.array(shocks, float), mean, reversion, values)
    assert values.tolist() == pytest.approx(reverting_jumps_slowly(jumps, shocks, mean, reversion))


def test_quotes_come_every_second_and_stay_or_jump_around_their_mean() -> None:
    sizes = SampleSizes(objects=2, seconds=70_000)
    for number in range(2):
        quotes = pa.Table.from_batches(object_quotes(sizes, 4, number))
        times = quotes["time"].cast(pa.int64()).to_numpy()
        values = quotes["value"].to_numpy()
        assert len(values) == 70_000
        assert (np.diff(times) == 1_000_000).all()
        stays = np.mean(np.diff(values) == 0.0)
        assert 0.35 < stays < 0.95
        mean = object_means(4, np.array([number]))[0]
        assert values.mean() == pytest.approx(mean, rel=0.001)
        assert values.std() > 0.0005 * mean
        # Far from the mean, the next value is on average nearer to it.
        off = values - mean
        far = np.abs(off[:-1]) > off.std()
        assert np.mean(np.diff(off)[far] * np.sign(off[:-1][far])) < 0.0


@pytest.mark.parametrize(
    ("wrong", "option"),
    [
        ({"publications": 0}, "--publications"),
        ({"subscriptions": -5}, "--subscriptions"),
        ({"users": 10**9}, "--users"),
        ({"brokers": 1_025}, "--brokers"),
        ({"objects": 0}, "--objects"),
        ({"seconds": 0}, "--seconds"),
        ({"brokers": 5, "servers": 6}, "--servers"),
        ({"matches": 0.0}, "--matches"),
        ({"matches": float("nan")}, "--matches"),
        ({"days": float("inf")}, "--days"),
    ],
)
def test_a_size_that_makes_no_sense_is_refused_by_its_option(
    wrong: dict[str, Any], option: str
) -> None:
    with pytest.raises(BadInput) as refused:
        SampleSizes(**wrong)
    assert refused.value.place == option


def test_a_negative_seed_is_refused(spark: SparkSession) -> None:
    with pytest.raises(BadInput, match="--seed"):
        frames(spark, SMALL, seed=-1)


def test_the_command_refuses_before_it_starts_spark() -> None:
    app = typer.Typer()
    app.command()(command)
    refused = CliRunner().invoke(app, ["--data", "nowhere", "--brokers", "5000"])
    assert isinstance(refused.exception, BadInput)
    assert refused.exception.place == "--brokers"
