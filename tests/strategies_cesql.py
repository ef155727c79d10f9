"""CESQL expressions and events at random: valid ones of every kind, bent ones, and garbage.

One grammar serves both Hypothesis, which shrinks what fails, and a seeded generator, which
is quick enough for a million expressions. Both choose from sequences and from nothing else.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
Value: TypeAlias = str | int | bool

ATTRIBUTES = ("a", "b", "c", "n", "m", "flag", "1st", "source", "id", "subject", "data", "gone")
VALUES: tuple[Value, ...] = (
    *("", "a", "ab", "abc", "aXbXc", "%", "_", "a%b_c", "\\", "a\\b", "'", '"', "it's", " x\t"),
    *("true", "TRUE", "false", "False", "truE ", "0", "1", "-1", "+7", "007", "10", "1_0", "٣"),
    *("2147483647", "2147483648", "-2147483648", "-2147483649", "9" * 30, "ß", "İ", "🜁é", "\x1c"),
    *("\u2003a\u2003", "\u00a0", "e\u0301"),
    *(0, 1, -1, 2, 7, 10, 2_147_483_647, -2_147_483_648, 65_536, 46_341, -5),
    *(True, False),
)
PATTERNS = (
    *("%", "_", "", "a%", "%c", "%b%", "a_c", "a%b%c", "%a_b%", "a\\%b\\_c", "\\", "\\\\%"),
    *("%%", "_%_", "%X%X%", "tr%", "1_", "%_", "_b%", "a\\b", "\\_%", "%\\%%", "2147%"),
)
FUNCTIONS: tuple[tuple[str, int], ...] = (
    *(("LENGTH", 1), ("CONCAT", 0), ("CONCAT", 1), ("CONCAT", 3), ("CONCAT_WS", 1)),
    *(("CONCAT_WS", 3), ("LOWER", 1), ("UPPER", 1), ("TRIM", 1), ("LEFT", 2), ("RIGHT", 2)),
    *(("SUBSTRING", 2), ("SUBSTRING", 3), ("ABS", 1), ("INT", 1), ("BOOL", 1), ("STRING", 1)),
    *(("IS_INT", 1), ("IS_BOOL", 1), ("CONCAT_WS", 0), ("NO_SUCH", 1), ("ABS", 2)),
)
KINDS = (
    *("literal", "literal", "attribute", "attribute", "exists"),
    *("not", "minus", "comparison", "comparison", "like", "in"),
    *("sum", "product", "logic", "logic", "call", "group"),
)
GARBAGE = (
    *("(", ")", ",", "'", '"', "\\", "=", "<>", "!", "!=", "<", ">=", "+", "-", "*", "/", "%"),
    *("AND", "OR", "NOT", "LIKE", "IN", "EXISTS", "TRUE", "a", "B1", "A_B", "_", "1", "-1"),
    *("99999999999", "LENGTH(", "'x'", " ", "\t", "\n", "\x00", "é", "\u00a0", "🜁", ";", "."),
)


@dataclass
class Writer:
    """Writes expressions, as told by `choose`."""

    choose: Callable[[Sequence[object]], object]

    def pick(self, options: Sequence[T]) -> T:
        return self.choose(options)  # type: ignore[return-value]

    def cased(self, word: str) -> str:
        return self.pick((word, word, word.lower(), word.title()))

    def blank(self) -> str:
        return self.pick((" ", " ", " ", "  ", "\t", "\n"))

    def string(self, text: str) -> str:
        """Return a literal for `text`, as far as there is one: backslashes may multiply."""
        quote = self.pick("'\"")
        text = text.replace("\\", "\\\\") if text.endswith("\\") else text
        return quote + text.replace(quote, self.pick(("\\" + quote, quote * 2))) + quote

    def literal(self) -> str:
        value = self.pick(VALUES)
        if isinstance(value, bool):
            return self.cased("TRUE" if value else "FALSE")
        return self.string(value) if isinstance(value, str) else str(value)

    def expression(self, depth: int) -> str:
        kind = self.pick(KINDS) if depth else self.pick(KINDS[:5])
        blank = self.blank()
        match kind:
            case "literal":
                return self.literal()
            case "attribute":
                return self.cased(self.pick(ATTRIBUTES))
            case "exists":
                return f"{self.cased('EXISTS')}{blank}{self.pick(ATTRIBUTES)}"
            case "not":
                return f"{self.cased('NOT')}{blank}{self.expression(depth - 1)}"
            case "minus":
                return f"-{self.pick(('', ' '))}{self.expression(depth - 1)}"
            case "comparison":
                return self.chain(("=", "!=", "<>", "<", "<=", ">", ">="), depth, (2, 2, 2, 3))
            case "sum":
                return self.chain(("+", "-"), depth, (2, 2, 3))
            case "product":
                return self.chain(("*", "/", "%"), depth, (2, 2, 3))
            case "logic":
                return self.chain(("AND", "OR", "XOR"), depth, (2, 2, 3, 4))
            case "like" | "in":
                return self.suffixed(kind, depth)
            case "call":
                name, count = self.pick(FUNCTIONS)
                arguments = [self.expression(depth - 1) for _ in range(count)]
                return f"{self.cased(name)}({f',{blank}'.join(arguments)})"
            case _:
                return f"({self.expression(depth - 1)})"

    def chain(self, operators: Sequence[str], depth: int, lengths: Sequence[int]) -> str:
        text = self.expression(depth - 1)
        for _ in range(self.pick(lengths) - 1):
            operator = self.cased(self.pick(operators))
            text = f"{text}{self.blank()}{operator}{self.blank()}{self.expression(depth - 1)}"
        return text

    def suffixed(self, kind: str, depth: int) -> str:
        operator = self.cased(self.pick((kind.upper(), f"NOT {kind.upper()}")))
        operand = f"{self.expression(depth - 1)}{self.blank()}{operator}{self.blank()}"
        if kind == "like":
            return operand + self.string(self.pick(PATTERNS))
        items = [self.expression(depth - 1) for _ in range(self.pick((1, 2, 3)))]
        return f"{operand}({', '.join(items)})"

    def bent(self, depth: int) -> str:
        """Return an expression with something cut out or put in."""
        text = self.expression(depth)
        start = self.pick(range(len(text) + 1))
        end = self.pick((start, start, min(len(text), start + 1), min(len(text), start + 5)))
        return text[:start] + self.pick(("", *GARBAGE)) + text[end:]

    def garbage(self) -> str:
        return "".join(self.pick(GARBAGE) for _ in range(self.pick(range(1, 12))))

    def event(self) -> dict[str, Value]:
        """Return attributes; some that expressions name are never there, some only at times."""
        names = (name for name in ATTRIBUTES if name != "gone" and self.pick((True, True, False)))
        return {name: self.pick(VALUES) for name in names}


def drawing(draw: st.DrawFn) -> Writer:
    return Writer(lambda options: draw(st.sampled_from(options)))


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """Draw a valid expression."""
    return drawing(draw).expression(draw(st.integers(0, 4)))


@st.composite
def near_expressions(draw: st.DrawFn) -> str:
    """Draw a text that is almost an expression, or far from one."""
    writer = drawing(draw)
    return draw(
        st.one_of(
            st.builds(lambda: writer.bent(draw(st.integers(0, 3)))),
            st.builds(writer.garbage),
            st.text(max_size=30),
        )
    )


@st.composite
def events(draw: st.DrawFn) -> dict[str, Value]:
    """Draw the attributes of an event."""
    return drawing(draw).event()


def random_case(seed: int) -> tuple[str, dict[str, Value]]:
    """Return an expression, valid four times out of five, and an event."""
    writer = Writer(random.Random(seed).choice)
    make = writer.pick(("valid", "valid", "valid", "valid", "bent", "garbage"))
    depth = writer.pick((0, 1, 1, 2, 2, 3))
    text = writer.garbage() if make == "garbage" else ""
    text = writer.bent(depth) if make == "bent" else text
    return text or writer.expression(depth), writer.event()
