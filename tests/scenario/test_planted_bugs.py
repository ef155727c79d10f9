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


class Suspicious(Simulation):
    """A run that ends as soon as somebody complains: whatever follows shows nothing new."""

    awaited = ""

    @property
    def end_ns(self) -> int:
        said = {violation.checker for one in self._checkers for violation in one.violations}
        return self.world.now_ns if self.awaited in said else super().end_ns


def check(bug: Bug) -> None:
    """See that somebody complains within a few seeds, and that it is whom the bug names."""
    scenario = read_scenario(SCENARIOS / f"{bug.scenario}.toml")
    for seed in (bug.seed, *(seed for seed in range(SEEDS) if seed != bug.seed)):
        simulation = Suspicious(
            scenario, seed=seed, parts=bug.parts, node=bug.node, publisher=bug.publisher
        )
        simulation.awaited = bug.checker
        simulation.run()
        if bug.checker in {violation.checker for violation in simulation.violations}:
            return
    pytest.fail(f"nothing in scenarios/{bug.scenario}.toml shows that a broker {bug.name}")


# For every checker and every scenario in which it has to complain, the first one: that shows that
# they do, and the others show of how much.
FIRST = list({(bug.scenario, bug.checker): bug for bug in BUGS[::-1] if not bug.rare}.values())


@pytest.mark.parametrize("bug", FIRST, ids=lambda bug: bug.name)
def test_a_planted_bug_is_noticed(bug: Bug) -> None:
    check(bug)


@pytest.mark.full
@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug not in FIRST], ids=lambda bug: bug.name)
def test_every_other_planted_bug_is_noticed(bug: Bug) -> None:
    check(bug)


def test_no_bug_is_planted_twice() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS)
