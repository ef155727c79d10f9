"""What can be explored: nodes that are values, and messages between them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

__all__ = ["Outcome", "OwnStep", "System"]

Outcome: TypeAlias = tuple[Any, tuple[Any, ...]]
"""A node as it is afterwards, and the messages that it sends."""


class OwnStep(NamedTuple):
    """Something that a node can do, or that can happen to it, without a message.

    Attributes
    ----------
    kind
        Of which only so many may happen, see `System.allowed`.
    text
        For a trace.
    outcomes
        What may come of it.
    """

    kind: str
    text: str
    outcomes: tuple[Outcome, ...]


class System(Protocol):
    """What can be explored. Nodes and messages are hashable; `message[0]` is whom it is for.

    Attributes
    ----------
    allowed
        How many steps of each kind may happen on one way; a kind that is not named may
        happen any number of times, and `lost` is that a message gets lost.
    expiring
        Kinds that cost nothing when no message is on its way: time goes on anyway.
    """

    allowed: Mapping[str, int]
    expiring: frozenset[str]

    def nodes(self) -> Sequence[Hashable]:
        """Return the nodes at the beginning."""

    def deliver(self, node: Any, message: Any) -> tuple[Outcome, ...]:
        """Return what may come of a message."""

    def own_steps(self, node: Any) -> tuple[OwnStep, ...]:
        """Return what may happen to a node without a message."""

    def resting(self, node: Any) -> bool:
        """Whether a node waits for nobody."""

    def structure(self, node: Any) -> Hashable:
        """Return what of a node `fault` looks at."""

    def fault(self, structures: Sequence[Any]) -> str | None:
        """Return what is wrong with the nodes, if anything is."""

    def text(self, message: Any) -> str:
        """Return a message for a trace."""

    def node_text(self, node: Any) -> str:
        """Return what a node is doing."""
