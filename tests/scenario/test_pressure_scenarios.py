"""What brokers do when there is more to do than they can: slow publishers down, and little else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from benchmarks.broker.overload import Repeats
from tests.scenario.keeping import check_kept

from distributary.broker.broker import Broker
from distributary.broker.client import Busy, Ended
from distributary.broker.host import Effect
from distributary.simulator import Simulation, read_scenario

SCENARIOS = Path(__file__).parents[2] / "scenarios"
# How much one turn may ask for: a hundred times what a publication takes.
EFFECTS_MAX = 2_000


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.full)])
def test_overload_slows_publishers_and_little_is_sent_again(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    largest = 0

    def counting(name: str) -> Any:
        method = getattr(Broker, name)

        def turn(broker: Broker, *args: Any, **kwargs: Any) -> list[Effect]:
            nonlocal largest
            effects: list[Effect] = method(broker, *args, **kwargs)
            largest = max(largest, len(effects))
            return effects

        return turn

    for name in ("receive", "wake"):
        monkeypatch.setattr(Broker, name, counting(name))
    simulation = Simulation(read_scenario(SCENARIOS / "overload.toml"), seed=seed)
    repeats = Repeats()
    simulation.world.listeners.append(repeats.listen)
    simulation.run()
    check_kept(simulation)
    assert simulation.pressure.busy > 0
    assert repeats.sent["Offer"] > 600
    for kind in ("Hop", "Offer", "Portion"):
        assert repeats.again[kind] <= 0.02 * repeats.sent[kind], (repeats.again, repeats.sent)
    # Of all that clients send, with what they were told to wait with.
    published = simulation.world.message_counts["Publish"]
    assert repeats.again["Accepted"] <= 0.03 * published
    assert largest <= EFFECTS_MAX


def test_stuck_clients_are_told_that_it_is_over() -> None:
    simulation = Simulation(read_scenario(SCENARIOS / "stuck.toml"), seed=1)
    reasons: Counter[str] = Counter()
    simulation.world.listeners.append(
        lambda _, __, message, ___: (
            reasons.update([message.reason]) if isinstance(message, Ended) else None
        )
    )
    simulation.run()
    check_kept(simulation)
    assert reasons.keys() == {"bytes"}
    assert simulation.delays.compared > 1_000


def test_disks_that_are_full_make_clients_wait_and_commits_fail() -> None:
    simulation = Simulation(read_scenario(SCENARIOS / "full-disk.toml"), seed=1)
    reasons: Counter[str] = Counter()
    simulation.world.listeners.append(
        lambda _, __, message, ___: (
            reasons.update([message.reason]) if isinstance(message, Busy) else None
        )
    )
    simulation.run()
    check_kept(simulation)
    assert reasons["the disk of this broker is nearly full"] > 0
    assert simulation.faults.failed_commits > 0


def test_a_home_that_is_back_has_no_more_under_way_than_a_window() -> None:
    """Relays that go on bring clients more, perhaps before what has waited is in order."""
    simulation = Simulation(read_scenario(SCENARIOS / "away.toml"), seed=70119)
    simulation.run()
    check_kept(simulation)
