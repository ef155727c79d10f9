"""The scenarios that come along: safety under faults, and afterwards everything owed arrives.

A failure prints the command that shows it again.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.scenario.keeping import check_kept

from distributary.simulator import Simulation, read_scenario

SCENARIOS = Path(__file__).parents[2] / "scenarios"
PATHS = sorted(SCENARIOS.glob("*.toml"))
SMALL = [path for path in PATHS if read_scenario(path).size == "small"]
LARGE = [path for path in PATHS if path not in SMALL]
SEEDS_FULL = 200
# A publisher's next home overtook its lost one; a root came back after another had served; a
# publication was forgotten before the root that had come back was offered it. A client came back
# to a home with an old queue. One was moved and changed its subscription while its old home was
# behind a partition, was owed something by a root that another told of its withdrawal, or
# redirected what the change does not ask for. A root heard of a withdrawal in another cell, and
# sent the next home a later item first. One that had lost its home got what it had wanted there.
# A root heard of a registration by an older word first, and did not serve what it was owed. A
# message waited for the processor until there was somebody who did not know its kind. What an
# old home redirected, or was owed for one generation, was overtaken by a later item for another.
# So was what a root that had come back did not know that somebody had changed to, and what one
# that stood in for it did not know that somebody had changed from.
# What was published before a client was told came behind what it had by then. A broker that was
# the root no more sent an item for what it had been told of since, and not those before it.
MENDED = [
    ("changes", 70084),
    ("changes", 70168),
    ("changes-migration", 70112),
    ("changes-split", 70191),
    ("changes-split", 81302),
    ("clock-skew", 70049),
    ("lost-root", 3),
    ("lost-root", 70303),
    ("lost-root", 70308),
    ("lost-root", 81031),
    ("migration-lost", 81028),
    ("changes-split", 604),
    ("changes-split", 615),
    ("changes-split", 623),
    ("migration-split", 200002),
    ("lost-broker", 4),
    ("slow-join", 5),
]


# Tests of one subject run these, and also check in them what must hold.
MADE_ELSEWHERE = {
    "churn",
    "full-disk",
    "mass-migration",
    "narrow-brokers",
    "overload",
    "stream-small",
    "stuck",
}


def check(path: Path, seed: int) -> dict[str, object]:
    simulation = Simulation(read_scenario(path), seed=seed)
    simulation.run()
    return check_kept(simulation)


@pytest.mark.parametrize(
    "path",
    [path for path in SMALL if path.stem not in MADE_ELSEWHERE],
    ids=lambda path: path.stem,
)
def test_a_small_scenario_keeps_what_must_hold(path: Path) -> None:
    check(path, 0)


@pytest.mark.parametrize(("name", "seed"), MENDED)
def test_a_run_that_failed_once_does_not_fail_again(name: str, seed: int) -> None:
    check(SCENARIOS / f"{name}.toml", seed)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(SEEDS_FULL))
@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_a_small_scenario_keeps_it_with_many_seeds(path: Path, seed: int) -> None:
    check(path, seed)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("path", LARGE, ids=lambda path: path.stem)
def test_a_large_scenario_keeps_it_too(path: Path, seed: int) -> None:
    check(path, seed)


@pytest.mark.parametrize("name", ["churn", "stream-small"])
def test_the_same_seed_gives_the_same_report(name: str) -> None:
    one, same, other = (check(SCENARIOS / f"{name}.toml", seed) for seed in (0, 0, 1))
    assert one == same
    assert one["log_hash"] != other["log_hash"]
