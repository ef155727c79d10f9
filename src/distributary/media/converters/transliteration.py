"""What is written for characters that an older charset lacks and that do not decompose."""

# The characters below look like others because they stand for them.
# ruff: noqa: RUF001

from __future__ import annotations

__all__ = ["TRANSLITERATION"]

TRANSLITERATION = str.maketrans(
    {
        "‘": "'", "’": "'", "‚": ",", "‛": "'", "′": "'", "‹": "<", "›": ">",
        "“": '"', "”": '"', "„": '"', "‟": '"', "″": '"', "«": '"', "»": '"',
        "‐": "-", "‑": "-", "‒": "-", "–": "-", "—": "-", "―": "-", "−": "-",
        "…": "...", "•": "*", "·": "*", "⁄": "/", "×": "x", "÷": "/", "¦": "|",
        "€": "EUR", "£": "GBP", "¥": "JPY", "¢": "c", "©": "(c)", "®": "(R)", "°": "deg",
        "ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O",
        "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ł": "l", "Ł": "L",
        "ħ": "h", "Ħ": "H", "ı": "i", "←": "<-", "→": "->", "≤": "<=", "≥": ">=", "≠": "/=",
        "¡": "!", "¿": "?", "±": "+/-", "§": "S.", "¶": "P.",
    }
)  # fmt: skip
"""A table for `str.translate`, from punctuation and letters to their nearest in ASCII."""
