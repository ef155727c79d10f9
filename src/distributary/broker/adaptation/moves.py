"""Moves as sequences of steps, each of which takes one broker to another parent.

After every step the tree is a tree, so that a sequence can end anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from distributary.broker.adaptation.node import Name, Step
from distributary.fidelity.local import (
    COUSIN_SWAP,
    DEMOTION,
    NEPHEW_ADOPTION,
    PARENT_CHILD_SWAP,
    PROMOTION,
    UNCLE_NEPHEW_SWAP,
)

__all__ = ["legal_moves", "steps_of", "with_children"]


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


def legal_moves(
    top: Name, grandchildren: Mapping[Name, Sequence[Name]]
) -> Iterator[tuple[str, tuple[Step, ...]]]:
    """Go through all moves that a broker may make, given the children of each of its children."""
    parents = {below: child for child, all_below in grandchildren.items() for below in all_below}
    for child in grandchildren:
        parents[child] = top
    for kind, moved, other in _moves(top, grandchildren):
        yield kind, steps_of(kind, top=top, moved=moved, other=other, parents=parents)


def _moves(
    top: Name, grandchildren: Mapping[Name, Sequence[Name]]
) -> Iterator[tuple[str, Name, Name]]:
    children = list(grandchildren)
    for at, child in enumerate(children):
        others = [other for other in children if other != child]
        for other in others:
            yield DEMOTION, child, other
        for below in grandchildren[child]:
            yield PROMOTION, below, top
            yield PARENT_CHILD_SWAP, below, top
            for other in others:
                yield NEPHEW_ADOPTION, below, other
                yield UNCLE_NEPHEW_SWAP, below, other
            for other in children[at + 1 :]:
                for cousin in grandchildren[other]:
                    yield COUSIN_SWAP, below, cousin


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
