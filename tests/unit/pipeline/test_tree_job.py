"""`pipeline tree`: the trees that the planner builds from the same rates and delays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.pipeline_tables import put

from distributary.content.publication import Publication
from distributary.content.publication_table import to_arrow
from distributary.errors import BadInput
from distributary.fidelity import FidelityProblem, build_trees
from distributary.pipeline.jobs.tree import tree
from distributary.pipeline.store import Store
from distributary.pipeline.stream_problems import ServerTimes
from distributary.topology import Overlay

BROKERS = tuple(f"b{number}" for number in range(7))
OBJECTS = ("x", "y", "z")
# b6 wants nothing; b0 publishes x and z, b3 publishes y.
RATES = {
    ("b1", "x"): 1.5,
    ("b2", "x"): 0.5,
    ("b3", "x"): 1.0,
    ("b4", "x"): 0.8,
    ("b0", "y"): 0.7,
    ("b1", "y"): 0.4,
    ("b5", "y"): 1.2,
    ("b2", "z"): 0.3,
    ("b5", "z"): 0.9,
    ("b6", "z"): 0.0,
}
DELAYS = Overlay.in_unit_square(len(BROKERS), np.random.default_rng(8))


def fill(store: Store) -> None:
    put(
        store,
        "rates",
        pa.table(
            {
                "server": [server for server, _ in RATES],
                "object": [thing for _, thing in RATES],
                "updates_per_second": list(RATES.values()),
            }
        ),
    )
    put(
        store,
        "overlay",
        pa.table(
            {
                "broker": BROKERS,
                "identifier": DELAYS.identifiers,
                "delays": (DELAYS.delays * 100.0).tolist(),
            }
        ),
        files=2,
    )


def problem(source: str, objects: tuple[str, ...] = OBJECTS) -> FidelityProblem:
    """Return the problem from first principles; who wants nothing is not in it."""
    names = [
        name
        for name in BROKERS
        if name == source or any(RATES.get((name, thing), 0.0) > 0.0 for thing in objects)
    ]
    at = [BROKERS.index(name) for name in names]
    return FidelityProblem.in_order(
        names=names,
        source=source,
        objects=objects,
        rates=np.array([[RATES.get((name, thing), 0.0) for thing in objects] for name in names]),
        filter_times=np.array([0.001 if name == source else 0.005 for name in names]),
        send_times=np.array([0.000125 if name == source else 0.001 for name in names]),
        delays=DELAYS.delays[np.ix_(at, at)] * 100.0 * 1e-3,
    )


def parents_of(store: Store, thing: str) -> dict[str, str | None]:
    rows = store.read("trees").to_pylist()
    return {row["server"]: row["parent"] for row in rows if row["object"] == thing}


def test_a_tree_for_each_object_is_that_of_the_planner(store: Store) -> None:
    fill(store)
    report = tree(store, store, root="b0", objects="tree-each", seed=2)
    expected = problem("b0")
    built = build_trees(expected, approach="tree-each", seed=2)
    for x, thing in enumerate(expected.objects):
        assert parents_of(store, thing) == {
            name: None if parent == -1 else expected.names[parent]
            for name, parent in zip(expected.names, built.forest.parents[x].tolist(), strict=True)
            if parent != -2
        }
    assert report.figures["average_loss"] == pytest.approx(built.loss.average, rel=1e-12)
    for method in ("source", "random", "dita"):
        simpler = build_trees(expected, method=method, approach="tree-each", seed=2)
        assert report.figures[method] == pytest.approx(simpler.loss.average, rel=1e-12)
    assert report.rows_in == {"rates": len(RATES), "overlay": len(BROKERS)}


def test_of_one_tree_an_object_has_the_servers_that_it_passes(store: Store) -> None:
    fill(store)
    times = ServerTimes(filter_time=0.3)
    tree(store, store, root="b0", baselines=False, times=times, method="dita")
    expected = problem("b0")
    slow = np.where(np.array(expected.names) == "b0", 0.001, 0.3)
    expected = FidelityProblem(
        expected.names,
        expected.objects,
        expected.rates.copy(),
        slow,
        expected.send_times.copy(),
        expected.delays.copy(),
    )
    (parents,) = build_trees(expected, method="dita").forest.parents.tolist()
    above = {
        name: None if parent < 0 else expected.names[parent]
        for name, parent in zip(expected.names, parents, strict=True)
    }
    for thing in OBJECTS:
        passed: set[str] = {"b0"}
        for (server, wanted), rate in RATES.items():
            at: str | None = server if wanted == thing and rate > 0.0 and server != "b0" else None
            while at is not None:
                passed.add(at)
                at = above[at]
        assert parents_of(store, thing) == {name: above[name] for name in passed}


def test_objects_come_from_the_homes_of_their_publishers(store: Store) -> None:
    fill(store)
    users = pa.table({"user": ["ann", "bob", "cat"], "broker": ["b0", "b3", None]})
    put(store, "users", users)
    published = {"x": "ann", "y": "bob", "z": "cat", "other": "bob"}
    put(store, "publications", quotes(list(published), list(published.values())))
    report = tree(store, store, objects="tree-each", baselines=False)
    assert (report.figures["sources"], report.figures["objects_without_source"]) == (2, 1)
    losses = []
    for source, thing in (("b0", "x"), ("b3", "y")):
        expected = problem(source, (thing,))
        built = build_trees(expected, approach="tree-each")
        losses.append((built.loss.average, int(expected.served.sum())))
        assert parents_of(store, thing)[source] is None
        assert set(parents_of(store, thing)) == set(expected.names)
    assert parents_of(store, "z") == {}
    servers = sum(count for _, count in losses)
    average = sum(loss * count for loss, count in losses) / servers
    assert report.figures["average_loss"] == pytest.approx(average)


def quotes(subjects: list[str], publishers: list[str]) -> Any:
    events = [
        Publication.parse(
            {"specversion": "1.0", "id": name, "source": "/q", "type": "quote", "subject": name}
        )
        for name in subjects
    ]
    return pa.Table.from_batches([to_arrow(events, publishers=publishers)])


def test_without_a_source_or_publishers_the_answer_is_to_name_one(store: Store) -> None:
    fill(store)
    with pytest.raises(BadInput, match="--source: is needed where there are no tables"):
        tree(store, store)


def test_a_source_or_server_that_is_not_in_the_overlay_is_named(store: Store) -> None:
    fill(store)
    with pytest.raises(BadInput, match="--source: broker 'nowhere' is not in the overlay"):
        tree(store, store, root="nowhere")
    other = Store(f"{store.path('')}/other", store.spark)
    rows = {"server": ["lost"], "object": ["x"], "updates_per_second": [1.0]}
    put(other, "rates", pa.table(rows))
    put(other, "overlay", store.read("overlay"))
    with pytest.raises(BadInput, match="rates: server 'lost' is not in the overlay"):
        tree(other, other, root="b0")
