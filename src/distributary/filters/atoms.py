"""Atoms: the single questions, each about what one key holds, that filters are made of.

A filter of any dialect is a formula over them (`formula`), and two filters can be compared
because they share them: `{"exact": {"type": "a"}}` and `{"sql": "type = 'a'"}` ask the same.
An atom answers for a value exactly as the filter would. What a value may be:

- None: the publication has nothing at the key, or nothing that a filter sees;
- at an attribute, a String, an Integer or a Boolean;
- at a JSON Pointer, a text or a double.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from itertools import product
from typing import TypeAlias

from distributary.content.attributes import AttributeValue, attribute_number, attribute_text
from distributary.filters.evaluation import Errors, Evaluator
from distributary.filters.interval import Spans
from distributary.filters.like_pattern import LikePattern
from distributary.filters.program import compile_tree
from distributary.filters.sql_casts import (
    CASTS,
    attribute_value,
    integer_of,
    to_boolean,
    to_integer,
)
from distributary.filters.sql_functions import Functions
from distributary.filters.sql_tree import Attribute, Literal, Logic, SqlNode, Value, ValueType

__all__ = [
    "Atom",
    "Ends",
    "Found",
    "Integers",
    "Kind",
    "Like",
    "Member",
    "Numbers",
    "Outcome",
    "Starts",
    "Texts",
    "Truth",
    "is_pointer",
    "outcome",
    "present",
    "text_of",
]

Found: TypeAlias = AttributeValue | float | None
"""What a key holds."""

_TRUE = Literal(ValueType.BOOLEAN, True)


class Kind(Enum):
    """The kinds of value that are looked at one by one."""

    MISSING = auto()
    BOOLEAN = auto()
    INTEGER = auto()
    STRING = auto()
    NUMBER = auto()


def is_pointer(key: str) -> bool:
    """Does the key lead into `data`?"""
    return key.startswith("/")


def text_of(value: Found) -> str | None:
    """Return the text that filters see, if any."""
    if value is None or isinstance(value, float):
        return None
    return attribute_text(value)


class _Question:
    """What atoms have in common. Not an ABC: telling them apart would take three times as long."""

    def holds(self, value: Found) -> bool:
        """Return the answer for a value at the key."""
        raise NotImplementedError

    def support(self, kind: Kind, sign: bool) -> tuple[Found, ...] | None:
        """Return all values of a kind for which the answer is `sign`, and maybe others.

        None when they are too many to list. Only Strings and Integers are asked about: of
        the other kinds there are few values, or they are numbers.
        """
        return None


class _TextQuestion(_Question):
    """A question about the text at the key; where there is none, the answer is no."""

    def holds(self, value: Found) -> bool:
        text = text_of(value)
        return text is not None and self._fits(text)

    def _fits(self, text: str) -> bool:
        raise NotImplementedError


@dataclass(frozen=True)
class Texts(_TextQuestion):
    """The text at `key` is one of `texts`."""

    key: str
    texts: frozenset[str]

    def _fits(self, text: str) -> bool:
        return text in self.texts

    def support(self, kind: Kind, sign: bool) -> tuple[Found, ...] | None:
        """Return the texts, as they are or as Integers."""
        if not sign:
            return None
        return tuple(self.texts) if kind is Kind.STRING else _canonical(self.texts)


@dataclass(frozen=True)
class Starts(_TextQuestion):
    """There is a text at `key`, and it starts with `text`."""

    key: str
    text: str

    def _fits(self, text: str) -> bool:
        return text.startswith(self.text)

    def support(self, kind: Kind, sign: bool) -> tuple[Found, ...] | None:
        """Return none if there always is such a text, and say nothing otherwise."""
        return None if sign or self.text else ()


@dataclass(frozen=True)
class Ends(_TextQuestion):
    """There is a text at `key`, and it ends with `text`."""

    key: str
    text: str

    def _fits(self, text: str) -> bool:
        return text.endswith(self.text)


@dataclass(frozen=True)
class Like(_TextQuestion):
    """There is a text at `key`, and it matches a pattern with several wildcards."""

    key: str
    pattern: LikePattern

    def _fits(self, text: str) -> bool:
        return self.pattern.matches(text)


@dataclass(frozen=True)
class Numbers(_Question):
    """There is a number at `key`, and it lies in `spans`: the dialect `range`."""

    key: str
    spans: Spans

    def holds(self, value: Found) -> bool:
        """Return whether the value is, or reads as, such a number."""
        if value is None or isinstance(value, float):
            number = value
        else:
            number = None if is_pointer(self.key) else attribute_number(value)
        return number is not None and any(number in span for span in self.spans)


@dataclass(frozen=True)
class Integers(_Question):
    """CESQL reads the attribute as an Integer, and it lies in `spans`."""

    key: str
    spans: Spans

    def holds(self, value: Found) -> bool:
        """Return whether the value casts to such an Integer."""
        seen = attribute_value(value)
        if isinstance(seen, str):
            seen = integer_of(seen)
        return seen is not None and any(int(seen) in span for span in self.spans)


@dataclass(frozen=True)
class Truth(_Question):
    """CESQL reads the attribute as the Boolean `expected`."""

    key: str
    expected: bool

    def holds(self, value: Found) -> bool:
        """Return whether the value casts to that Boolean."""
        errors: Errors = []
        seen = attribute_value(value)
        return seen is not None and to_boolean(seen, errors) is self.expected and not errors

    def support(self, kind: Kind, sign: bool) -> tuple[Found, ...] | None:
        """Return the spellings of the word, or the one integer that is false."""
        if kind is Kind.STRING:
            return _SPELLINGS[self.expected] if sign else None
        return (0,) if sign is not self.expected else None


@dataclass(frozen=True)
class Member(_Question):
    """Among `items`, cast to the attribute's type, CESQL finds the attribute, or does not.

    It is found or not as `expected`; a cast that fails is neither.
    """

    key: str
    items: tuple[Literal, ...]
    expected: bool

    def holds(self, value: Found) -> bool:
        """Return whether the items cast to the value's type, and it is found as expected."""
        seen = attribute_value(value)
        if seen is None:
            return False
        elements = self._elements[ValueType.of(seen)]
        return elements is not None and (seen in elements) is self.expected

    @cached_property
    def _elements(self) -> dict[ValueType, frozenset[Value] | None]:
        """The items cast to each type, or None where one of them does not cast."""
        found: dict[ValueType, frozenset[Value] | None] = {}
        for type_, cast in CASTS.items():
            errors: Errors = []
            elements = frozenset(cast(item.value, errors) for item in self.items)
            found[type_] = None if errors else elements
        return found

    def support(self, kind: Kind, sign: bool) -> tuple[Found, ...] | None:
        """Return the items as values of that kind."""
        listed = sign is self.expected
        if kind is Kind.STRING:
            return tuple(attribute_text(item.value) for item in self.items) if listed else None
        errors: Errors = []
        numbers = tuple(to_integer(item.value, errors) for item in self.items)
        if errors:
            # Some item is no Integer, so an Integer is neither found nor not found.
            return () if sign else None
        return numbers if listed else None


@dataclass(frozen=True)
class Outcome(_Question):
    """A part of a CESQL expression comes to `expected`, without an error.

    Whatever has no better form ends up here. It can be asked about a value where it reads
    one attribute; of several, all that is known is that it is the same as itself.

    The key is the attribute, or a name that no key has when it reads several.
    """

    key: str
    node: SqlNode
    functions: Functions
    expected: bool

    def holds(self, value: Found) -> bool:
        """Return whether an event with that value, and nothing else, has this outcome."""
        errors: Errors = []
        result = self._evaluator({} if value is None else {self.key: value}, errors)
        return result is self.expected and not errors

    def support(self, kind: Kind, sign: bool) -> tuple[Found, ...] | None:
        """Return none for an attribute by itself, which is true as a Boolean only."""
        return () if sign and isinstance(self.node, Attribute) else None

    @cached_property
    def _evaluator(self) -> Evaluator:
        return compile_tree(self.node, self.functions)


Atom: TypeAlias = Texts | Starts | Ends | Like | Numbers | Integers | Truth | Member | Outcome


def present(key: str) -> Starts:
    """Return the atom that there is a text, or an attribute of any type, at `key`."""
    return Starts(key, "")


def outcome(node: SqlNode, functions: Functions, attributes: dict[str, Value]) -> bool | None:
    """Return what a node comes to as a condition, for an event; None is an error."""
    errors: Errors = []
    condition = Logic(("AND",), (_TRUE, node))
    value = compile_tree(condition, functions)(attributes, errors)
    return None if errors else value is True


def _canonical(texts: frozenset[str]) -> tuple[Found, ...]:
    """Return the Integers, of 32 bits, whose text is among `texts`."""
    numbers = ((integer_of(text), text) for text in texts)
    return tuple(number for number, text in numbers if number is not None and str(number) == text)


_SPELLINGS: dict[bool, tuple[str, ...]] = {
    truth: tuple(map("".join, product(*((c, c.upper()) for c in word))))
    for truth, word in ((True, "true"), (False, "false"))
}
