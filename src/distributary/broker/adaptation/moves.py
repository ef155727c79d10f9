"""Moves as sequences of steps, each of which takes one broker to another parent.

After every step the tree is a tree, so that a sequence can end anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from distributary.broker.adaptation.node import Name, Step
from distributary.fidelity.local import (
    COUSIN_SWAP,
    DEMOTION,
    NEPHEW_ADOPTION,
    PARENT_CHILD_SWAP,
    PROMOTION,
    UNCLE_NEPHEW_SWAP,
)

__all__ = ["steps_of", "with_children"]


def steps_of(
    kind: str, *, top: Name, moved: Name, other: Name, parents: Mapping[Name, Name]
) -> tuple[Step, ...]:
    """Return a move as steps.

    Parameters
    ----------
    kind
        One of `fidelity.local.MOVES`.
    top
        The broker among whose children and grandchildren the move is made.
    moved, other
        The two brokers that it is about, as in `LocalMove`.
    parents
        The parent of each child and grandchild.
    """
    if kind == PROMOTION:
        return ((moved, top),)
    if kind in (DEMOTION, NEPHEW_ADOPTION):
        return ((moved, other),)
    if kind == PARENT_CHILD_SWAP:
        return ((moved, top), (parents[moved], moved))
    assert kind in (COUSIN_SWAP, UNCLE_NEPHEW_SWAP)
    return ((moved, parents[other]), (other, parents[moved]))


def with_children(
    children: Sequence[Name],
    grandchildren: Mapping[Name, Sequence[Name]],
    steps: Sequence[Step],
) -> list[Name]:
    """Return those of a broker's children that have children themselves.

    Parameters
    ----------
    children
        As they are now.
    grandchildren
        The children of each that reported, before the steps; who did not report is taken
        to have some.
    steps
        What has been done since.
    """
    below = {child: set(all_below) for child, all_below in grandchildren.items()}
    for mover, parent in steps:
        for all_below in below.values():
            all_below.discard(mover)
        if parent in below:
            below[parent].add(mover)
    return [child for child in children if below.get(child, {child})]
