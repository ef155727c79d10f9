"""What brokers do when there is more to do than they can: slow publishers down, and little else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from distributary.broker.broker import Broker
from distributary.broker.client import Accepted, Busy, Ended, Publish
from distributary.broker.dissemination.messages import Offer, Portion
from distributary.broker.effects import Effect
from distributary.broker.encoding import decode
from distributary.broker.links.messages import Hop, Routed
from distributary.simulator import Simulation, read_scenario

SCENARIOS = Path(__file__).parents[2] / "scenarios"
# How much one turn may ask for: a hundred times what a publication takes.
EFFECTS_MAX = 2_000


class Listener:
    """Counts what is sent, and what is sent again."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.again: Counter[str] = Counter()
        self._seen: set[object] = set()

    def listen(self, sender: str, to: str, message: object, now_ns: int) -> None:
        if isinstance(message, Hop):
            self._count("Hop", (sender, to, message.number))
            if (sender, to, message.number, "read") not in self._seen:
                self._seen.add((sender, to, message.number, "read"))
                self._carried(sender, decode(message.message))
        elif isinstance(message, Publish | Busy):
            self.sent[type(message).__name__] += 1
        elif isinstance(message, Accepted):
            # What has to wait is to be sent again, and what was accepted is not.
            self._count("Accepted", (to, message.session, message.number))

    def _carried(self, sender: str, message: object) -> None:
        if isinstance(message, Routed) and message.origin == sender:
            message = decode(message.message)
            if isinstance(message, Offer):
                self._count("Offer", (message.item.identity, message.root))
        elif isinstance(message, Portion) and message.root == sender:
            homes = tuple(sorted(message.plan.homes()))
            self._count("Portion", (message.item.identity, homes))

    def _count(self, kind: str, what: object) -> None:
        self.sent[kind] += 1
        if what in self._seen:
            self.again[kind] += 1
        self._seen.add(what)


@pytest.mark.parametrize("seed", range(2))
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
    listener = Listener()
    simulation.world.listeners.append(listener.listen)
    simulation.run()
    assert simulation.violations == []
    assert simulation.exactly_once.made == simulation.exactly_once.owed > 0
    assert simulation.pressure.busy > 0
    assert listener.sent["Offer"] > 600
    listener.sent["Accepted"] = listener.sent["Publish"]
    for kind, sent in listener.sent.items():
        assert listener.again[kind] <= 0.02 * sent, (kind, listener.again, listener.sent)
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
    assert simulation.violations == []
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
    assert simulation.violations == []
    assert reasons["the disk of this broker is nearly full"] > 0
    assert simulation.faults.failed_commits > 0
