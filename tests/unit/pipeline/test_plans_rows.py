"""The parts of `pipeline plans` that run on executors, without Spark."""

from __future__ import annotations

from datetime import date
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributary.content.calibrated_graph import graph_for
from distributary.content.content_space import ContentSpace
from distributary.errors import BadInput
from distributary.pipeline.graph import calibration
from distributary.pipeline.overlay import BrokerOverlay
from distributary.pipeline.schemas import table_schema
from distributary.pipeline.transforms.calibrated_formats import CalibratedFormats
from distributary.pipeline.transforms.plans import whole_publications
from distributary.pipeline.transforms.publication_plans import (
    PlanOptions,
    PublicationPlanner,
    group_starts,
)
from distributary.topology import Overlay

PDF = "application/pdf"
DOCUMENT = calibration()
FORMATS = CalibratedFormats(DOCUMENT)


def brokers(count: int = 20) -> BrokerOverlay:
    overlay = Overlay.in_unit_square(count, np.random.default_rng(1))
    return BrokerOverlay(tuple(f"b{number:02}" for number in range(count)), overlay)


def rows(*groups: tuple[str, int, list[tuple[str | None, str | None]]]) -> pa.RecordBatch:
    """Return rows as planning wants them: (event, bytes, who gets it in which format)."""
    made: list[dict[str, Any]] = []
    for event, size, wishes in groups:
        key = {"day": date(2026, 1, 5), "source": "/s", "event_id": event}
        made.append(key | {"media_type": PDF, "bytes": size, "cell": 3, "broker": None})
        made += [
            key | {"media_type": media_type, "bytes": None, "cell": None, "broker": broker}
            for broker, media_type in wishes
        ]
    kinds = [("day", pa.date32()), ("source", pa.string()), ("event_id", pa.string())]
    kinds += [("media_type", pa.string())]
    kinds += [("bytes", pa.int64()), ("cell", pa.int64()), ("broker", pa.string())]
    return pa.RecordBatch.from_pylist(made, schema=pa.schema(kinds))


@given(
    keys=st.lists(st.sampled_from(["a", "b", "c"]), max_size=12),
    cuts=st.lists(st.integers(0, 12), max_size=6),
)
def test_publications_are_whole_wherever_batches_are_cut(keys: list[str], cuts: list[int]) -> None:
    keys.sort()
    # Twice the key, once as source and once as identifier, so that both are looked at.
    table_ = pa.table({"source": keys, "event_id": keys[::-1]}).sort_by(
        [("source", "ascending"), ("event_id", "ascending")]
    )
    everything = pa.table(
        {
            "day": pa.nulls(len(keys), pa.date32()),
            "source": table_["source"].cast(pa.string()),
            "event_id": table_["event_id"].cast(pa.string()),
            "row": np.arange(len(keys)),
        }
    )
    edges = sorted({0, len(keys), *(cut for cut in cuts if cut <= len(keys))})
    batches = [
        batch
        for begin, end in pairwise(edges)
        for batch in everything.slice(begin, end - begin).combine_chunks().to_batches()
    ]
    found = list(whole_publications(batches))
    assert [row for batch in found for row in batch["row"].to_pylist()] == list(range(len(keys)))
    seen: set[tuple[str, str]] = set()
    for batch in found:
        pairs = set(zip(batch["source"].to_pylist(), batch["event_id"].to_pylist(), strict=True))
        assert not pairs & seen
        assert len(group_starts(batch)) == len(pairs)
        seen |= pairs


@pytest.mark.parametrize("size", [0, 1, 123_457, 10**15])
def test_graphs_are_those_of_the_calibration_digit_by_digit(size: int) -> None:
    whole = graph_for(DOCUMENT, size)
    for index, source in enumerate(whole.names):
        expected = whole.restricted_to(np.flatnonzero(whole.makeable[index]).tolist())
        found = FORMATS.graph(source, size)
        assert found.graph.names == expected.names
        assert np.array_equal(found.graph.sizes, expected.sizes)
        assert np.array_equal(found.graph.costs, expected.costs)
        assert found.graph.names[found.source] == source


def test_a_size_out_of_range_is_refused() -> None:
    with pytest.raises(BadInput, match="bytes: must be between 0 and"):
        FORMATS.graph(PDF, -1)


def test_the_names_of_a_publication_s_own_format_are_one() -> None:
    found = FORMATS.graph("text/plain; charset=UTF-8", 100)
    assert found.index_of["text/plain; charset=UTF-8"] == found.source
    assert found.graph.names[found.source] == "text/plain;charset=utf-8"


def test_the_columns_are_those_of_the_table() -> None:
    planner = PublicationPlanner(brokers(), ContentSpace.default(), DOCUMENT)
    found = planner.plans(rows(("e1", 1000, [("b03", PDF)]), ("e2", 10, [])))
    kinds = {"string": "string", "int": "int32", "double": "double"}
    declared = [column.split() for column in table_schema("plans").columns.split(", ")]
    assert [(field.name, str(field.type)) for field in found.schema] == [
        *((name, kinds[kind.lower()]) for name, kind, *_ in declared),
        ("day", "date32[day]"),
    ]
    assert found.num_rows == 1


def test_links_can_cost_as_much_as_they_delay() -> None:
    wishes: list[tuple[str | None, str | None]] = [(f"b{number:02}", PDF) for number in range(20)]
    network = brokers()
    options = PlanOptions(link_cost="delay", alpha=2.0)
    planner = PublicationPlanner(network, ContentSpace.default(), DOCUMENT, options)
    problem = planner.problem(
        cell=3,
        media_type=PDF,
        content_bytes=1000,
        brokers=np.arange(20),
        wants=[str(media_type) for _, media_type in wishes],
    )
    delays = network.overlay.delays
    mean = delays.sum() / (20 * 19)
    for v in range(1, problem.node_count):
        parent, child = (
            network.brokers.index(problem.tree.names[node]) for node in (problem.tree.parents[v], v)
        )
        assert problem.tree.link_costs[v] == pytest.approx(delays[parent, child] / mean)
    (row,) = planner.plans(rows(("e1", 1000, wishes))).to_pylist()
    assert row["total_cost"] == pytest.approx(2.0 * row["transmission_cost"])
    assert row["transmission_cost"] == pytest.approx(
        float(problem.tree.link_costs[1:].sum()) * float(problem.graph.sizes[0])
    )


def test_a_method_that_would_take_too_long_is_a_reason() -> None:
    many = {
        "formats": [
            {"name": f"f{k:02}", "size": {"fixed": 1.0 + k % 7, "per_mb": k / 10}}
            for k in range(60)
        ],
        "conversions": [
            {
                "from": f"f{i:02}",
                "to": f"f{j:02}",
                "cost": {"fixed": 1.0 + (i * j) % 5, "per_mb": 0},
            }
            for i in range(60)
            for j in range(60)
            if i != j
        ],
    }
    planner = PublicationPlanner(
        brokers(), ContentSpace.default(), many, PlanOptions(method="exact")
    )
    wishes: list[tuple[str | None, str | None]] = [
        (f"b{number % 20:02}", f"f{number:02}") for number in range(1, 60)
    ]
    batch = rows(("e1", 1000, wishes))
    at = batch.schema.get_field_index("media_type")
    formats = batch.column(at).to_pylist()
    batch = batch.set_column(at, "media_type", pa.array(["f00", *formats[1:]]))
    (row,) = planner.plans(batch).to_pylist()
    assert "method 'exact' would take about" in row["failure"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "--method: 'magic' is none of"),
        ({"link_cost": "free"}, "--link-cost: 'free' is none of equal, delay"),
        ({"alpha": -1.0}, "--alpha: must be a finite number of at least 0, not -1"),
        ({"beta": float("nan")}, "--beta: must be a finite number of at least 0, not nan"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        PlanOptions(**options)
