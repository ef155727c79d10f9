"""A broker is killed at every single commit of a small run, and nothing is lost or repeated.

The run is the same up to the commit at which it happens, so that all of them are met.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pytest
from tests.broker_overlays import SECOND
from tests.content_worlds import ContentWorld

from distributary.simulator.node import Torn

EVENTS = 3
FATES = (Torn(durable=False), Torn(durable=True, sends=0), Torn(durable=True, sends=1))
AWAY_S = 0.5
SETTLE_S = 12


class Run:
    """Three brokers, a subscriber at each of two of them, and a publisher at the third.

    Attributes
    ----------
    commits
        The brokers that made a commit, in order.
    """

    def __init__(self, kill: int | None = None, fate: Torn = FATES[0]) -> None:
        self.commits: list[str] = []
        self._kill = kill
        self._fate = fate
        self.world = ContentWorld(3)
        for broker in self.world.members:
            self._watch(broker)
        for place in (0, 1):
            self.world.subscribe(f"s{place}", home=self.world.members[place])
        self.world.run_s(2)
        for number in range(EVENTS):
            self.world.publish(f"event {number}", self.world.members[2], media_type=None)
            self.world.run_s(0.5)
        self.world.run_s(SETTLE_S)

    def _watch(self, broker: str) -> None:
        self.world.world.nodes[broker].at_commit = partial(self._at_commit, broker)

    def _at_commit(self, broker: str, writes: Mapping[str, bytes | None]) -> Torn | None:
        self.commits.append(broker)
        if len(self.commits) - 1 != self._kill:
            return None
        return replace(self._fate, then=partial(self._bring_back, broker))

    def _bring_back(self, broker: str) -> None:
        at_ns = self.world.world.now_ns + round(AWAY_S * SECOND)
        self.world.world.at(at_ns, self._restart, broker)

    def _restart(self, broker: str) -> None:
        self.world.overlay.restart(broker)
        self._watch(broker)


@pytest.mark.parametrize("fate", FATES, ids=["before", "after", "after one message"])
def test_a_broker_killed_at_any_commit_owes_nothing_and_repeats_nothing(fate: Torn) -> None:
    commits = len(Run().commits)
    assert commits > 40
    for kill in range(commits):
        run = Run(kill, fate)
        assert len(run.commits) > kill
        assert run.world.violations() == [], f"killed at commit {kill}"
        for name in ("s0", "s1"):
            got = [identity for identity, _ in run.world.got(name)]
            assert got == [f"event {number}" for number in range(EVENTS)], f"commit {kill}"
