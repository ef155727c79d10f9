"""All moves that a broker may make, whatever its cost model says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from distributary.broker.adaptation.mover import steps_of
from distributary.broker.adaptation.node import Name, Step
from distributary.fidelity.local import (
    COUSIN_SWAP,
    DEMOTION,
    NEPHEW_ADOPTION,
    PARENT_CHILD_SWAP,
    PROMOTION,
    UNCLE_NEPHEW_SWAP,
)

__all__ = ["legal_moves"]


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
