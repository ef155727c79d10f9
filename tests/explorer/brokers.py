"""Brokers with their places in trees, as values.

A link belongs to the child, which numbers it. What comes late carries the number of an older
link, and changes nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from distributary.broker.adaptation import mover, node

__all__ = ["OUTSIDE", "Broker", "Place", "Trees", "restarted"]

Trees: TypeAlias = tuple[tuple[int | None, ...], ...]
"""By tree, the parent of each broker: None at the root, -1 outside."""

OUTSIDE = -1


class Place(NamedTuple):
    """A broker's place in a tree.

    Attributes
    ----------
    parent, link
        Its parent, and the number of the link to it.
    children
        Its children with the numbers of their links, in order.
    asked
        A broker that it has asked to be its new parent, and the number of that link.
    move
        Its state as a mover.
    """

    parent: int | None
    link: int
    children: tuple[tuple[int, int], ...]
    asked: tuple[int, int] | None = None
    move: mover.Move = mover.AT_REST


class Broker(NamedTuple):
    """One broker.

    Attributes
    ----------
    node
        Its state in the protocol of holds.
    places
        By tree.
    link_count
        How many links it has numbered.
    rounds
        How many rounds it may still begin, by tree.
    """

    node: node.AdaptationNode
    places: tuple[Place, ...]
    link_count: int
    rounds: tuple[int, ...]

    def parent(self, tree: int) -> int | None:
        """Return its parent in a tree."""
        return self.places[tree].parent

    def children(self, tree: int) -> tuple[int, ...]:
        """Return its children in a tree."""
        return tuple(child for child, _ in self.places[tree].children)

    def at(self, tree: int, **changes: Any) -> Broker:
        """Return it with another place in a tree."""
        place = self.places[tree]._replace(**changes)
        return self._replace(places=(*self.places[:tree], place, *self.places[tree + 1 :]))


def restarted(broker: Broker) -> Broker:
    """Return a broker after a crash: links are kept, all else is not."""
    places = tuple(
        place._replace(asked=None, move=mover.Move(number=place.move.number))
        for place in broker.places
    )
    return broker._replace(node=node.AdaptationNode(broker.node.name), places=places)
