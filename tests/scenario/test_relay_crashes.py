"""A broker that content only passes is killed at every message, which is lost; nothing else is.

It has nothing on its disk, and neither the root nor the publisher's home asks within the run: only
the links can have brought what it lost.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from tests.broker_overlays import SECOND
from tests.content_worlds import SETTINGS, ContentWorld

from distributary.broker.links.messages import Gathered, Hop, HopAck

EVENTS = 3
AWAY_S = 0.3
BROKERS = 24
PATIENT = replace(SETTINGS, content=replace(SETTINGS.content, repeat_s=1000.0, retention_s=5000.0))


@cache
def way() -> tuple[str, str, str, str]:
    """A publisher's home, a root, the broker between it and a subscriber's home, and that."""
    world = ContentWorld(BROKERS, settings=PATIENT)
    root = world.root_of()
    for home in world.members:
        walk = world.overlay.walk(root, home)
        if len(walk) == 3:
            others = (one for one in world.members if one not in walk)
            return next(others), root, walk[1], home
    raise AssertionError("no way has three brokers")


class Run:
    """One publisher and one subscriber, and a broker in between that goes down.

    Attributes
    ----------
    messages
        How many messages over links came to it, or left it.
    """

    def __init__(self, kill: int | None = None, after_s: float = 0.0) -> None:
        publisher, _, self.relay, home = way()
        self.messages = 0
        self._kill, self._after_s = kill, after_s
        self.world = ContentWorld(BROKERS, settings=PATIENT)
        self.world.subscribe("s", home=home)
        self.world.run_s(2)
        self.world.world.listeners.append(self._listen)
        for number in range(EVENTS):
            self.world.publish(f"event {number}", publisher, media_type=None)
            self.world.run_s(0.01)
        self.world.run_s(6)

    def _listen(self, sender: str, to: str, message: object, now_ns: int) -> None:
        if self.relay in (sender, to) and isinstance(message, Hop | HopAck | Gathered):
            self.messages += 1
            if self.messages - 1 == self._kill:
                self.world.overlay.network.apart = frozenset({self.relay})
                self.world.world.at(now_ns, self._reconnect)
                self.world.world.at(now_ns + round(self._after_s * SECOND), self._crash)

    def _reconnect(self) -> None:
        self.world.overlay.network.apart = frozenset()

    def _crash(self) -> None:
        world = self.world.world
        world.crash(self.relay)
        back_ns = world.now_ns + round(AWAY_S * SECOND)
        world.at(back_ns, self.world.overlay.restart, self.relay)


@pytest.mark.parametrize("after_s", [0.0, 0.1])
def test_a_broker_that_content_passes_may_go_down_at_any_message(after_s: float) -> None:
    messages = Run().messages
    assert messages >= 2 * EVENTS + 2
    for kill in range(messages):
        run = Run(kill, after_s)
        got = [identity for identity, _ in run.world.got("s")]
        assert got == [f"event {number}" for number in range(EVENTS)], f"message {kill}"
        assert run.world.violations() == [], f"message {kill}"
        disk = run.world.world.nodes[run.relay].journal
        assert not [key for key in disk if key.startswith(("links/out/", "relays/"))]
