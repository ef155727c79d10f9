"""Scenarios that nobody has thought of keep what must hold, too.

A failure prints how to see it again.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from tests.scenario.random_scenarios import random_scenario, scenario_text

from distributary.simulator import Simulation, report_of
from distributary.simulator.scenario_file import scenario_from

# Those that have failed once come behind the first ones.
SEEDS = (*range(8), 86, 200, 1042, 1241, 1249)
SEEDS_FULL = [seed for seed in range(8, 600) if seed not in SEEDS]


def check(seed: int) -> None:
    scenario = scenario_from(random_scenario(seed), Path("scenario.toml"))
    simulation = Simulation(scenario, seed=seed)
    simulation.run()
    report = report_of(simulation)
    assert report["violations"] == [], (
        f"replay: python -m tests.scenario.random_scenarios {seed} -o scenario.toml && "
        f"distributary simulate scenario.toml --seed {seed}"
    )
    assert report["deliveries"]["made"] == report["deliveries"]["owed"]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_scenario_keeps_what_must_hold(seed: int) -> None:
    check(seed)


@pytest.mark.full
@pytest.mark.parametrize("seed", SEEDS_FULL)
def test_many_random_scenarios_keep_it(seed: int) -> None:
    check(seed)


def test_a_random_scenario_is_read_from_its_text_as_it_was_made() -> None:
    for seed in range(50):
        document = random_scenario(seed)
        assert document == random_scenario(seed)
        assert tomllib.loads(scenario_text(document)) == document
