"""Nothing is left of publications that are over: neither records nor content nor memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from tests.broker_state import state_of
from tests.content_worlds import JPEG, SETTINGS, TEXT, ContentWorld

from distributary.broker.settings import ns

# Longer than anything is kept: items at homes, what was published, sessions.
OVER_S = 4 * (SETTINGS.membership.lost_s + SETTINGS.content.retention_s + 40.0)
EVERY_S = 0.2
QUICK = replace(SETTINGS, content=replace(SETTINGS.content, put_s=60.0))


def size_of(state: object) -> int:
    """How many values there are in the state of a broker."""
    total, waiting = 0, [state]
    while waiting:
        value = waiting.pop()
        if isinstance(value, tuple | list | frozenset):
            waiting.extend(value)
        else:
            total += 1
    return total


class Busy(ContentWorld):
    """A world in which something is always published, with content or without."""

    def __init__(self) -> None:
        super().__init__(4, settings=QUICK)
        self.published = 0
        for home, accept in zip(self.members, ([JPEG], [TEXT], None, None), strict=True):
            self.subscribe(f"s{home}", home, accept=accept)
        self.run_s(3)

    def publish_more(self, count: int) -> None:
        """Publish so much, and wait until all of it is over."""
        for k in range(count):
            self.world.at(self.world.now_ns + ns(k * EVERY_S), self._publish_one)
        self.run_s(count * EVERY_S + OVER_S)
        assert self.violations() == []
        assert len(self.ledger.got) == self.published * len(self.members)

    def _publish_one(self) -> None:
        self.published += 1
        kind = None if self.published % 3 == 0 else "application/pdf"
        home = self.members[self.published % 4]
        source = f"/maps/{home}"
        name = f"{self.published:06d}"
        self.publish(name, home, media_type=kind, megabytes=0.1, source=source)

    def records(self) -> dict[str, int]:
        """How many records of each kind all brokers have."""
        keys = (key for node in self.world.nodes.values() for key in node.journal)
        return dict(Counter("/".join(key.split("/")[:2]) for key in keys))

    def content(self) -> int:
        """How much content all hosts have."""
        return sum(len(node.store) for node in self.world.nodes.values())

    def memory(self) -> list[int]:
        """How much each broker has in memory."""
        nodes = [self.world.nodes[member] for member in self.members]
        return [size_of(state_of(node.broker)) for node in nodes if node.broker is not None]


def check(count: int) -> None:
    """The state after many publications is the state after a hundred."""
    world = Busy()
    world.publish_more(100)
    records, memory = world.records(), world.memory()
    assert world.content() == 0
    world.publish_more(count)
    assert world.content() == 0
    assert world.records() == records
    for before, after in zip(memory, world.memory(), strict=True):
        assert after <= 1.01 * before + 20


def test_nothing_is_left_of_what_is_over() -> None:
    check(400)


@pytest.mark.full
def test_nothing_is_left_after_ten_thousand_publications() -> None:
    check(10_000)
