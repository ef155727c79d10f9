"""Merging: the fewest filters that match what many match together.

A broker forwards what its clients ask for. Filters that another one covers need not be
forwarded, and filters that differ in one set or one range become one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from distributary.filters.covers import covers
from distributary.filters.dialects import All, AnyOf, Exact, Node, Not, Prefix, Range, Sql, Suffix
from distributary.filters.example import example
from distributary.filters.filter import Filter
from distributary.filters.filter_parser import CONDITIONS_MAX, FILTERS_MAX
from distributary.filters.index import Index
from distributary.filters.spans import Spans, joined

__all__ = ["merge"]


@dataclass(frozen=True)
class _Choice:
    """The text at a key is one of a set."""

    key: str
    texts: frozenset[str]


@dataclass(frozen=True)
class _Spans:
    """The number at a key lies in one of some intervals."""

    key: str
    spans: Spans


_Piece: TypeAlias = _Choice | _Spans | Node
_Rest: TypeAlias = frozenset[_Piece]


def merge(filters: Iterable[Filter]) -> list[Filter]:
    """Return filters that together match exactly what `filters` match together.

    Those are left out that another one covers, as far as `covers` can tell, and those that
    differ in one set of texts or one range become one where their union is one. What is left
    keeps its order; a union stands where the first of its filters stood.
    """
    merged = list(dict.fromkeys(filters))
    while True:
        united = _without_covered(_united(merged))
        if united == merged:
            return merged
        merged = united


def _without_covered(filters: list[Filter]) -> list[Filter]:
    """Leave out what others cover: of filters that cover each other, all but the first."""
    if len(filters) < 2:
        return filters
    index = Index()
    index.add_all((str(number), filter_) for number, filter_ in enumerate(filters))
    left = dict(enumerate(filters))
    for number in reversed(range(len(filters))):
        narrow = left.pop(number)
        # Whatever covers the filter matches this event, and little else does.
        event = example(narrow)
        names = left if event is None else map(int, index.match(event))
        if not any(covers(left[name], narrow) for name in names if name in left):
            left[number] = narrow
    return [left[number] for number in sorted(left)]


def _united(filters: list[Filter]) -> list[Filter]:
    """Unite filters that differ in one set or one range, a key at a time."""
    found: dict[int, _Rest] = {number: _pieces(f) for number, f in enumerate(filters)}
    changed: set[int] = set()
    for key in sorted({piece.key for pieces in found.values() for piece in _unitable(pieces)}):
        alike: dict[tuple[_Rest, type], list[tuple[int, _Choice | _Spans]]] = defaultdict(list)
        for number, pieces in found.items():
            own = [piece for piece in _unitable(pieces) if piece.key == key]
            # With two pieces on the key neither is what the filters differ in alone.
            if len(own) == 1 and len(pieces) <= FILTERS_MAX:
                alike[pieces - {own[0]}, type(own[0])].append((number, own[0]))
        for (rest, _), group in alike.items():
            for members, piece in _unions(group, _room(rest)):
                found[members[0]] = rest | {piece}
                changed.add(members[0])
                for number in members[1:]:
                    del found[number]
    return [
        _filter(pieces) if number in changed else filters[number]
        for number, pieces in sorted(found.items())
    ]


def _unions(
    group: list[tuple[int, _Choice | _Spans]], texts_max: int
) -> Iterator[tuple[list[int], _Choice | _Spans]]:
    """Yield which filters of a group become one, and what they have instead."""
    first = group[0][1]
    if len(group) < 2:
        return
    if isinstance(first, _Choice):
        texts: frozenset[str] = frozenset()
        members: list[int] = []
        for number, piece in group:
            assert isinstance(piece, _Choice)
            if len(texts | piece.texts) > texts_max:
                break
            texts |= piece.texts
            members.append(number)
        if len(members) > 1:
            yield members, _Choice(first.key, texts)
        return
    ranges = [(number, piece.spans) for number, piece in group if isinstance(piece, _Spans)]
    for span in joined(interval for _, spans in ranges for interval in spans):
        # Only what is one interval: a range of several is no shorter than several filters.
        members = [number for number, spans in ranges if all(span.covers(part) for part in spans)]
        if len(members) > 1:
            yield members, _Spans(first.key, (span,))


def _room(rest: _Rest) -> int:
    """Return how many texts a set may have beside the rest, for the union to be a filter."""
    return min(FILTERS_MAX, CONDITIONS_MAX - sum(_size(_node(piece)) for piece in rest))


def _size(node: Node) -> int:
    """Return how many conditions a node has."""
    match node:
        case All(parts) | AnyOf(parts):
            return sum(map(_size, parts))
        case Not(part):
            return _size(part)
        case Sql():
            return 1
        case _:
            return len(node.entries)


def _pieces(filter_: Filter) -> _Rest:
    """Return what must hold, all of it, in pieces; the depth of a filter is limited."""
    return frozenset(piece for part in filter_.parts for piece in _node_pieces(part))


def _node_pieces(node: Node) -> Iterator[_Piece]:
    match node:
        case Exact(entries):
            for key, text in entries:
                yield _Choice(key, frozenset((text,)))
        case Range(entries):
            for key, interval in entries:
                one = Range(((key, interval),))
                yield one if interval.empty else _Spans(key, (interval,))
        case Prefix(entries):
            yield from (Prefix((entry,)) for entry in entries)
        case Suffix(entries):
            yield from (Suffix((entry,)) for entry in entries)
        case All(parts):
            for part in parts:
                yield from _node_pieces(part)
        case AnyOf(parts):
            yield _choice(parts) or node
        case _:
            yield node


def _choice(parts: tuple[Node, ...]) -> _Choice | None:
    """Return the set of texts that the parts of an `any` give for one key, if they do."""
    texts: set[str] = set()
    keys: set[str] = set()
    for part in parts:
        if not isinstance(part, Exact) or len(part.entries) != 1:
            return None
        ((key, text),) = part.entries
        keys.add(key)
        texts.add(text)
    return _Choice(keys.pop(), frozenset(texts)) if len(keys) == 1 else None


def _unitable(pieces: _Rest) -> Iterator[_Choice | _Spans]:
    return (piece for piece in pieces if isinstance(piece, _Choice | _Spans))


def _filter(pieces: _Rest) -> Filter:
    return Filter(tuple(sorted((_node(piece) for piece in pieces), key=repr)))


def _node(piece: _Piece) -> Node:
    match piece:
        case _Choice(key, texts):
            parts = tuple(Exact(((key, text),)) for text in sorted(texts))
            return parts[0] if len(parts) == 1 else AnyOf(parts)
        case _Spans(key, spans):
            assert len(spans) == 1
            return Range(((key, spans[0]),))
        case _:
            return piece
