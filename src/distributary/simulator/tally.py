"""Tallies: how many messages of each kind were sent, and how many bytes."""

from __future__ import annotations

__all__ = ["Tally"]


class Tally:
    """Messages and bytes by kind."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._bytes: dict[str, int] = {}

    def add(self, kind: str, size_bytes: int) -> None:
        """Count a message."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        self._bytes[kind] = self._bytes.get(kind, 0) + size_bytes

    def messages(self) -> dict[str, int]:
        """Return how many there were of each kind."""
        return dict(sorted(self._counts.items()))

    def bytes(self) -> dict[str, int]:
        """Return how many bytes they took, by kind."""
        return dict(sorted(self._bytes.items()))
