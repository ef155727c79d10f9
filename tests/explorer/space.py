"""The space of states of a system, as numbers.

Nodes and messages get numbers, so that a state is a short tuple, and what a node does about a
message is worked out once.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeAlias

from tests.explorer.system import Outcome, System

__all__ = ["Space", "State", "Step"]


_LOST = "lost"


class _Numbers:
    """Values by number, and numbers by value."""

    def __init__(self) -> None:
        self.of: dict[Hashable, int] = {}
        self.values: list[Any] = []

    def __call__(self, value: Hashable) -> int:
        number = self.of.get(value)
        if number is None:
            number = self.of[value] = len(self.values)
            self.values.append(value)
        return number


State: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Nodes, messages in order, and what is left of what is allowed."""


Step: TypeAlias = tuple[int, int, str]
"""Where something happened, the message that it was about or -1, and what it was."""

_Own: TypeAlias = tuple[int, bool, str, tuple[tuple[int, tuple[int, ...]], ...]]
"""The index of a kind, whether it expires, a text, and outcomes."""


class Space:
    """The steps of a system, as numbers.

    Parameters
    ----------
    system
        What is explored.
    """

    def __init__(self, system: System) -> None:
        self.system = system
        self.nodes = _Numbers()
        self.messages = _Numbers()
        self.kinds = tuple(sorted(system.allowed))
        self._delivered: dict[tuple[int, int], tuple[tuple[int, tuple[int, ...]], ...]] = {}
        self._own: dict[int, tuple[_Own, ...]] = {}
        self._structures: dict[int, int] = {}
        self._structure_numbers = _Numbers()
        self._faults: dict[tuple[int, ...], str | None] = {}
        self._resting: dict[int, bool] = {}
        self._lost = self.kinds.index(_LOST) if _LOST in self.kinds else -1

    def start(self) -> State:
        """Return the first state."""
        nodes = tuple(self.nodes(node) for node in self.system.nodes())
        return nodes, (), tuple(self.system.allowed[kind] for kind in self.kinds)

    def steps(self, state: State) -> list[tuple[Step, State]]:
        """Return everything that can happen, and what comes of it."""
        nodes, messages, left = state
        found: list[tuple[Step, State]] = []
        before = -1
        lossy = self._lost >= 0 and left[self._lost] > 0
        for at, message in enumerate(messages):
            if message == before:
                continue
            before = message
            rest = messages[:at] + messages[at + 1 :]
            to = self.messages.values[message][0]
            key = (nodes[to], message)
            outcomes = self._delivered.get(key)
            if outcomes is None:
                outcomes = self._delivered[key] = self._deliver(*key)
            for node, sent in outcomes:
                after = nodes if node == nodes[to] else (*nodes[:to], node, *nodes[to + 1 :])
                on_way = tuple(sorted(rest + sent)) if sent else rest
                found.append(((to, message, ""), (after, on_way, left)))
            if lossy:
                fewer = _less(left, self._lost)
                found.append(((to, message, _LOST), (nodes, rest, fewer)))
        for at, node in enumerate(nodes):
            own = self._own.get(node)
            if own is None:
                own = self._own[node] = self._own_steps(node)
            for kind, expires, text, alternatives in own:
                free = kind < 0 or (expires and not messages)
                if not free and left[kind] == 0:
                    continue
                remaining = left if free else _less(left, kind)
                for following, sent in alternatives:
                    after = (*nodes[:at], following, *nodes[at + 1 :])
                    on_way = tuple(sorted(messages + sent)) if sent else messages
                    found.append(((at, -1, text), (after, on_way, remaining)))
        return found

    def fault(self, nodes: tuple[int, ...]) -> str | None:
        """Return what is wrong with the nodes of a state."""
        key = tuple([self._structure(node) for node in nodes])
        if key not in self._faults:
            values = [self._structure_numbers.values[number] for number in key]
            self._faults[key] = self.system.fault(values)
        return self._faults[key]

    def quiet(self, state: State) -> bool:
        """Whether nothing is on its way and no node waits for another."""
        return not state[1] and all(self._rests(node) for node in state[0])

    def node_texts(self, state: State) -> tuple[str, ...]:
        """Return what each node of a state is doing."""
        return tuple(self.system.node_text(self.nodes.values[node]) for node in state[0])

    def describe(self, step: Step) -> str:
        """Return a step in words."""
        at, message, text = step
        if message < 0:
            return f"{at} {text}"
        told = self.system.text(self.messages.values[message])
        return f"{told}, which gets lost" if text else f"{at} gets {told}"

    def _deliver(self, node: int, message: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
        outcomes = self.system.deliver(self.nodes.values[node], self.messages.values[message])
        return self._numbered(outcomes)

    def _own_steps(self, node: int) -> tuple[_Own, ...]:
        return tuple(
            (
                self.kinds.index(step.kind) if step.kind in self.kinds else -1,
                step.kind in self.system.expiring,
                step.text,
                self._numbered(step.outcomes),
            )
            for step in self.system.own_steps(self.nodes.values[node])
        )

    def _numbered(self, outcomes: tuple[Outcome, ...]) -> tuple[tuple[int, tuple[int, ...]], ...]:
        return tuple(
            (self.nodes(node), tuple(self.messages(message) for message in sent))
            for node, sent in outcomes
        )

    def _structure(self, node: int) -> int:
        number = self._structures.get(node)
        if number is None:
            value = self.system.structure(self.nodes.values[node])
            number = self._structures[node] = self._structure_numbers(value)
        return number

    def _rests(self, node: int) -> bool:
        if node not in self._resting:
            self._resting[node] = self.system.resting(self.nodes.values[node])
        return self._resting[node]


def _less(left: tuple[int, ...], kind: int) -> tuple[int, ...]:
    return (*left[:kind], left[kind] - 1, *left[kind + 1 :])
