"""Bit rates as formats write them: `200k`, `1M`."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["bits_per_second"]

_RATE = re.compile(r"([1-9][0-9]{0,8})([kKmM]?)")
_FACTORS: Final = {"": 1, "k": 1000, "m": 1_000_000}


def bits_per_second(text: str) -> int | None:
    """Return the bit rate that `text` says, or None if it says none."""
    match = _RATE.fullmatch(text)
    return None if match is None else int(match[1]) * _FACTORS[match[2].lower()]
