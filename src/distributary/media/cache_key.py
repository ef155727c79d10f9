"""Under which name the result of a conversion is kept."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from distributary.content.media_type import MediaType
from distributary.media.formats import canonical

__all__ = ["CacheKey"]


@dataclass(frozen=True)
class CacheKey:
    """What the result of a conversion depends on, and nothing else.

    The digest is the SHA-256, in hexadecimal, of the content's own SHA-256, both formats and the
    version. A failure that is found again names the formats.
    """

    digest: str
    source: MediaType
    target: MediaType

    @classmethod
    def of(
        cls, content: bytes, source: MediaType | str, target: MediaType | str, version: str
    ) -> CacheKey:
        """Return the key of one conversion.

        Formats that differ in nothing but the order of their parameters, or that go by two
        names, have the same key.

        The version is name and version of the converter: another one may make something else of it.
        """
        formats = [
            MediaType.parse(item, place=place) if isinstance(item, str) else item
            for place, item in (("source", source), ("target", target))
        ]
        # As JSON, so that no two lists of parts run together into the same text.
        parts = [hashlib.sha256(content).hexdigest(), *map(_in_order, formats), version]
        digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        return cls(digest, *formats)


def _in_order(media_type: MediaType) -> str:
    plain = canonical(media_type)
    return str(MediaType(plain.type, plain.subtype, dict(sorted(plain.parameters.items()))))
