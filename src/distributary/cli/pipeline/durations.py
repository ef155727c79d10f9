"""Lengths of time on the command line: 60s, 500ms, 5m, 2h, 1d."""

from __future__ import annotations

import re
from fractions import Fraction

from distributary.errors import BadInput, quoted

__all__ = ["microseconds"]

_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(us|ms|s|m|h|d)")
_MICROSECONDS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}


def microseconds(option: str, text: str) -> int:
    """Return a length of time in microseconds, or raise `BadInput` naming the option."""
    found = _DURATION.fullmatch(text)
    length = None if found is None else Fraction(found[1]) * _MICROSECONDS[found[2]]
    if length is None or length.denominator != 1:
        raise BadInput(
            option, f"{quoted(text)} is not a length of time", hint="write it as in 60s or 5m"
        )
    return int(length)
