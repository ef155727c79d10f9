"""From the text of a CESQL expression to its tree, by precedence climbing.

Precedence, tightest first: function calls; `NOT` and unary `-`; `LIKE`; `EXISTS`; `IN`;
`* / %`; `+ -`; comparisons; `AND OR XOR`. Operators of one precedence go from left to right.

Only brackets and operators that bind tighter make the parser call itself, and both are
limited: a sender does not decide how deep Python's stack grows.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from distributary.errors import BadInput
from distributary.filters import sql_tree as sql
from distributary.filters.sql_casts import integer_of
from distributary.filters.sql_tokens import FUNCTION_NAME, Token, TokenKind, fault, tokens
from distributary.filters.sql_tree import SqlNode, ValueType

__all__ = ["EXPRESSION_CHARACTERS_MAX", "NESTING_MAX", "parse_tree"]

EXPRESSION_CHARACTERS_MAX = 65_536
NESTING_MAX = 64

_LOGIC, _COMPARISON, _SUM, _PRODUCT = range(1, 5)
_PRECEDENCE = {
    **dict.fromkeys(("AND", "OR", "XOR"), _LOGIC),
    **dict.fromkeys(("=", "!=", "<>", "<", "<=", ">", ">="), _COMPARISON),
    **dict.fromkeys(("+", "-"), _SUM),
    **dict.fromkeys(("*", "/", "%"), _PRODUCT),
}
_ATTRIBUTE_NAME = re.compile(r"[A-Za-z0-9]+")


def parse_tree(text: str) -> SqlNode:
    """Return the tree of the expression, or refuse it, naming the character at fault."""
    if len(text) > EXPRESSION_CHARACTERS_MAX:
        raise BadInput(
            "expression",
            f"has {len(text):,} characters, and may have {EXPRESSION_CHARACTERS_MAX:,}",
        )
    try:
        return _Parser(tokens(text)).parse()
    except RecursionError:
        # Within the limits it takes some 600 calls; the caller may have used up the others.
        raise BadInput("expression", "is nested too deeply") from None


class _Operand(NamedTuple):
    """A node, and how many nodes deep it is."""

    node: SqlNode
    depth: int


class _Parser:
    """One pass over the tokens; every token is looked at a bounded number of times."""

    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._next = 0
        self._brackets = 0

    def parse(self) -> SqlNode:
        operand = self._expression(_LOGIC)
        self._end()
        return operand.node

    def _take(self) -> Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _is_next(self, *texts: str) -> bool:
        """Is the next token one of these symbols or keywords?"""
        token = self._tokens[self._next]
        return token.text in texts and token.kind in (TokenKind.SYMBOL, TokenKind.KEYWORD)

    def _precedence(self) -> int:
        """Return the precedence of the operator that comes next; 0 if there is none."""
        token = self._tokens[self._next]
        if token.kind in (TokenKind.SYMBOL, TokenKind.KEYWORD):
            return _PRECEDENCE.get(token.text, 0)
        return 0

    def _expression(self, lowest: int) -> _Operand:
        """Read operands and the operators between them that bind at least so tightly."""
        left = self._operand()
        while (precedence := self._precedence()) >= lowest:
            if precedence == _COMPARISON:
                operator = self._take()
                right = self._expression(_COMPARISON + 1)
                symbol = "!=" if operator.text == "<>" else operator.text
                node = sql.Comparison(symbol, left.node, right.node)
                left = _above(node, max(left.depth, right.depth), operator)
            else:
                left = self._chain(left, precedence)
        return left

    def _chain(self, first: _Operand, precedence: int) -> _Operand:
        """Read a chain of operators of one precedence, of which the first operand is read."""
        operators: list[str] = []
        operands = [first.node]
        depth = first.depth
        while self._precedence() == precedence:
            operator = self._take()
            right = self._expression(precedence + 1)
            operators.append(operator.text)
            operands.append(right.node)
            depth = max(depth, right.depth)
            if depth == NESTING_MAX:
                raise _too_deep(operator)
        kind = sql.Logic if precedence == _LOGIC else sql.Arithmetic
        return _Operand(kind(tuple(operators), tuple(operands)), depth + 1)

    def _operand(self) -> _Operand:
        """Read an operand with what binds tightest: `NOT` and `-` before it, `LIKE` and `IN`."""
        unary: list[Token] = []
        while self._is_next("NOT", "-") and not self._is_number():
            unary.append(self._take())
        operand = self._value()
        for token in reversed(unary):
            kind = sql.Not if token.text == "NOT" else sql.Negation
            operand = _above(kind(operand.node), operand.depth, token)
        while self._is_next("NOT", "LIKE", "IN"):
            operand = self._suffixed(operand)
        return operand

    def _is_number(self) -> bool:
        """Is a sign next that belongs to a number? No blank comes between them."""
        if not self._is_next("+", "-"):
            return False
        sign, digits = self._tokens[self._next : self._next + 2]
        return digits.kind is TokenKind.NUMBER and digits.start == sign.start + 1

    def _value(self) -> _Operand:
        """Read a literal, an attribute, `EXISTS`, a call, or an expression in brackets."""
        sign = self._take() if self._is_number() else None
        token = self._take()
        match token.kind, token.text:
            case TokenKind.NUMBER, text if sign is not None:
                return _Operand(_integer(sign.text + text, sign.start), 1)
            case TokenKind.NUMBER, text:
                return _Operand(_integer(text, token.start), 1)
            case TokenKind.STRING, text:
                return _Operand(sql.Literal(ValueType.STRING, text), 1)
            case TokenKind.KEYWORD, "TRUE" | "FALSE" as text:
                return _Operand(sql.Literal(ValueType.BOOLEAN, text == "TRUE"), 1)
            case TokenKind.NAME, _ if self._is_next("("):
                return self._call(token)
            case TokenKind.NAME, _:
                return _Operand(sql.Attribute(_attribute_name(token)), 1)
            case TokenKind.KEYWORD, "EXISTS":
                name = self._take()
                if name.kind not in (TokenKind.NAME, TokenKind.NUMBER):
                    raise fault(
                        name.start, f"EXISTS needs the name of an attribute, not {name.described}"
                    )
                return _Operand(sql.Exists(_attribute_name(name)), 1)
            case TokenKind.SYMBOL, "(":
                self._open(token)
                operand = self._expression(_LOGIC)
                self._end(opened=True)
                return operand
            case _:
                raise fault(token.start, f"a value is missing before {token.described}")

    def _call(self, name: Token) -> _Operand:
        if FUNCTION_NAME.fullmatch(name.text) is None:
            raise fault(
                name.start,
                f"{name.text} cannot be the name of a function",
                hint="a function's name has letters and underscores, and starts with a letter",
            )
        self._take()
        if self._is_next(")"):
            self._take()
            return _Operand(sql.Call(name.text.upper(), ()), 1)
        arguments, depth = self._items(name)
        return _above(sql.Call(name.text.upper(), arguments), depth, name)

    def _suffixed(self, operand: _Operand) -> _Operand:
        """Read `LIKE` or `IN`, with or without `NOT`, behind its operand."""
        token = self._take()
        negated = token.text == "NOT"
        operator = self._take() if negated else token
        if operator.kind is TokenKind.KEYWORD and operator.text == "LIKE":
            pattern = self._take()
            if pattern.kind is not TokenKind.STRING:
                raise fault(
                    pattern.start, f"the pattern of LIKE is a string, not {pattern.described}"
                )
            return _above(sql.Like(operand.node, pattern.text, negated), operand.depth, token)
        if operator.kind is not TokenKind.KEYWORD or operator.text != "IN":
            raise fault(token.start, "NOT between values is followed by LIKE or IN")
        bracket = self._take()
        if bracket.kind is not TokenKind.SYMBOL or bracket.text != "(":
            raise fault(
                bracket.start, f"IN is followed by a set in brackets, not {bracket.described}"
            )
        items, depth = self._items(bracket)
        return _above(sql.In(operand.node, items, negated), max(operand.depth, depth), bracket)

    def _items(self, opened: Token) -> tuple[tuple[SqlNode, ...], int]:
        """Read the arguments or elements behind an open bracket, and how deep they are."""
        self._open(opened)
        items = [self._expression(_LOGIC)]
        while self._end(opened=True, listed=True):
            items.append(self._expression(_LOGIC))
        return tuple(item.node for item in items), max(item.depth for item in items)

    def _open(self, opened: Token) -> None:
        self._brackets += 1
        if self._brackets > NESTING_MAX:
            raise _too_deep(opened)

    def _end(self, *, opened: bool = False, listed: bool = False) -> bool:
        """Read what ends an expression; return whether it is a comma, and another follows."""
        token = self._take()
        match token.kind, token.text:
            case TokenKind.SYMBOL, ",":
                if not listed:
                    problem = "a comma separates arguments, or the elements of a set"
                    raise fault(token.start, problem)
                return True
            case TokenKind.SYMBOL, ")":
                if not opened:
                    raise fault(token.start, "there is no open bracket to close")
                self._brackets -= 1
                return False
            case TokenKind.END, _:
                if opened:
                    raise fault(token.start, "a bracket is not closed")
                return False
            case _:
                raise fault(token.start, f"an operator is missing before {token.described}")


def _above(node: SqlNode, depth: int, token: Token) -> _Operand:
    """Return a node as an operand, one deeper than the deepest of its own."""
    if depth == NESTING_MAX:
        raise _too_deep(token)
    return _Operand(node, depth + 1)


def _too_deep(token: Token) -> BadInput:
    return fault(token.start, f"operators or brackets are nested more than {NESTING_MAX} deep here")


def _integer(text: str, start: int) -> sql.Literal:
    value = integer_of(text)
    if value is None:
        raise fault(start, f"the integer {text[:20]} does not fit into 32 bits")
    return sql.Literal(ValueType.INTEGER, value)


def _attribute_name(token: Token) -> str:
    """Return the name that a token refers to; what is written in capitals is the same name."""
    if _ATTRIBUTE_NAME.fullmatch(token.text) is None:
        raise fault(
            token.start,
            f"{token.text} cannot be the name of an attribute",
            hint="an attribute's name has letters and digits only",
        )
    return token.text.lower()
