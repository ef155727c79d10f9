"""A broker that forgets to pass on what still comes for a client that has left is caught."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distributary.broker.deliveries.queue import Queued
from distributary.broker.migration import Migration
from distributary.broker.migration.arrival import Place
from distributary.broker.migration.departures import Departures
from distributary.broker.part import Part
from distributary.broker.turn import Turn
from distributary.simulator.scenario_file import scenario_from
from distributary.simulator.simulation import Simulation

SEED = 1

MOVING: dict[str, Any] = {
    "size": "small",
    "overlay": {"brokers": 8},
    "workload": {
        "publications": 80,
        "publishers": 4,
        "subscriptions": 12,
        "matching": 0.5,
        "types": 4,
        "register_prices": True,
        "begin_s": 6,
        "duration_s": 24,
        "settle_s": 40,
    },
    "settings": {
        "membership": {"period_s": 1},
        "migration": {
            "enabled": True,
            "period_s": 3,
            "clients": 4,
            "threshold": 0.05,
            "redirect_s": 2,
        },
    },
}


class _Forgetful(Departures):
    def redirect(self, subscription: str, parcel: Queued, place: Place, turn: Turn) -> None:
        pass


class RedirectsNothing(Migration):
    """Keeps what still comes for a client that has left to itself."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._departures = _Forgetful(core)


def run(parts: dict[str, type[Part]] | None) -> Simulation:
    simulation = Simulation(scenario_from(MOVING, Path("broken.toml")), seed=SEED, parts=parts)
    simulation.run()
    return simulation


def test_a_broker_that_redirects_nothing_is_caught() -> None:
    simulation = run({"migration": RedirectsNothing})
    assert {violation.checker for violation in simulation.violations} == {"exactly once"}


def test_the_healthy_broker_is_not() -> None:
    simulation = run(None)
    assert simulation.migrated
    assert simulation.violations == []
