"""CESQL expressions as data: what the parser makes, and the compiler and the index read.

Chains of `AND`, `OR`, `XOR`, of `+ -` and of `* / %` are one flat node each, evaluated from
left to right. A tree with a node for every operator would be as deep as a chain is long, and
whoever walks it would run out of stack on a sender's say-so.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from distributary.content.attributes import AttributeValue

__all__ = [
    "Arithmetic",
    "Attribute",
    "Call",
    "Comparison",
    "Exists",
    "In",
    "Like",
    "Literal",
    "Logic",
    "Negation",
    "Not",
    "SqlNode",
    "Value",
    "ValueType",
]

Value: TypeAlias = AttributeValue
"""What an expression has for a value: a String, an Integer or a Boolean."""


class ValueType(Enum):
    """The types of CESQL."""

    STRING = "String"
    INTEGER = "Integer"
    BOOLEAN = "Boolean"

    @property
    def zero(self) -> Value:
        """The value that stands in where an error left none."""
        return _ZEROS[self]

    @staticmethod
    def of(value: Value) -> ValueType:
        """Return the type of a value; in Python a Boolean is an integer, here it is not."""
        if isinstance(value, str):
            return ValueType.STRING
        return ValueType.BOOLEAN if isinstance(value, bool) else ValueType.INTEGER


_ZEROS: dict[ValueType, Value] = {
    ValueType.STRING: "",
    ValueType.INTEGER: 0,
    ValueType.BOOLEAN: False,
}


@dataclass(frozen=True, slots=True)
class Literal:
    """A value written out.

    The type stands beside the value because `1 == True` in Python: without it, expressions that
    differ would compare as equal.
    """

    type: ValueType
    value: Value


@dataclass(frozen=True, slots=True)
class Attribute:
    """The value of an attribute of the event; `name` is in lower case."""

    name: str


@dataclass(frozen=True, slots=True)
class Exists:
    """`EXISTS name`: the event has the attribute."""

    name: str


@dataclass(frozen=True, slots=True)
class Not:
    """`NOT operand`."""

    operand: SqlNode


@dataclass(frozen=True, slots=True)
class Negation:
    """`-operand`."""

    operand: SqlNode


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left operator right` with one of `=`, `!=`, `<`, `<=`, `>`, `>=`; `<>` is kept as `!=`."""

    operator: str
    left: SqlNode
    right: SqlNode


@dataclass(frozen=True, slots=True)
class Like:
    """`operand LIKE pattern`, or `NOT LIKE` when `negated`; the pattern is as written."""

    operand: SqlNode
    pattern: str
    negated: bool


@dataclass(frozen=True, slots=True)
class In:
    """`operand IN (items)`, or `NOT IN` when `negated`."""

    operand: SqlNode
    items: tuple[SqlNode, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Operands joined by `+ -`, or by `* / %`, from left to right.

    `operators[i]` comes before `operands[i + 1]`.
    """

    operators: tuple[str, ...]
    operands: tuple[SqlNode, ...]


@dataclass(frozen=True, slots=True)
class Logic:
    """Operands joined by `AND`, `OR` and `XOR`, from left to right.

    `operators[i]` comes before `operands[i + 1]`. The three have one precedence, so a chain may mix
    them.
    """

    operators: tuple[str, ...]
    operands: tuple[SqlNode, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A function invocation; `name` is in upper case, and there may be no such function."""

    name: str
    arguments: tuple[SqlNode, ...]


SqlNode: TypeAlias = (
    Literal
    | Attribute
    | Exists
    | Not
    | Negation
    | Comparison
    | Like
    | In
    | Arithmetic
    | Logic
    | Call
)
