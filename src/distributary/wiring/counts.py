"""Counts in sentences: one broker, two brokers."""

from __future__ import annotations

__all__ = ["counted"]


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return how many there are of something, as words: "1 user", "2,000 users".

    Parameters
    ----------
    count
        How many.
    noun
        What, in the singular.
    plural
        What, in the plural; with an s unless given.
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
