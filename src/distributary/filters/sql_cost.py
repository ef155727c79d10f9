"""What an expression may cost at worst: how often it goes through a whole text.

An attribute may have tens of thousands of characters, and a function call takes a few of an
expression. Comparisons and casts settle most texts by their length or first character; a
pattern with text to search for, and a function, go through all of it.
"""

from __future__ import annotations

from distributary.errors import BadInput
from distributary.filters import sql_tree as sql
from distributary.filters.like_pattern import LikePattern
from distributary.filters.sql_tree import SqlNode

__all__ = ["TEXT_PASSES_MAX", "check_passes", "parts_of", "text_passes"]

TEXT_PASSES_MAX = 128
"""How often the expressions of a subscription may go through a whole text."""


def parts_of(node: SqlNode) -> tuple[SqlNode, ...]:
    """Return the operands of a node."""
    match node:
        case sql.Not(operand) | sql.Negation(operand) | sql.Like(operand, _, _):
            return (operand,)
        case sql.Comparison(_, left, right):
            return (left, right)
        case sql.In(operand, items, _):
            return (operand, *items)
        case sql.Arithmetic(_, operands) | sql.Logic(_, operands) | sql.Call(_, operands):
            return operands
        case _:
            return ()


def text_passes(root: SqlNode) -> int:
    """Return how often an evaluation may go through a whole text."""
    count = 0
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, sql.Call):
            count += 1
        elif isinstance(node, sql.Like):
            count += LikePattern.parse(node.pattern).passes
        waiting.extend(parts_of(node))
    return count


def check_passes(count: int, place: str) -> None:
    """Refuse an expression, or a subscription, that may cost too much."""
    if count > TEXT_PASSES_MAX:
        raise BadInput(
            place,
            f"may go through a text {count:,} times; at most {TEXT_PASSES_MAX} are allowed",
            hint="function calls and patterns like '%a%' count, 'a%' and '%a' do not",
        )
