"""Blobs: content in one format, which brokers pass on without looking into it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

__all__ = ["Blob"]


@dataclass(frozen=True, slots=True)
class Blob:
    """Content in one format.

    Attributes
    ----------
    media_type
        The format.
    size_bytes
        How large it is.
    digest
        What tells it from other content; SHA-256 when the bytes are there.
    data
        The bytes; None where content is only simulated, or kept elsewhere under its digest.
    """

    media_type: str
    size_bytes: int
    digest: str
    data: bytes | None = None

    @classmethod
    def of(cls, media_type: str, data: bytes) -> Blob:
        """Return bytes as a blob."""
        return cls(media_type, len(data), hashlib.sha256(data).hexdigest(), data)

    @classmethod
    def imagined(cls, media_type: str, size_bytes: int, name: str) -> Blob:
        """Return content that has a size and a name but no bytes."""
        digest = hashlib.sha256(f"{media_type}\n{name}".encode()).hexdigest()
        return cls(media_type, size_bytes, digest)
