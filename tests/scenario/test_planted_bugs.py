"""Brokers that are broken on purpose: a shipped scenario notices each of them.

That the healthy broker passes the same seeds is what `test_scenario_runs.py` says.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.planted_bugs import BUGS, Bug

from distributary.simulator import Simulation, read_scenario

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SEEDS = 20


def check(bug: Bug) -> None:
    """See that somebody complains within the first seeds, and that it is whom the bug names."""
    scenario = read_scenario(SCENARIOS / f"{bug.scenario}.toml")
    for seed in range(SEEDS):
        simulation = Simulation(
            scenario, seed=seed, parts=bug.parts, node=bug.node, publisher=bug.publisher
        )
        simulation.run()
        if simulation.violations:
            assert bug.checker in {violation.checker for violation in simulation.violations}
            return
    pytest.fail(f"nothing in scenarios/{bug.scenario}.toml shows that a broker {bug.name}")


@pytest.mark.parametrize("bug", [bug for bug in BUGS if not bug.rare], ids=lambda bug: bug.name)
def test_a_planted_bug_is_noticed(bug: Bug) -> None:
    check(bug)


@pytest.mark.full
@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.rare], ids=lambda bug: bug.name)
def test_a_planted_bug_is_noticed_in_time(bug: Bug) -> None:
    check(bug)


def test_no_bug_is_planted_twice() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS)
