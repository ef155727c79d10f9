"""Whatever problem or wiring is written comes back as it was, from JSON and from Parquet."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies_wiring import wiring_problems
from tests.wiring_sameness import same_wiring_problem

from distributary.content.documents import document_text, parse_document
from distributary.wiring.cost import cost
from distributary.wiring.positions import Positions
from distributary.wiring.problem import WiringProblem
from distributary.wiring.problem_file import parse_problem, problem_document
from distributary.wiring.problem_tables import read_problem_tables
from distributary.wiring.problem_writer import write_problem_tables
from distributary.wiring.wiring import Wiring
from distributary.wiring.wiring_file import parse_wiring, wiring_document
from distributary.wiring.wiring_tables import read_wiring_tables, write_wiring_tables


def positions_of(problem: WiringProblem, seed: int) -> Positions:
    rng = np.random.default_rng(seed)
    return Positions(
        rng.normal(size=(problem.user_count, 2)), rng.normal(size=(problem.broker_count, 2))
    )


def wiring_of(problem: WiringProblem, seed: int) -> Wiring:
    broker_of = np.random.default_rng(seed).integers(problem.broker_count, size=problem.user_count)
    return Wiring("random", "mst", broker_of, cost(problem, broker_of), 0.0, 0.25, problem=problem)


@given(wiring_problems(), st.booleans())
def test_a_problem_survives_json(problem: WiringProblem, placed: bool) -> None:
    positions = positions_of(problem, 1) if placed else None
    text = document_text(problem_document(problem, positions=positions))
    file = parse_problem(parse_document(text))
    assert same_wiring_problem(file.problem, problem)
    assert file.user_order == problem.users
    assert file.warnings == ()
    assert (file.positions is not None) == placed
    if positions is not None and file.positions is not None:
        assert np.array_equal(file.positions.users, positions.users)
        assert np.array_equal(file.positions.brokers, positions.brokers)


@given(wiring_problems(), st.randoms(use_true_random=False))
def test_the_order_in_a_file_changes_nothing_but_the_order_of_results(
    problem: WiringProblem, random: Random
) -> None:
    document = problem_document(problem)
    users, brokers = list(range(problem.user_count)), list(range(problem.broker_count))
    random.shuffle(users)
    random.shuffle(brokers)
    names = [problem.users[u] for u in users]
    shuffled = {
        "users": [document["users"][u] for u in users],  # type: ignore[index]
        "brokers": [document["brokers"][b] for b in brokers],  # type: ignore[index]
        "access_cost": problem.access_prices[np.ix_(users, brokers)].tolist(),
        "core_cost": problem.core_prices[np.ix_(brokers, brokers)].tolist(),
    }
    file = parse_problem(shuffled)
    assert same_wiring_problem(file.problem, problem)
    assert list(file.user_order) == names
    written = wiring_document(problem, wiring_of(problem, 2), file.user_order)
    assert list(written["assignment"]) == names  # type: ignore[call-overload]


@given(wiring_problems(), st.booleans())
@settings(max_examples=25)
def test_a_problem_survives_parquet(problem: WiringProblem, placed: bool) -> None:
    positions = positions_of(problem, 1) if placed else None
    with tempfile.TemporaryDirectory() as folder:
        write_problem_tables(problem, folder, positions=positions)
        file = read_problem_tables(folder)
    assert same_wiring_problem(file.problem, problem)
    assert file.user_order == problem.users
    assert (file.positions is not None) == placed
    if positions is not None and file.positions is not None:
        assert np.array_equal(file.positions.users, positions.users)


@given(wiring_problems(), st.integers(0, 100))
@settings(max_examples=25)
def test_an_assignment_survives_json_and_parquet(problem: WiringProblem, seed: int) -> None:
    wiring = wiring_of(problem, seed)
    text = document_text(wiring_document(problem, wiring))
    read = parse_wiring(parse_document(text), problem)
    assert np.array_equal(read.broker_of, wiring.broker_of)
    assert read.warnings == ()
    with tempfile.TemporaryDirectory() as folder:
        write_wiring_tables(problem, wiring, Path(folder) / "result", problem.users[::-1])
        tables = read_wiring_tables(Path(folder) / "result", problem)
    assert np.array_equal(tables.broker_of, wiring.broker_of)
