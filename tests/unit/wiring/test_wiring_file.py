"""Wirings in files: what is written, and what is left of an old one when things change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from distributary.errors import BadInput
from distributary.wiring.cost import cost
from distributary.wiring.problem import WiringProblem
from distributary.wiring.problem_file import parse_problem
from distributary.wiring.wiring import Wiring
from distributary.wiring.wiring_file import NO_BROKER, parse_wiring, wiring_document
from distributary.wiring.wiring_tables import read_wiring_tables, write_wiring_tables

DOCUMENT: dict[str, Any] = {
    "brokers": [{"broker": "b1", "capacity": 100.0}, {"broker": "b2", "capacity": 100.0}],
    "users": [
        {"user": "u1", "publishes": [1.0, 0.0], "subscribes": [0, 1]},
        {"user": "u2", "publishes": [0.0, 2.0], "subscribes": [1, 0]},
    ],
    "access_cost": [[1.0, 4.0], [3.0, 1.0]],
    "core_cost": [[0.0, 3.0], [3.0, 0.0]],
}


@pytest.fixture
def problem() -> WiringProblem:
    return parse_problem(DOCUMENT).problem


def wiring_of(problem: WiringProblem, *brokers: int) -> Wiring:
    broker_of = np.array(brokers)
    return Wiring("search", "mst", broker_of, cost(problem, broker_of), 12.0, 0.01, problem=problem)


def test_a_wiring_is_written_with_its_figures_first(problem: WiringProblem) -> None:
    document = wiring_document(problem, wiring_of(problem, 0, 0))
    assert document == {
        "method": "search",
        "total_cost": 12.0,
        "access_cost": 12.0,
        "core_cost": 0.0,
        "lower_bound": 12.0,
        "gap": 0.0,
        "seconds": 0.01,
        "assignment": {"u1": "b1", "u2": "b1"},
        "core": "mst",
    }
    assert list(document)[:8] == [
        "method",
        "total_cost",
        "access_cost",
        "core_cost",
        "lower_bound",
        "gap",
        "seconds",
        "assignment",
    ]


def test_savings_and_moves_are_written_where_there_are_any(problem: WiringProblem) -> None:
    wiring = replace(wiring_of(problem, 0, 1), core="steiner", steiner_saving=1.5, moved=2)
    document = wiring_document(problem, wiring, ["u2", "u1"])
    assert (document["steiner_saving"], document["moved"], document["core"]) == (1.5, 2, "steiner")
    assert list(document["assignment"]) == ["u2", "u1"]  # type: ignore[call-overload]


def test_shortened_core_prices_are_written_where_there_are_any(
    problem: WiringProblem, tmp_path: Path
) -> None:
    for shortened in (True, False):
        given = replace(problem, shortened=shortened)
        document = wiring_document(given, wiring_of(given, 0, 1))
        assert document.get("core_cost_shortened", "absent") == (True if shortened else "absent")
        write_wiring_tables(given, wiring_of(given, 0, 1), tmp_path)
        [summary] = pq.read_table(tmp_path / "wiring_summary.parquet").to_pylist()
        assert summary.get("core_cost_shortened", "absent") == (True if shortened else "absent")


def test_users_and_brokers_may_have_come_and_gone(problem: WiringProblem) -> None:
    read = parse_wiring({"assignment": {"u0": "b1", "u1": "b7"}}, problem)
    assert read.broker_of.tolist() == [NO_BROKER, NO_BROKER]
    assert read.warnings == (
        "users not in the problem, ignored: 'u0'",
        "users new, attached to any broker: 'u2'",
        "users at brokers that are not in the problem, attached to any other: 'u1'",
    )
    read = parse_wiring({"assignment": {"u2": "b2"}}, problem)
    assert read.broker_of.tolist() == [NO_BROKER, 1]


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ([], "document: must be an object"),
        ({}, "assignment: is missing"),
        ({"assignment": []}, "assignment: must be an object, not a list"),
        ({"assignment": {"u1": 3}}, "assignment.u1: must be a string, not 3"),
        ({"assignment": {"u1": ""}}, "assignment.u1: must not be empty"),
        ({"assignment": {"u7": "b1"}}, "assignment: has none of the users"),
    ],
)
def test_faulty_wirings_are_refused(problem: WiringProblem, document: object, place: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_wiring(document, problem)
    assert str(caught.value).startswith(place)


def test_tables_hold_the_assignment_and_the_figures(problem: WiringProblem, tmp_path: Path) -> None:
    wiring = wiring_of(problem, 0, 1)
    write_wiring_tables(problem, wiring, tmp_path / "out", ["u2", "u1"])
    table = pq.read_table(tmp_path / "out" / "wiring.parquet").to_pydict()
    assert table == {"user": ["u2", "u1"], "broker": ["b2", "b1"]}
    [summary] = pq.read_table(tmp_path / "out" / "wiring_summary.parquet").to_pylist()
    assert summary["total_cost"] == wiring.cost.total
    assert summary["core"] == "mst"
    # A second time, the tables are replaced.
    write_wiring_tables(problem, wiring_of(problem, 1, 1), tmp_path / "out")
    read = read_wiring_tables(tmp_path / "out", problem)
    assert read.broker_of.tolist() == [1, 1]


def test_a_folder_without_a_wiring_is_refused(problem: WiringProblem, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no table 'wiring'"):
        read_wiring_tables(tmp_path, problem)
    (tmp_path / "wiring").mkdir()
    with pytest.raises(BadInput, match="in files of its own already"):
        write_wiring_tables(problem, wiring_of(problem, 0, 0), tmp_path)
