"""Brokers that are broken on purpose: each is caught, and the healthy one is not.

A checker that never complains proves nothing. Every broker here breaks one rule that a
reasonable implementation might break, in a small world where it matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from distributary.broker.adaptation import Adaptation, node
from distributary.broker.addresses import Address
from distributary.broker.deliveries import Arrival, Deliveries
from distributary.broker.effects import Send
from distributary.broker.links import Links
from distributary.broker.messages.client import Publish
from distributary.broker.messages.content import Portion
from distributary.broker.part import Part
from distributary.broker.publishing import Publishing
from distributary.broker.streams import Streams
from distributary.broker.streams.amounts import rules_between
from distributary.broker.streams.demands import Demands
from distributary.broker.streams.flow import Flow
from distributary.broker.subscriptions import Subscriptions
from distributary.broker.subscriptions.covering import Covering
from distributary.broker.subscriptions.local_subscription import LocalSubscription
from distributary.broker.turn import Turn
from distributary.simulator.scenario_file import scenario_from
from distributary.simulator.simulation import Simulation

# One with which every one of them shows.
SEED = 2

CONTENT: dict[str, Any] = {
    "size": "small",
    "overlay": {"brokers": 10},
    "workload": {
        "publications": 30,
        "publishers": 6,
        "matching": 0.5,
        "types": 4,
        "begin_s": 6,
        "duration_s": 24,
        "settle_s": 40,
    },
    "settings": {"membership": {"period_s": 1}},
}
STREAMS: dict[str, Any] = {
    "size": "small",
    "overlay": {"brokers": 12, "delay_ms_mean": 0, "access_delay_ms": 0},
    "workload": {
        "objects": 3,
        "interest": 1.0,
        "rates": [1.0, 2.0],
        "publishers": 0,
        "begin_s": 6,
        "duration_s": 30,
        "settle_s": 10,
    },
    "adaptation": {"enabled": False},
    "settings": {"streams": {"fanout": 2}},
}
ADAPTING: dict[str, Any] = {
    **STREAMS,
    "overlay": {
        "brokers": 14,
        "delay_ms_mean": 20,
        "access_delay_ms": 0,
        "filter_ms": 5,
        "send_ms": 1,
    },
    "workload": {**STREAMS["workload"], "objects": 4, "stream_publishers": 4, "duration_s": 60},
    "adaptation": {"window_s": 3, "round_s": 6, "hold_s": 4},
}


def changed(base: dict[str, Any], **tables: Any) -> dict[str, Any]:
    """Return a scenario with some fields of its tables changed."""
    merged = dict(base)
    for name, table in tables.items():
        merged[name] = {**merged.get(name, {}), **table} if isinstance(table, dict) else table
    return merged


def caught(
    document: Mapping[str, Any], parts: dict[str, type[Part]] | None, *, seed: int = SEED
) -> set[str]:
    """Return the checkers that complain about a run."""
    scenario = scenario_from(document, Path("broken.toml"))
    simulation = Simulation(scenario, seed=seed, parts=parts)
    simulation.run()
    return {violation.checker for violation in simulation.violations}


class PromisesFirst(Publishing):
    """Accepts a publication before it is on its disk."""

    def handlers(self) -> Any:
        return {**super().handlers(), Publish: self._hasty}

    def _hasty(self, message: Publish, sender: Address, turn: Turn) -> None:
        self._publish(message, sender, turn)
        turn.effects.sort(key=lambda effect: not isinstance(effect, Send))


class NeverRemembers(Deliveries):
    """Takes everything that arrives for new."""

    def _store(self, arrival: Arrival, turn: Turn) -> None:
        known = self._items.get(arrival.item.identity)
        if known is not None:
            self._items.put(replace(known, subscriptions=()))
        super()._store(arrival, turn)


class _ComparesWithReceived(Flow):
    def _pass_on(self, turn: Turn, stream: Any, version: Any) -> None:
        super()._pass_on(turn, stream, version)
        for branch in stream.branches:
            if branch.last is not None and stream.copy is not None:
                branch.last = stream.copy


class ComparesWithReceived(Streams):
    """Compares a version with the one before it, not with the last one it sent."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._flow.__class__ = _ComparesWithReceived


class _IgnoresOwnTolerance(Demands):
    def rely(self, stream: Any) -> None:
        super().rely(stream)
        for branch in stream.branches:
            branch.rules = rules_between(None, branch.amounts)


class IgnoresOwnTolerance(Streams):
    """Passes on as if its own copy were never off."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._demands.__class__ = _IgnoresOwnTolerance


class NeverReleases(Adaptation):
    """Lets whom it holds wait until the hold expires."""

    def _do(self, output: node.Output, turn: Turn) -> None:
        if not isinstance(output, node.SendRelease):
            super()._do(output, turn)


class _CoversAnything(Covering):
    def find(self, narrow: LocalSubscription) -> LocalSubscription | None:
        alike = (narrow.reading.profile, narrow.subscription.tolerance is not None)
        return next((w for w in self._wide.get(alike, {}).values() if w is not narrow), None)


class CoversTooEagerly(Subscriptions):
    """Keeps a subscription back because there is another one of a like device."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._ledger.covering.__class__ = _CoversAnything


class ForgetsLeases(Subscriptions):
    """Lets subscriptions live for ever."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._lease_ns = 10**18


class SendsAstray(Links):
    """Sends each part of a plan to the child that the part before it was for."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._other: str | None = None

    def send(self, peer: str, message: object, turn: Turn) -> None:
        if isinstance(message, Portion):
            peer, self._other = self._other or peer, peer
        super().send(peer, message, turn)


CROWDED = changed(
    ADAPTING,
    workload={"objects": 8, "stream_publishers": 8},
    adaptation={"round_s": 3, "window_s": 2},
)
TEARING = changed(
    CONTENT,
    fault=[
        {"kind": "torn", "share": 1.0, "at_s": float(at), "until_s": at + 1.5}
        for at in range(8, 24, 3)
    ],
)
LOSING = changed(CONTENT, fault=[{"kind": "drop", "rate": 0.4, "at_s": 6.0, "until_s": 24.0}])
MANY_EACH = changed(CONTENT, workload={"subscriptions": 60, "matching": 0.2})
LEAVING = changed(
    CONTENT,
    workload={"leaving": 0.6, "duration_s": 50},
    settings={"subscriptions": {"lease_s": 4, "registration_s": 3}},
)


@pytest.mark.parametrize(
    ("scenario", "part", "checker"),
    [
        (TEARING, PromisesFirst, "exactly once"),
        (LOSING, NeverRemembers, "exactly once"),
        (STREAMS, ComparesWithReceived, "tolerances"),
        (STREAMS, IgnoresOwnTolerance, "tolerances"),
        (ADAPTING, NeverReleases, "holds"),
        (MANY_EACH, CoversTooEagerly, "exactly once"),
        (LEAVING, ForgetsLeases, "ends"),
        (CONTENT, SendsAstray, "exactly once"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_a_broken_broker_is_caught(
    scenario: dict[str, Any], part: type[Part], checker: str
) -> None:
    assert checker in caught(scenario, {part.name: part})


@pytest.mark.parametrize(
    "scenario",
    [TEARING, LOSING, STREAMS, ADAPTING, CROWDED, MANY_EACH, LEAVING, CONTENT],
    ids=["tearing", "losing", "streams", "adapting", "crowded", "many", "leaving", "content"],
)
def test_the_healthy_broker_is_not(scenario: dict[str, Any]) -> None:
    assert caught(scenario, None) == set()
