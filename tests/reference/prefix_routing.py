"""Prefix routing written from its definitions: strings, lists, no tables but the obvious."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from distributary.topology import RoutingTables

DIGITS = "0123456789abcdef"


def table(owner: str, delays: Mapping[str, float]) -> list[list[str | None]]:
    """The closest broker for every level and digit; of equals the smaller identifier.

    `delays` holds the delay from the owner to every broker, itself included.
    """
    rows: list[list[str | None]] = []
    for level in range(len(owner)):
        row: list[str | None] = []
        for digit in DIGITS:
            fitting = [peer for peer in delays if peer.startswith(owner[:level] + digit)]
            if owner in fitting:
                row.append(owner)
            else:
                row.append(min(fitting, key=lambda peer: (delays[peer], peer), default=None))
        rows.append(row)
    return rows


def next_hop(owner: str, rows: list[list[str | None]], key: str) -> str | None:
    """Whom a broker passes a message for a key to, by its table; None at the key's root."""
    for row, wanted in zip(rows, key, strict=True):
        start = DIGITS.index(wanted)
        entry = next(entry for entry in row[start:] + row[:start] if entry is not None)
        if entry != owner:
            return entry
    return None


def walk(tables: Mapping[str, list[list[str | None]]], start: str, key: str) -> tuple[str, ...]:
    """The brokers that a lookup passes when each knows only its own table."""
    path = [start]
    while (following := next_hop(path[-1], tables[path[-1]], key)) is not None:
        assert following not in path
        path.append(following)
    return tuple(path)


def named_entries(tables: RoutingTables) -> dict[str, list[list[str | None]]]:
    """The tables that were built, in the form of `table`."""
    return {
        owner: [[None if entry < 0 else tables.identifiers[entry] for entry in row] for row in rows]
        for owner, rows in zip(tables.identifiers, tables.entries.tolist(), strict=True)
    }


def root_of_key(identifiers: Sequence[str], key: str) -> str:
    """The root, found by narrowing down all brokers digit by digit, without any routing."""
    remaining = list(identifiers)
    for level, wanted in enumerate(key):
        start = DIGITS.index(wanted)
        for digit in DIGITS[start:] + DIGITS[:start]:
            fitting = [identifier for identifier in remaining if identifier[level] == digit]
            if fitting:
                remaining = fitting
                break
    (root,) = remaining
    return root


def route(tables: Mapping[str, list[list[str | None]]], *, start: str, end: str) -> tuple[str, ...]:
    """The brokers from `start` to `end`: always the entry for the first digit that differs."""
    path = [start]
    while path[-1] != end:
        here = path[-1]
        level = next(place for place in range(len(end)) if here[place] != end[place])
        following = tables[here][level][DIGITS.index(end[level])]
        assert following is not None
        path.append(following)
    return tuple(path)
