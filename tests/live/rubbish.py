"""Values that nobody expects, and JSON that is none."""

from __future__ import annotations

import json
import random

__all__ = ["TEXTS", "Rubbish"]

TEXTS = (
    "",
    "x",
    "\x00",
    "\ud800",
    "é" * 100,
    "../../etc/passwd",
    "%00",
    "a" * 5000,
    "🙂",
    "-1",
    "null",
    "2020-13-45T99:99:99Z",
    "1" * 400,
)
"""Texts that somebody may have forgotten."""


class Rubbish:
    """Draws values and documents."""

    def __init__(self, draw: random.Random) -> None:
        self._random = draw

    def value(self, depth: int = 0) -> object:
        """Any value that JSON can have, and that few expect."""
        draw = self._random
        kind = draw.randrange(9 if depth < 4 else 6)
        if kind == 0:
            return draw.choice((None, True, False))
        if kind == 1:
            return draw.choice((0, -1, 2**31, 2**63, 10**30, -(10**400)))
        if kind == 2:
            return draw.choice((0.5, -0.0, 1e308, 5e-324))
        if kind < 6:
            return draw.choice(TEXTS)
        if kind == 6:
            return [self.value(depth + 1) for _ in range(draw.randrange(4))]
        return {draw.choice(TEXTS): self.value(depth + 1) for _ in range(draw.randrange(4))}

    def text(self, document: object) -> bytes:
        """A document as JSON, or as nearly that."""
        draw = self._random
        data = json.dumps(document).encode()
        kind = draw.randrange(12)
        if kind == 0:
            return data[: draw.randrange(len(data) + 1)]
        if kind == 1:
            return b"[" * 5000 + data
        if kind == 2:
            return data.replace(b'"', b"'")
        if kind == 3:
            return b"\xff\xfe" + data
        if kind == 4:
            return data.replace(b":", b":NaN,", 1)
        if kind == 5:
            return data + data
        return data
