"""What must hold for a filter to match, in a form that can be looked up.

The index looks up the conditions of a clause instead of asking every filter; `covers` and
`cells` reason with them.
"""

from __future__ import annotations

from distributary.filters.clauses import (
    NEVER,
    UNKNOWN,
    Conditions,
    all_of,
    any_of,
    conjunction,
)
from distributary.filters.condition import (
    Clause,
    Condition,
    EndsWith,
    OneOf,
    StartsWith,
    Within,
)
from distributary.filters.dialects import (
    All,
    AnyOf,
    Exact,
    Node,
    Not,
    Prefix,
    Range,
    Sql,
    Suffix,
)
from distributary.filters.filter import Filter
from distributary.filters.sql_conditions import sql_conditions

__all__ = [
    "NEVER",
    "Clause",
    "Condition",
    "Conditions",
    "EndsWith",
    "OneOf",
    "StartsWith",
    "Within",
    "conditions",
    "node_conditions",
]


def conditions(filter_: Filter) -> Conditions:
    """Return what must hold for the filter to match."""
    return all_of(node_conditions(part) for part in filter_.parts)


def node_conditions(node: Node) -> Conditions:
    """Return what must hold for `node`; the depth of a filter is limited."""
    match node:
        case Exact(entries):
            return conjunction(OneOf(key, (text,)) for key, text in entries)
        case Prefix(entries):
            return conjunction(StartsWith(key, text) for key, text in entries)
        case Suffix(entries):
            return conjunction(EndsWith(key, text) for key, text in entries)
        case Range(entries):
            return conjunction(Within(key, interval) for key, interval in entries)
        case All(parts):
            return all_of(node_conditions(part) for part in parts)
        case AnyOf(parts):
            return any_of(node_conditions(part) for part in parts)
        case Not(part):
            return _negation(part)
        case Sql(expression):
            return sql_conditions(expression.root)


def _negation(node: Node) -> Conditions:
    match node:
        case Not(part):
            return node_conditions(part)
        case All(parts):
            return any_of(_negation(part) for part in parts)
        case AnyOf(parts):
            return all_of(_negation(part) for part in parts)
        case _:
            # It holds wherever the key is missing, so there is nothing to look up.
            return UNKNOWN
