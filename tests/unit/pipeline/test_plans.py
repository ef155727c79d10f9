"""`pipeline plans`: a plan per publication, the same as placing each on its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from tests.pipeline_tables import put

from distributary.content.calibrated_graph import graph_for
from distributary.content.content_space import ContentSpace
from distributary.content.publication import Publication
from distributary.content.publication_table import to_arrow
from distributary.errors import BadInput
from distributary.pipeline.graph import calibration
from distributary.pipeline.jobs.plans import frames, plans
from distributary.pipeline.overlay import read_overlay
from distributary.pipeline.store import Store
from distributary.placement import PlacementProblem, cost, place
from distributary.placement.baselines import all_in_leaves, all_in_root, single_format
from distributary.placement.plan_file import parse_plan
from distributary.topology import DisseminationTree, Overlay, TreeNode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BROKERS = tuple(f"b{number:02}" for number in range(12))
PDF, TEXT, SMALL = "application/pdf", "text/plain;charset=utf-8", "image/jpeg;width=320"


def publication(number: int, media_type: str | None, content: bytes) -> Publication:
    document: dict[str, Any] = {
        "specversion": "1.0",
        "id": f"e{number}",
        "source": f"/s{number % 2}",
        "type": f"notice.{number % 3}",
    }
    if media_type == "application/json":
        document |= {"datacontenttype": media_type, "data": {"wind": 3}}
    elif media_type is not None:
        document |= {"datacontenttype": media_type, "data_base64": "A" * (len(content) * 4)}
    return Publication.parse(document)


PUBLICATIONS = [
    publication(0, PDF, bytes(200)),
    publication(1, PDF, bytes(100)),
    publication(2, TEXT, bytes(10)),
    publication(3, "application/json", b""),
    publication(4, PDF, bytes(50)),  # to a broker that is not in the overlay
    publication(5, "application/json", b""),  # wanted in another format than it has
    publication(6, PDF, bytes(50)),  # to nobody who can be served
    publication(7, PDF, bytes(50)),  # to nobody at all
]
# (publication, broker, format); publication 9 is in no table.
DELIVERIES: list[tuple[int, str | None, str | None]] = [
    (0, "b01", SMALL),
    (0, "b02", SMALL),
    (0, "b02", TEXT),
    (0, "b02", TEXT),
    (0, "b07", "audio/mpeg"),
    (0, "b11", PDF),
    (0, None, PDF),
    (0, "b05", None),
    (1, "b03", "image/png;width=640"),
    (1, "b09", "image/webp;width=320"),
    (2, "b04", "audio/aac"),
    (2, "b00", TEXT),
    (3, "b06", "application/json"),
    (3, "b08", "application/json"),
    (4, "elsewhere", PDF),
    (5, "b01", PDF),
    (6, None, PDF),
    (6, "b01", None),
    (9, "b01", PDF),
]


def overlay() -> Overlay:
    return Overlay.in_unit_square(len(BROKERS), np.random.default_rng(5))


@pytest.fixture(scope="module")
def filled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A folder with publications, deliveries and an overlay."""
    store = Store(str(tmp_path_factory.mktemp("plans")), spark)
    network = overlay()
    rows = {
        "publications": pa.Table.from_batches([to_arrow(PUBLICATIONS)]),
        "deliveries": pa.Table.from_pylist(
            [
                {
                    "source": f"/s{number % 2}",
                    "event_id": f"e{number}",
                    "subscription_id": f"s{row}",
                    "user": f"u{row}",
                    "broker": broker,
                    "media_type": media_type,
                    "bytes": 0,
                }
                for row, (number, broker, media_type) in enumerate(DELIVERIES)
            ]
        ),
        "overlay": pa.table(
            {
                "broker": BROKERS,
                "identifier": network.identifiers,
                "delays": [row.tolist() for row in network.delays],
            }
        ),
    }
    for name, made in rows.items():
        put(store, name, made, files=3)
    return store


def rows_of(store: Store) -> list[dict[str, Any]]:
    rows = store.frame("plans").toArrow().to_pylist()
    return sorted(rows, key=lambda row: (row["source"], row["event_id"]))


@pytest.fixture(scope="module")
def planned(filled: Store) -> tuple[Any, dict[str, dict[str, Any]]]:
    report = plans(filled, filled, tasks=1)
    return report, {row["event_id"]: row for row in rows_of(filled)}


def placed_alone(number: int) -> tuple[PlacementProblem, Any]:
    """Return the problem of a publication and its placement, from first principles."""
    event = PUBLICATIONS[number]
    space, network = ContentSpace.default(), overlay()
    name_of = dict(zip(network.identifiers, BROKERS, strict=True))
    digits = len(network.identifiers[0])
    root = network.tables.root_of_key(space.key(space.cell_of(event)).hex()[:digits])
    wants: dict[str, set[str]] = {}
    for at, broker, media_type in DELIVERIES:
        if at == number and broker is not None and media_type is not None:
            wants.setdefault(broker, set()).add(media_type)
    homes = [network.identifiers[BROKERS.index(broker)] for broker in wants]
    tree = DisseminationTree.from_nodes(
        TreeNode(name_of[node], None if parent is None else name_of[parent])
        for node, parent in network.tables.tree_of(root, homes).items()
    )
    graph = graph_for(calibration(), len(event.content))
    source = graph.names.index(str(event.media_type))
    graph = graph.restricted_to(np.flatnonzero(graph.makeable[source]).tolist())
    wanted = [[name in wants.get(broker, ()) for name in graph.names] for broker in tree.names]
    held = [name == str(event.media_type) for name in graph.names]
    problem = PlacementProblem(graph, tree, np.array(wanted), np.array(held))
    return problem, place(problem)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_plan_is_that_of_the_planner_on_the_tree_of_the_routes(
    planned: tuple[Any, dict[str, dict[str, Any]]], number: int
) -> None:
    row = planned[1][f"e{number}"]
    problem, placement = placed_alone(number)
    assert row["failure"] is None
    assert row["broker_count"] == problem.node_count
    for column in ("total_cost", "transmission_cost", "conversion_cost", "lower_bound", "gap"):
        assert row[column] == getattr(placement, column)
    for column, baseline in (
        ("all_in_root", all_in_root),
        ("all_in_leaves", all_in_leaves),
        ("single_format", single_format),
    ):
        assert row[column] == cost(problem, baseline(problem)).total
    found = parse_plan(json.loads(row["plan"]), problem)
    assert np.array_equal(found.receives, placement.plan.receives)
    assert np.array_equal(found.made_from, placement.plan.made_from)
    assert "seconds" not in json.loads(row["plan"])


def test_a_format_that_no_graph_has_is_passed_on_as_it_is(
    planned: tuple[Any, dict[str, dict[str, Any]]],
) -> None:
    row = planned[1]["e3"]
    megabytes = len(PUBLICATIONS[3].content) / 1e6
    assert row["failure"] is None
    assert row["conversion_cost"] == 0.0
    assert row["transmission_cost"] == pytest.approx(megabytes * (row["broker_count"] - 1))


def test_a_publication_that_cannot_be_planned_is_a_row_that_says_why(
    planned: tuple[Any, dict[str, dict[str, Any]]],
) -> None:
    report, rows = planned
    assert {name: row["failure"] for name, row in rows.items() if row["failure"]} == {
        "e4": "broker 'elsewhere': is not in the overlay",
        "e5": "broker 'b01': wants 'application/pdf', which cannot be made from 'application/json'",
        "e6": "deliveries: go to nobody with a home broker and a format",
        "e9": "publication: is not in the table publications",
    }
    assert all(rows[name]["plan"] is None for name in ("e4", "e5", "e6", "e9"))
    assert "e7" not in rows
    assert report.figures["failed"] == 4


def test_the_report_counts_rows_and_adds_up_costs(
    planned: tuple[Any, dict[str, dict[str, Any]]],
) -> None:
    report, rows = planned
    assert report.rows_in == {"publications": 8, "deliveries": len(DELIVERIES)}
    assert report.rows_out == {"plans": len(rows)}
    assert (report.figures["without_broker"], report.figures["without_format"]) == (2, 2)
    for name in ("total_cost", "lower_bound", "all_in_root", "single_format"):
        assert report.figures[name] == pytest.approx(
            sum(row[name] or 0.0 for row in rows.values()), abs=1e-8
        )


def test_plans_do_not_depend_on_the_number_of_tasks(
    filled: Store, planned: tuple[Any, dict[str, dict[str, Any]]]
) -> None:
    again = frames(filled, tasks=5)["plans"].drop("day").toArrow().to_pylist()
    assert {row["event_id"]: row for row in again} == planned[1]


def test_nothing_to_plan_gives_an_empty_table(filled: Store, store: Store) -> None:
    put(store, "overlay", filled.read("overlay"))
    for name in ("publications", "deliveries"):
        put(store, name, filled.read(name).slice(0, 0))
    report = plans(store, store)
    assert report.rows_in == {"publications": 0, "deliveries": 0}
    assert report.rows_out == {"plans": 0}
    assert report.figures["total_cost"] == 0.0
    assert store.frame("plans").count() == 0


def test_an_overlay_that_is_not_square_is_refused(store: Store) -> None:
    made = pa.table({"broker": ["a", "b"], "identifier": ["01", "02"], "delays": [[0.0], [0.0]]})
    put(store, "overlay", made)
    with pytest.raises(BadInput, match=r"overlay: delays of 'a': are 1 for 2 brokers; hint: "):
        read_overlay(store)
