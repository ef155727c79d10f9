"""What must hold after every run of a scenario."""

from __future__ import annotations

from typing import Any

from distributary.simulator import Simulation, report_of

__all__ = ["check_kept"]


def check_kept(simulation: Simulation) -> dict[str, Any]:
    """Assert that a run that is over has kept everything, and return its report."""
    report = report_of(simulation)
    name, seed = simulation.scenario.path.name, simulation.seed
    replay = f"distributary simulate scenarios/{name} --seed {seed}"
    assert report["violations"] == [], f"replay: {replay}"
    deliveries = report["deliveries"]
    assert deliveries["made"] == deliveries["owed"]
    assert deliveries["duplicates"] == 0
    # A run in which nothing happens proves nothing.
    assert deliveries["owed"] > 0 or report["loss_of_fidelity"]
    return report
