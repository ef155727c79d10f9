"""Tables of transitions, and what holds for those that brokers use."""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest

from distributary.broker.core import Transitions
from distributary.broker.links.link import LINK
from distributary.broker.membership.roster import MEMBER


class Light(Enum):
    RED = "red"
    GREEN = "green"


class Press(Enum):
    GO = "go"
    STOP = "stop"


LIGHT: Transitions[Light, Press] = Transitions(
    "light", Light.RED, {(Light.RED, Press.GO): Light.GREEN, (Light.GREEN, Press.STOP): Light.RED}
)


def test_a_step_follows_the_table() -> None:
    assert LIGHT.initial is Light.RED
    assert LIGHT.step(Light.RED, Press.GO) is Light.GREEN


def test_an_event_that_means_nothing_leads_nowhere() -> None:
    assert LIGHT.step(Light.RED, Press.STOP) is None


def test_a_table_lists_its_steps_in_the_order_written() -> None:
    assert list(LIGHT) == [
        (Light.RED, Press.GO, Light.GREEN),
        (Light.GREEN, Press.STOP, Light.RED),
    ]


@pytest.mark.parametrize("table", [MEMBER, LINK], ids=lambda table: str(table.name))
def test_every_state_of_a_broker_is_reached_and_left(table: Transitions[Any, Any]) -> None:
    kind: type[Enum] = type(table.initial)
    states = set(kind)
    reached: set[Enum] = {table.initial}
    for _ in states:
        reached |= {after for before, _, after in table if before in reached}
    assert reached == states
    assert {before for before, _, after in table if before is not after} == states
