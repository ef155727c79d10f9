"""The formula of a filter."""

from __future__ import annotations

from functools import lru_cache

from distributary.filters.atoms import Ends, Numbers, Starts, Texts
from distributary.filters.dialects import All, AnyOf, Node, Not, Range, Sql, TextFilter
from distributary.filters.filter import Filter
from distributary.filters.formula import FALSE, Fact, Formula, complement, conjunction, disjunction
from distributary.filters.interval import joined
from distributary.filters.sql_formula import sql_formula

__all__ = ["filter_formula"]

_REMEMBERED_MAX = 4096


@lru_cache(_REMEMBERED_MAX)
def filter_formula(filter_: Filter) -> Formula:
    """Return the formula that holds for a publication exactly when the filter matches it."""
    return conjunction(_formula(part) for part in filter_.parts)


def _formula(node: Node) -> Formula:
    """Return the formula of a node; the depth of a filter is limited."""
    match node:
        case TextFilter("exact", entries):
            return conjunction(Fact(Texts(key, frozenset((text,)))) for key, text in entries)
        case TextFilter("prefix", entries):
            return conjunction(Fact(Starts(key, text)) for key, text in entries)
        case TextFilter(_, entries):
            return conjunction(Fact(Ends(key, text)) for key, text in entries)
        case Range(entries):
            if any(span.empty for _, span in entries):
                return FALSE
            return conjunction(Fact(Numbers(key, joined((span,)))) for key, span in entries)
        case All(parts):
            return conjunction(_formula(part) for part in parts)
        case AnyOf(parts):
            return disjunction(_formula(part) for part in parts)
        case Not(part):
            return complement(_formula(part))
        case Sql(expression):
            return sql_formula(expression)
