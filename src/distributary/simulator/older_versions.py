"""Brokers of the version before, as far as they differ from those of the present one.

They have the same code. What they are not told, because they do not know the field or the kind,
makes them what they are.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from distributary.broker.encoding import VERSION, decode, fields_of

__all__ = ["read_by"]


def read_by(version: int, data: bytes) -> Any:
    """Return what a broker of a version reads in some bytes, or raise `PeerMisbehaved`."""
    message = decode(data, version)
    return message if version == VERSION else _ignorant(message, version)


def _ignorant(value: Any, version: int) -> Any:
    """Return a value with the defaults of all fields that came after a version."""
    if isinstance(value, tuple):
        known = [_ignorant(one, version) for one in value]
        return type(value)(*known) if hasattr(value, "_fields") else tuple(known)
    if dataclasses.is_dataclass(value):
        cls: Any = type(value)
        names = [field.name for field in fields_of(cls, version)]
        return cls(**{name: _ignorant(getattr(value, name), version) for name in names})
    return value
