"""The words, symbols and string literals of a CESQL expression, in one pass over its text."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import NamedTuple

from distributary.errors import BadInput, quoted

__all__ = ["FUNCTION_NAME", "KEYWORDS", "Token", "TokenKind", "fault", "tokens"]

FUNCTION_NAME = re.compile(r"[A-Za-z][A-Za-z_]*")
KEYWORDS = frozenset(
    ("AND", "OR", "XOR", "NOT", "LIKE", "EXISTS", "IN", "TRUE", "FALSE"),
)

_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
        (?P<word>[A-Za-z0-9_]+)
        |(?P<symbol><=|>=|<>|!=|[=<>+\-*/%(),])
        |(?P<quote>['"])
        |(?P<end>\Z)
        |(?P<other>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_STOPS = {quote: re.compile(rf"[{quote}\\]") for quote in "'\""}


class TokenKind(Enum):
    """What a token is to the parser."""

    KEYWORD = auto()
    NUMBER = auto()
    NAME = auto()
    STRING = auto()
    SYMBOL = auto()
    END = auto()


class Token(NamedTuple):
    """A token and where it starts.

    The text of a keyword is in upper case, that of a string literal is its value, and any other is
    as written.
    """

    kind: TokenKind
    text: str
    start: int

    @property
    def described(self) -> str:
        """The token, for a message."""
        if self.kind is TokenKind.END:
            return "the end of the expression"
        return f"the string {quoted(self.text)}" if self.kind is TokenKind.STRING else self.text


def fault(start: int, problem: str, *, hint: str | None = None) -> BadInput:
    """Return the error for a fault at index `start` of the expression."""
    return BadInput(f"expression, character {start + 1:,}", problem, hint=hint)


def tokens(text: str) -> list[Token]:
    """Return the tokens of the expression, with one for its end."""
    found: list[Token] = []
    position = 0
    while True:
        match = _TOKEN.match(text, position)
        assert match is not None
        assert match.lastgroup is not None
        group = match.lastgroup
        start, position = match.span(group)
        if group == "word":
            found.append(_word(match[group], start))
        elif group == "symbol":
            found.append(Token(TokenKind.SYMBOL, match[group], start))
        elif group == "quote":
            value, position = _string(text, start)
            found.append(Token(TokenKind.STRING, value, start))
        elif group == "end":
            found.append(Token(TokenKind.END, "", start))
            return found
        else:
            raise fault(start, f"{quoted(match[group])} has no meaning outside a string")


def _word(word: str, start: int) -> Token:
    if word.isdigit():
        return Token(TokenKind.NUMBER, word, start)
    upper = word.upper()
    if upper in KEYWORDS:
        return Token(TokenKind.KEYWORD, upper, start)
    return Token(TokenKind.NAME, word, start)


def _string(text: str, start: int) -> tuple[str, int]:
    """Return the value of the string literal that starts there, and where it ends.

    Only the quote that delimits the literal can be escaped, by a backslash or by doubling.
    A backslash before any other character stands for itself, and so does that character:
    `LIKE` reads both again.
    """
    quote = text[start]
    stops = _STOPS[quote]
    pieces: list[str] = []
    position = start + 1
    while (stop := stops.search(text, position)) is not None:
        at = stop.start()
        following = text[at + 1 : at + 2]
        if following == quote:
            pieces.append(text[position:at])
            pieces.append(quote)
        elif text[at] == quote:
            pieces.append(text[position:at])
            return "".join(pieces), at + 1
        else:
            pieces.append(text[position : at + 2])
        position = at + 2
    raise fault(start, f"the string is not closed by {quote}")
