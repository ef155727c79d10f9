"""CESQL straight from the specification's text: a parser that descends, a walk over the tree.

Trees are nested tuples. A walk returns a value and the kinds of the errors below it, and
nothing is shared with the package: not the tokens, not the casts, not the functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Value = str | int | bool
Outcome = tuple[Value, frozenset[str]]
Tree = tuple[Any, ...]

NONE: frozenset[str] = frozenset()
LOWEST, HIGHEST = -2_147_483_648, 2_147_483_647
KEYWORDS = {"and", "or", "xor", "not", "like", "exists", "in", "true", "false"}
LETTERS = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
DIGITS = set("0123456789")
WHITE_SPACE = {chr(c) for c in (*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B))} | {
    chr(c) for c in (0x2028, 0x2029, 0x202F, 0x205F, 0x3000)
}


class Malformed(Exception):
    """The text is no expression."""


def reference_evaluate(text: str, event: Mapping[str, Value]) -> Outcome:
    """Return the value of the expression, and the kinds of the errors met."""
    try:
        tree = Reader(text).whole()
    except Malformed:
        return False, frozenset({"parse"})
    return walk(tree, event)


class Reader:
    """Reads characters, one precedence after another."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def whole(self) -> Tree:
        tree = self.logic()
        self.blanks()
        if self.at < len(self.text):
            raise Malformed
        return tree

    def blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t\r\n":
            self.at += 1

    def word(self) -> str:
        """Return the run of letters, digits and underscores ahead, without taking it."""
        self.blanks()
        end = self.at
        while end < len(self.text) and (
            self.text[end] in LETTERS | DIGITS or self.text[end] == "_"
        ):
            end += 1
        return self.text[self.at : end]

    def keyword(self, *wanted: str) -> str | None:
        word = self.word()
        if word.lower() in wanted:
            self.at += len(word)
            return word.lower()
        return None

    def symbol(self, *wanted: str) -> str | None:
        self.blanks()
        for symbol in sorted(wanted, key=len, reverse=True):
            if self.text.startswith(symbol, self.at):
                self.at += len(symbol)
                return symbol
        return None

    def logic(self) -> Tree:
        tree = self.comparison()
        while operator := self.keyword("and", "or", "xor"):
            tree = (operator, tree, self.comparison())
        return tree

    def comparison(self) -> Tree:
        tree = self.addition()
        while operator := self.symbol("=", "!=", "<>", "<", "<=", ">", ">="):
            tree = (operator, tree, self.addition())
        return tree

    def addition(self) -> Tree:
        tree = self.multiplication()
        while operator := self.symbol("+", "-"):
            tree = (operator, tree, self.multiplication())
        return tree

    def multiplication(self) -> Tree:
        tree = self.suffixed()
        while operator := self.symbol("*", "/", "%"):
            tree = (operator, tree, self.suffixed())
        return tree

    def suffixed(self) -> Tree:
        tree = self.prefixed()
        while True:
            before = self.at
            negated = self.keyword("not") is not None
            if self.keyword("like"):
                self.blanks()
                if self.text[self.at : self.at + 1] not in ("'", '"'):
                    raise Malformed
                tree = ("like", tree, self.string())
            elif self.keyword("in"):
                if not self.symbol("("):
                    raise Malformed
                items = [self.logic()]
                while self.symbol(","):
                    items.append(self.logic())
                if not self.symbol(")"):
                    raise Malformed
                tree = ("in", tree, items)
            elif negated:
                raise Malformed
            else:
                self.at = before
                return tree
            if negated:
                tree = ("not a match", tree)

    def prefixed(self) -> Tree:
        if self.keyword("not"):
            return ("not", self.prefixed())
        self.blanks()
        if self.text[self.at : self.at + 1] in ("+", "-") and self.signed_digits():
            return self.primary()
        if self.symbol("-"):
            return ("minus", self.prefixed())
        return self.primary()

    def signed_digits(self) -> bool:
        """Tell whether a sign is ahead, and a word of nothing but digits right after it."""
        ahead = Reader(self.text[self.at + 1 :])
        return ahead.text[:1] in DIGITS and set(ahead.word()) <= DIGITS and ahead.word() != ""

    def primary(self) -> Tree:
        self.blanks()
        first = self.text[self.at : self.at + 1]
        if first in ("'", '"') and first:
            return ("literal", self.string())
        if self.symbol("("):
            tree = self.logic()
            if not self.symbol(")"):
                raise Malformed
            return tree
        if self.keyword("exists"):
            return ("exists", self.attribute_name())
        if word := self.keyword("true", "false"):
            return ("literal", word == "true")
        if first in ("+", "-") and not self.signed_digits():
            raise Malformed
        sign = self.symbol("+", "-")
        word = self.word()
        if word and set(word) <= DIGITS:
            self.at += len(word)
            value = int(word) if len(word) < 4000 else HIGHEST + 1
            if sign == "-":
                value = -value
            if not LOWEST <= value <= HIGHEST:
                raise Malformed
            return ("literal", value)
        before = self.at
        self.at += len(word)
        if not word or word.lower() in KEYWORDS:
            raise Malformed
        if not self.symbol("("):
            self.at = before
            return ("attribute", self.attribute_name())
        if word[0] not in LETTERS or not set(word) <= LETTERS | {"_"}:
            raise Malformed
        arguments: list[Tree] = []
        if not self.symbol(")"):
            arguments.append(self.logic())
            while self.symbol(","):
                arguments.append(self.logic())
            if not self.symbol(")"):
                raise Malformed
        return ("call", word.upper(), arguments)

    def attribute_name(self) -> str:
        word = self.word()
        self.at += len(word)
        if not word or word.lower() in KEYWORDS or "_" in word:
            raise Malformed
        return word.lower()

    def string(self) -> str:
        quote = self.text[self.at]
        self.at += 1
        value = ""
        while self.at < len(self.text):
            here, following = self.text[self.at], self.text[self.at + 1 : self.at + 2]
            if here == quote and following != quote:
                self.at += 1
                return value
            if here in ("\\", quote):
                value += quote if following == quote else here + following
                self.at += 2
            else:
                value += here
                self.at += 1
        raise Malformed


def cast(value: Value, target: type) -> Outcome:
    """Cast as section 3.7 says; a failure has the value that the section gives it."""
    if isinstance(value, target) and not (target is int and isinstance(value, bool)):
        return value, NONE
    if target is str:
        return ("true" if value else "false") if isinstance(value, bool) else str(value), NONE
    if not isinstance(value, str):
        return target(value), NONE
    if target is bool:
        if value.lower() in ("true", "false"):
            return value.lower() == "true", NONE
        return False, frozenset({"cast"})
    digits = value[1:] if value[:1] in ("+", "-") else value
    if digits and set(digits) <= DIGITS and len(digits) < 4000 and LOWEST <= int(value) <= HIGHEST:
        return int(value), NONE
    return 0, frozenset({"cast"})


def walk(tree: Tree, event: Mapping[str, Value]) -> Outcome:
    """Return the value of the tree for the event, and the kinds of errors met."""
    match tree:
        case ("literal", value):
            return value, NONE
        case ("attribute", name):
            if name in event and name != "data":
                return event[name], NONE
            return False, frozenset({"missingAttribute"})
        case ("exists", name):
            return name in ("id", "source", "type", "specversion") or (
                name in event and name != "data"
            ), NONE
        case ("and" | "or" | "xor", left, right):
            return walk_logic(tree[0], left, right, event)
        case ("call", name, arguments):
            return walk_call(name, arguments, event)
        case ("in", operand, items):
            outcomes = [walk(part, event) for part in (operand, *items)]
            if errors := union(outcomes):
                return False, errors
            value = outcomes[0][0]
            casts = [cast(item, type(value)) for item, _ in outcomes[1:]]
            return any(item == value for item, _ in casts), union(casts)
        case ("not a match", operand):
            # "Same as NOT (x LIKE pattern)", where an operand that failed leaves false.
            value, errors = walk(operand, event)
            failed = bool(union([walk(part, event) for part in parts(operand)]))
            return (not value) and not failed, errors
        case _:
            return walk_operator(tree, event)


def parts(tree: Tree) -> list[Tree]:
    return [tree[1]] if tree[0] == "like" else [tree[1], *tree[2]]


def union(outcomes: list[Outcome]) -> frozenset[str]:
    return NONE.union(*(errors for _, errors in outcomes))


def walk_logic(operator: str, left: Tree, right: Tree, event: Mapping[str, Value]) -> Outcome:
    value, errors = walk(left, event)
    first, cast_errors = cast(value, bool)
    collected = errors or cast_errors
    if (operator, first) in (("and", False), ("or", True)):
        return bool(first) and not errors, collected
    value, right_errors = walk(right, event)
    if errors or right_errors:
        return False, collected | right_errors
    second, cast_errors = cast(value, bool)
    collected = collected | cast_errors
    return (first != second if operator == "xor" else second), collected


def walk_operator(tree: Tree, event: Mapping[str, Value]) -> Outcome:
    """Evaluate the operators that evaluate all their operands."""
    operator = tree[0]
    operands = [walk(part, event) for part in tree[1:] if isinstance(part, tuple)]
    arithmetic = operator in ("+", "-", "*", "/", "%", "minus")
    if errors := union(operands):
        return (0 if arithmetic else False), errors
    values = [value for value, _ in operands]
    if operator == "like":
        return like(str(cast(values[0], str)[0]), tree[2]), NONE
    if operator == "not":
        if isinstance(values[0], int) and not isinstance(values[0], bool):
            return True, frozenset({"cast"})
        value, errors = cast(values[0], bool)
        return not value, errors
    if operator in ("=", "!=", "<>"):
        left, errors = cast(values[0], type(values[1]))
        return (left == values[1]) == (operator == "="), errors
    casts = [cast(value, int) for value in values]
    numbers = [int(value) for value, _ in casts]
    if not arithmetic:
        return compare(operator, *numbers), union(casts)
    result = compute(operator, *numbers)
    if result is None or not LOWEST <= result <= HIGHEST:
        return 0, union(casts) | {"math"}
    return result, union(casts)


def compare(operator: str, left: int, right: int) -> bool:
    table = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}
    return table[operator]


def compute(operator: str, left: int, right: int = 0) -> int | None:
    if operator == "minus":
        return -left
    if operator in "/%":
        if right == 0:
            return None
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == "/" else left - quotient * right
    return {"+": left + right, "-": left - right, "*": left * right}[operator]


def like(text: str, pattern: str) -> bool:
    """Match by trying everything, a row of the table for each character of the pattern."""
    tokens: list[tuple[str, bool]] = []
    at = 0
    while at < len(pattern):
        if pattern[at] == "\\" and pattern[at + 1 : at + 2] in ("%", "_"):
            tokens.append((pattern[at + 1], True))
            at += 2
        else:
            tokens.append((pattern[at], pattern[at] not in "%_"))
            at += 1
    reached = {0}
    for character, literal in tokens:
        if literal:
            reached = {i + 1 for i in reached if text[i : i + 1] == character}
        elif character == "_":
            reached = {i + 1 for i in reached if i < len(text)}
        else:
            reached = set(range(min(reached), len(text) + 1)) if reached else set()
    return len(text) in reached


SIGNATURES: dict[tuple[str, int], tuple[list[type | None], type]] = {
    ("LENGTH", 1): ([str], int),
    ("LOWER", 1): ([str], str),
    ("UPPER", 1): ([str], str),
    ("TRIM", 1): ([str], str),
    ("LEFT", 2): ([str, int], str),
    ("RIGHT", 2): ([str, int], str),
    ("SUBSTRING", 2): ([str, int], str),
    ("SUBSTRING", 3): ([str, int, int], str),
    ("ABS", 1): ([int], int),
    ("INT", 1): ([int], int),
    ("BOOL", 1): ([bool], bool),
    ("STRING", 1): ([str], str),
    ("IS_INT", 1): ([None], bool),
    ("IS_BOOL", 1): ([None], bool),
}


def walk_call(name: str, arguments: list[Tree], event: Mapping[str, Value]) -> Outcome:
    if name == "CONCAT" or (name == "CONCAT_WS" and arguments):
        types, returned = [str] * len(arguments), str
    elif (name, len(arguments)) in SIGNATURES:
        types, returned = SIGNATURES[name, len(arguments)]  # type: ignore[assignment]
    else:
        return False, frozenset({"missingFunction"})
    outcomes = [walk(argument, event) for argument in arguments]
    if errors := union(outcomes):
        return returned(), errors
    casts = [
        outcome if target is None else cast(outcome[0], target)
        for outcome, target in zip(outcomes, types, strict=True)
    ]
    value, errors = call(name, [value for value, _ in casts])
    return value, union(casts) | errors


def call(name: str, arguments: list[Any]) -> Outcome:
    failed = frozenset({"functionEvaluation"})
    match name, *arguments:
        case "CONCAT", *texts:
            return "".join(texts), NONE
        case "CONCAT_WS", delimiter, *texts:
            return delimiter.join(texts), NONE
        case "LENGTH", text:
            return len(text), NONE
        case "LOWER", text:
            return text.lower(), NONE
        case "UPPER", text:
            return text.upper(), NONE
        case "TRIM", text:
            while text and text[0] in WHITE_SPACE:
                text = text[1:]
            while text and text[-1] in WHITE_SPACE:
                text = text[:-1]
            return text, NONE
        case "LEFT" | "RIGHT", text, count:
            if count < 0:
                return text, failed
            if len(text) <= count:
                return text, NONE
            return text[:count] if name == "LEFT" else text[len(text) - count :], NONE
        case "SUBSTRING", text, position, *length:
            if position > len(text) or position < -len(text) or (length and length[0] < 0):
                return "", failed
            if position == 0:
                return "", NONE
            rest = text[position - 1 :] if position > 0 else text[position:]
            return rest[: length[0]] if length else rest, NONE
        case "ABS", number:
            return (HIGHEST, frozenset({"math"})) if number == LOWEST else (abs(number), NONE)
        case "IS_INT", value:
            integer = cast(value, int) if isinstance(value, str) else (value, NONE)
            return not isinstance(value, bool) and not integer[1], NONE
        case "IS_BOOL", value:
            if isinstance(value, str):
                return value.lower() in ("true", "false"), NONE
            return isinstance(value, bool), NONE
        case _:
            return arguments[0], NONE
