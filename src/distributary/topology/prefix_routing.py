"""Prefix routing: how a message finds a broker, or the root of a key, digit by digit.

The scheme is Tapestry's (Zhao et al., 2004). Level `l` of a broker's routing table has
one entry for each of the sixteen digits: the closest broker by delay that shares the
owner's first `l` digits and goes on with that digit. A message for a key follows, level
by level, the entry for the key's next digit. Where that entry is empty it follows the
next digit that has one, going round (surrogate routing), so that a key that no broker
is named after still ends somewhere.

It ends at the same broker from wherever it starts. Whether an entry is empty depends
only on which identifiers exist, not on whose table it is: all brokers that share the
digits settled so far fill the same entries of the next level, only with different
neighbours. So every start settles the same digits, in the end those of one identifier,
which is the key's root. Every hop settles at least one digit, and two brokers that
share `p` digits differ at level `p`; the hops are therefore at most one more than the
longest prefix that any two identifiers share.

A lookup need not carry the level it has reached: the next broker agrees on every digit
settled before, and so passes over those levels by itself.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from distributary.arguments import checked
from distributary.arrays import FloatArray, IntArray
from distributary.errors import BadInput, quoted
from distributary.topology.identifiers import DIGIT_BASE, digits_of, shared_prefix_length

__all__ = ["RoutingTables", "narrowed", "root_among"]

_EMPTY = -1


@dataclass(frozen=True, eq=False)
class RoutingTables:
    """The routing tables of all brokers of an overlay.

    Attributes
    ----------
    identifiers
        The brokers; a broker's position is its index.
    entries
        `entries[broker, level, digit]` is the index of the closest other that shares the
        broker's first `level` digits and has `digit` next, -1 where there is none; the
        broker itself at its own digits. Shape (brokers, levels, 16).
    """

    identifiers: tuple[str, ...]
    entries: IntArray

    def __post_init__(self) -> None:
        count = len(self.identifiers)
        assert count > 0
        assert self.entries.shape == (count, len(self.identifiers[0]), DIGIT_BASE)
        self.entries.flags.writeable = False

    @classmethod
    @checked
    def build(cls, identifiers: Sequence[str], delays: FloatArray) -> RoutingTables:
        """Build every broker's table, complete and with the closest neighbours.

        The time grows with the square of the number of brokers: some ten milliseconds for
        1,024. Of two neighbours at the same delay the one with the smaller identifier is
        taken, as a broker that builds its own table would.

        `delays[u, v]` is the delay from `u` to `v`, shape (brokers, brokers).
        """
        names = tuple(identifiers)
        if not names:
            raise BadInput("identifiers", "are none", hint="an overlay has at least one broker")
        if delays.shape != (len(names), len(names)):
            raise BadInput("delays", f"have the shape {delays.shape} for {len(names)} brokers")
        if not np.isfinite(delays).all() or (delays < 0.0).any():
            raise BadInput("delays", "must be finite and not negative")
        digits = digits_of(names)
        order = sorted(range(len(names)), key=names.__getitem__)
        for one, other in pairwise(order):
            if names[one] == names[other]:
                raise BadInput("identifiers", f"{quoted(names[one])} is given twice")
        entries = np.full((*digits.shape, DIGIT_BASE), _EMPTY, dtype=np.int64)
        levels = np.arange(digits.shape[1])
        for own in order:
            entries[own, levels, digits[own]] = own
        # Brokers that share `level` digits, ascending: of two at the same delay, the first
        # is found.
        waiting = [(np.array(order), 0)]
        while waiting:
            group, level = waiting.pop()
            for digit in np.unique(digits[group, level]).tolist():
                inside = group[digits[group, level] == digit]
                others = group[digits[group, level] != digit]
                nearest = np.argmin(delays[np.ix_(others, inside)], axis=1)
                entries[others, level, digit] = inside[nearest]
                if len(inside) > 1:
                    waiting.append((inside, level + 1))
        return cls(names, entries)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {identifier: v for v, identifier in enumerate(self.identifiers)}

    @cached_property
    def _ascending(self) -> tuple[str, ...]:
        return tuple(sorted(self.identifiers))

    def index_of(self, broker: str) -> int:
        """Return the index of a broker."""
        if broker not in self._index:
            raise BadInput(f"broker {quoted(broker)}", "is not in the overlay")
        return self._index[broker]

    def root_of_key(self, key: str) -> str:
        """Return the broker at which lookups of `key` end, the same from every start."""
        digits_of([key], digits=len(self.identifiers[0]))
        return root_among(self._ascending, key)

    def route(self, *, start: str, end: str) -> tuple[str, ...]:
        """Return the brokers that a message from `start` to `end` passes, both included."""
        here, last = self.index_of(start), self.index_of(end)
        path = [start]
        while here != last:
            level = shared_prefix_length(path[-1], end)
            here = int(self.entries[here, level, int(end[level], DIGIT_BASE)])
            path.append(self.identifiers[here])
        return tuple(path)

    def tree_of(self, root: str, brokers: Iterable[str]) -> dict[str, str | None]:
        """Return the union of the routes from `root` to `brokers`, as parents by broker.

        The union is a tree. Let the route from the root to `t` pass `w`. The brokers
        before `w` share fewer digits with `t` than `w` does, hence exactly as many with
        `w` as with `t`, and the next digit of `t` that they look up is the next digit of
        `w`. So the route to `t` is, up to `w`, the route to `w` itself: whatever
        receiver a broker is passed for, it is reached over the same link.

        Whatever broker some route passes has its parent here, None for the root, in the order of
        the overlay's brokers.
        """
        parents: dict[str, str | None] = {root: None}
        for broker in brokers:
            route = self.route(start=root, end=broker)
            parents.update({child: parent for parent, child in pairwise(route)})
        return {broker: parents[broker] for broker in sorted(parents, key=self.index_of)}


def narrowed(
    identifiers: Sequence[str], digit: str, *, level: int, first: int, end: int
) -> tuple[int, int]:
    """Return which of `identifiers[first:end]` a lookup goes on with after one more digit.

    They share their first `level` digits. Those go on that have `digit` next, or the next
    digit after it, going round, that any of them has.

    The identifiers are in ascending order.
    """
    prefix = identifiers[first][:level]
    begin = bisect_left(identifiers, prefix + digit, first, end)
    if begin == end:
        begin = first
    after = prefix + chr(ord(identifiers[begin][level]) + 1)
    return begin, bisect_left(identifiers, after, begin, end)


@checked
def root_among(identifiers: Sequence[str], key: str) -> str:
    """Return the broker at which lookups of `key` end when these brokers are there.

    It needs no table and no delays: which broker is the root depends only on which
    identifiers exist. The time grows with the logarithm of how many there are.

    There is at least one identifier, in ascending order, all as long as the key.
    """
    first, end = 0, len(identifiers)
    level = 0
    while end - first > 1:
        first, end = narrowed(identifiers, key[level], level=level, first=first, end=end)
        level += 1
    return identifiers[first]
