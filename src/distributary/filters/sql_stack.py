"""What waits on the parser's stacks: operators, operands and open brackets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from distributary.filters.sql_tokens import Token
from distributary.filters.sql_tree import Arithmetic, Logic, SqlNode

__all__ = [
    "COMPARISON",
    "LOGIC",
    "PRECEDENCE",
    "UNARY",
    "Bracket",
    "Chain",
    "Operand",
    "Operator",
]

LOGIC, COMPARISON, SUM, PRODUCT, UNARY = range(1, 6)
PRECEDENCE = {
    **dict.fromkeys(("AND", "OR", "XOR"), LOGIC),
    **dict.fromkeys(("=", "!=", "<>", "<", "<=", ">", ">="), COMPARISON),
    **dict.fromkeys(("+", "-"), SUM),
    **dict.fromkeys(("*", "/", "%"), PRODUCT),
}


class Operator(NamedTuple):
    """An operator, and the index of its first character."""

    text: str
    precedence: int
    start: int


class Chain:
    """A flat chain of operators of one precedence, while operands may still join it."""

    __slots__ = ("operands", "operators", "precedence")

    def __init__(self, precedence: int, first: SqlNode) -> None:
        self.precedence = precedence
        self.operators: list[str] = []
        self.operands = [first]

    def node(self) -> SqlNode:
        """Return the finished chain."""
        kind = Logic if self.precedence == LOGIC else Arithmetic
        return kind(tuple(self.operators), tuple(self.operands))


@dataclass(slots=True)
class Operand:
    """A finished node or a growing chain, and how many nodes deep it is."""

    content: SqlNode | Chain
    depth: int

    def node(self) -> SqlNode:
        """Return the operand as a node; nothing joins it any more."""
        content = self.content
        return content.node() if isinstance(content, Chain) else content


@dataclass(slots=True)
class Bracket:
    """What is between an open bracket and here.

    Attributes
    ----------
    opened
        The bracket or, for the outermost level, nothing.
    function
        Name of the function whose arguments these are, if they are that.
    member
        What is looked for in the set, if this is a set after `IN`.
    """

    opened: Token | None = None
    function: str | None = None
    member: Operand | None = None
    negated: bool = False
    items: list[SqlNode] = field(default_factory=list)
    items_depth: int = 0
    operands: list[Operand] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
