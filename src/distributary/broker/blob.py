"""Blobs: content in one format, by reference.

Bytes are never inside a message or a record: they are in the content stores of hosts, and go
from host to host. What brokers tell each other is what they are, how many, and their digest.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

__all__ = ["Blob", "is_digest"]

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Blob:
    """Content in one format, whose bytes are elsewhere.

    Attributes
    ----------
    digest
        SHA-256 of the bytes, in 64 hexadecimal digits: what they are asked for by.
    """

    media_type: str
    size_bytes: int
    digest: str

    @classmethod
    def of(cls, media_type: str, data: bytes) -> Blob:
        """Return what refers to some bytes."""
        return cls(media_type, len(data), hashlib.sha256(data).hexdigest())

    @classmethod
    def imagined(cls, media_type: str, size_bytes: int, name: str) -> Blob:
        """Return what refers to content that there is not: it has a size and a name."""
        digest = hashlib.sha256(f"{media_type}\n{name}".encode()).hexdigest()
        return cls(media_type, size_bytes, digest)


def is_digest(text: str) -> bool:
    """Whether a text can be the digest of content."""
    return _DIGEST.fullmatch(text) is not None
