"""From the text of a CESQL expression to its tree.

Precedence, tightest first: function calls; `NOT` and unary `-`; `LIKE`; `EXISTS`; `IN`;
`* / %`; `+ -`; comparisons; `AND OR XOR`. Operators of one precedence go from left to right.

Operands and operators wait on stacks of our own, one pair for every open bracket. Recursive
descent is shorter, but the text then decides how deep Python's stack grows.
"""

from __future__ import annotations

import re

from distributary.errors import BadInput
from distributary.filters import sql_tree as sql
from distributary.filters.sql_casts import integer_of
from distributary.filters.sql_stack import (
    COMPARISON,
    LOGIC,
    PRECEDENCE,
    UNARY,
    Bracket,
    Chain,
    Operand,
    Operator,
)
from distributary.filters.sql_tokens import FUNCTION_NAME, Token, TokenKind, fault, tokens
from distributary.filters.sql_tree import SqlNode, ValueType

__all__ = ["EXPRESSION_CHARACTERS_MAX", "NESTING_MAX", "parse_tree"]

EXPRESSION_CHARACTERS_MAX = 65_536
NESTING_MAX = 64

_ATTRIBUTE_NAME = re.compile(r"[A-Za-z0-9]+")


def parse_tree(text: str) -> SqlNode:
    """Return the tree of the expression, or refuse it, naming the character at fault."""
    if len(text) > EXPRESSION_CHARACTERS_MAX:
        raise BadInput(
            "expression",
            f"has {len(text):,} characters, and may have {EXPRESSION_CHARACTERS_MAX:,}",
        )
    return _Parser(tokens(text)).parse()


class _Parser:
    """One pass over the tokens; every token is looked at a bounded number of times."""

    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._next = 0
        self._bracket = Bracket()
        self._outer: list[Bracket] = []

    def parse(self) -> SqlNode:
        while True:
            # Between these two lines stands one complete operand.
            self._read_operand()
            if self._read_after_operand():
                return self._finished().node()

    def _take(self) -> Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _takes(self, text: str) -> bool:
        """Take the next token if it is the symbol or keyword `text`."""
        token = self._peek()
        if token.text != text or token.kind not in (TokenKind.SYMBOL, TokenKind.KEYWORD):
            return False
        self._next += 1
        return True

    def _push(self, node: SqlNode, depth: int, start: int) -> None:
        if depth > NESTING_MAX:
            raise _too_deep(start)
        self._bracket.operands.append(Operand(node, depth))

    def _read_operand(self) -> None:
        """Read prefix operators and open brackets up to, and with, the next operand."""
        while True:
            token = self._take()
            match token.kind:
                case TokenKind.NUMBER:
                    self._push(_integer(token.text, token.start), 1, token.start)
                    return
                case TokenKind.STRING:
                    self._push(sql.Literal(ValueType.STRING, token.text), 1, token.start)
                    return
                case TokenKind.NAME:
                    if self._takes("("):
                        if self._open_call(token):
                            return
                    else:
                        self._push(sql.Attribute(_attribute_name(token)), 1, token.start)
                        return
                case TokenKind.KEYWORD if token.text in ("TRUE", "FALSE"):
                    value = token.text == "TRUE"
                    self._push(sql.Literal(ValueType.BOOLEAN, value), 1, token.start)
                    return
                case TokenKind.KEYWORD if token.text == "EXISTS":
                    name = self._take()
                    if name.kind not in (TokenKind.NAME, TokenKind.NUMBER):
                        raise fault(
                            name.start,
                            f"EXISTS needs the name of an attribute, not {name.described}",
                        )
                    self._push(sql.Exists(_attribute_name(name)), 1, token.start)
                    return
                case TokenKind.SYMBOL if token.text in ("+", "-") and self._sign(token):
                    return
                case TokenKind.SYMBOL if token.text == "(":
                    self._open(Bracket(token))
                case _ if token.text in ("NOT", "-"):
                    self._bracket.operators.append(Operator(token.text, UNARY, token.start))
                case _:
                    raise fault(token.start, f"a value is missing before {token.described}")

    def _sign(self, sign: Token) -> bool:
        """Read an integer literal with its sign: no blank comes between them."""
        digits = self._peek()
        if digits.kind is not TokenKind.NUMBER or digits.start != sign.start + 1:
            return False
        self._next += 1
        self._push(_integer(sign.text + digits.text, sign.start), 1, sign.start)
        return True

    def _open(self, bracket: Bracket) -> None:
        assert bracket.opened is not None
        self._outer.append(self._bracket)
        self._bracket = bracket
        if len(self._outer) > NESTING_MAX:
            raise _too_deep(bracket.opened.start)

    def _open_call(self, name: Token) -> bool:
        """Open the brackets of a function; return whether it closed at once, as an operand."""
        if FUNCTION_NAME.fullmatch(name.text) is None:
            raise fault(
                name.start,
                f"{name.text} cannot be the name of a function",
                hint="a function's name has letters and underscores, and starts with a letter",
            )
        function = name.text.upper()
        if self._takes(")"):
            self._push(sql.Call(function, ()), 1, name.start)
            return True
        self._open(Bracket(name, function))
        return False

    def _read_after_operand(self) -> bool:
        """Read up to the next operator that needs an operand; return whether all is read."""
        while True:
            token = self._take()
            precedence = PRECEDENCE.get(token.text)
            if token.kind in (TokenKind.SYMBOL, TokenKind.KEYWORD) and precedence is not None:
                self._reduce(precedence)
                operator = Operator(token.text, precedence, token.start)
                self._bracket.operators.append(operator)
                return False
            match token.kind, token.text:
                case TokenKind.KEYWORD, "NOT" | "LIKE" | "IN":
                    if self._read_suffix(token):
                        return False
                case TokenKind.SYMBOL, ",":
                    self._end_item(token)
                    return False
                case TokenKind.SYMBOL, ")":
                    self._close(token)
                case TokenKind.END, _:
                    if self._bracket.opened is not None:
                        raise fault(token.start, "a bracket is not closed")
                    return True
                case _:
                    raise fault(token.start, f"an operator is missing before {token.described}")

    def _read_suffix(self, token: Token) -> bool:
        """Read `LIKE` or `IN`, with or without `NOT`; return whether a set was opened."""
        self._reduce(UNARY)
        negated = token.text == "NOT"
        operator = self._take() if negated else token
        operand = self._bracket.operands.pop()
        if operator.kind is TokenKind.KEYWORD and operator.text == "LIKE":
            pattern = self._take()
            if pattern.kind is not TokenKind.STRING:
                raise fault(
                    pattern.start, f"the pattern of LIKE is a string, not {pattern.described}"
                )
            node = sql.Like(operand.node(), pattern.text, negated)
            self._push(node, operand.depth + 1, token.start)
            return False
        if operator.kind is not TokenKind.KEYWORD or operator.text != "IN":
            raise fault(token.start, "NOT between values is followed by LIKE or IN")
        bracket = self._take()
        if bracket.kind is not TokenKind.SYMBOL or bracket.text != "(":
            raise fault(
                bracket.start, f"IN is followed by a set in brackets, not {bracket.described}"
            )
        self._open(Bracket(bracket, member=operand, negated=negated))
        return True

    def _end_item(self, token: Token) -> None:
        bracket = self._bracket
        if bracket.function is None and bracket.member is None:
            raise fault(token.start, "a comma separates arguments, or the elements of a set")
        item = self._finished()
        bracket.items.append(item.node())
        bracket.items_depth = max(bracket.items_depth, item.depth)

    def _close(self, token: Token) -> None:
        """Make an operand of what is in the brackets that `token` closes."""
        bracket = self._bracket
        if bracket.opened is None:
            raise fault(token.start, "there is no open bracket to close")
        if bracket.function is None and bracket.member is None:
            operand = self._finished()
            self._bracket = self._outer.pop()
            self._bracket.operands.append(Operand(operand.node(), operand.depth))
            return
        self._end_item(token)
        items = tuple(bracket.items)
        self._bracket = self._outer.pop()
        if bracket.function is not None:
            node: SqlNode = sql.Call(bracket.function, items)
            depth = bracket.items_depth
        else:
            assert bracket.member is not None
            node = sql.In(bracket.member.node(), items, bracket.negated)
            depth = max(bracket.member.depth, bracket.items_depth)
        self._push(node, depth + 1, bracket.opened.start)

    def _finished(self) -> Operand:
        """Return the one operand that is left when everything in the bracket is applied."""
        self._reduce(LOGIC)
        return self._bracket.operands.pop()

    def _reduce(self, precedence: int) -> None:
        """Apply the waiting operators that bind at least as tightly as `precedence`."""
        operators = self._bracket.operators
        while operators and operators[-1].precedence >= precedence:
            self._apply(operators.pop())

    def _apply(self, operator: Operator) -> None:
        operands = self._bracket.operands
        right = operands.pop()
        if operator.precedence == UNARY:
            kind = sql.Not if operator.text == "NOT" else sql.Negation
            self._push(kind(right.node()), right.depth + 1, operator.start)
            return
        left = operands.pop()
        if operator.precedence == COMPARISON:
            symbol = "!=" if operator.text == "<>" else operator.text
            node = sql.Comparison(symbol, left.node(), right.node())
            self._push(node, max(left.depth, right.depth) + 1, operator.start)
            return
        chain = left.content
        depth = right.depth + 1
        if isinstance(chain, Chain) and chain.precedence == operator.precedence:
            depth = max(left.depth, depth)
        else:
            chain = Chain(operator.precedence, left.node())
            depth = max(left.depth + 1, depth)
        if depth > NESTING_MAX:
            raise _too_deep(operator.start)
        chain.operators.append(operator.text)
        chain.operands.append(right.node())
        operands.append(Operand(chain, depth))


def _too_deep(start: int) -> BadInput:
    return fault(start, f"operators or brackets are nested more than {NESTING_MAX} deep here")


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
