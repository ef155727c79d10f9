"""What messages are about, and what their content takes on a link.

Simulated content has no bytes in its message, only a size that counts on every link that it
passes. Where blobs can be in a message follows from the types of its fields, and is worked
out once for each class. A message that carries another one, encoded, counts as that one;
what carries bytes that are no message counts as itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, get_args, get_type_hints

from distributary.broker.blob import Blob
from distributary.broker.encoding import decode, kind_name
from distributary.errors import PeerMisbehaved

__all__ = ["weigh"]

_Count = Callable[[Any], int]
_CARRIED = "message"
# The same carried message is sent again and again until it is acknowledged.
_REMEMBERED = 4096
# A message to be acknowledged carries one to be routed, which carries another. What is wrapped
# more often than that no broker sends.
_LAYERS = 2


def weigh(message: object) -> tuple[str, int]:
    """Return what a message is about, and the bytes of content that it only gives the size of."""
    return _weigh(message, _LAYERS)


def _weigh(message: object, layers: int) -> tuple[str, int]:
    cls: Any = type(message)
    if layers and _carries(cls):
        carried = _weigh_bytes(getattr(message, _CARRIED), layers - 1)
        return (kind_name(message), 0) if carried is None else carried
    count = _counter(cls)
    return kind_name(message), 0 if count is None else count(message)


@lru_cache(maxsize=_REMEMBERED)
def _weigh_bytes(encoded: bytes, layers: int) -> tuple[str, int] | None:
    """Weigh a message that is carried; None when there is none in the bytes."""
    try:
        carried = decode(encoded)
    except PeerMisbehaved:
        return None
    return _weigh(carried, layers)


@cache
def _carries(cls: Any) -> bool:
    return get_type_hints(cls).get(_CARRIED) is bytes


def _blob(blob: Blob) -> int:
    return blob.size_bytes if blob.data is None else 0


@cache
def _counter(cls: Any) -> _Count | None:
    """Return what counts the content in an object of this class; None when it has none."""
    if cls is Blob:
        return _blob
    if not dataclasses.is_dataclass(cls):
        return None
    hints = get_type_hints(cls)
    names = [field.name for field in dataclasses.fields(cls) if _has_content(hints[field.name])]
    if not names:
        return None
    return lambda message: sum(_count(getattr(message, name)) for name in names)


@cache
def _has_content(hint: Any) -> bool:
    """Whether a field of this type can hold content."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _counter(hint) is not None
    return any(_has_content(argument) for argument in get_args(hint))


def _count(value: object) -> int:
    """Count in a field that is one of several types, or holds several values."""
    if isinstance(value, tuple | list):
        return sum(map(_count, value))
    if isinstance(value, dict):
        return sum(map(_count, value.values()))
    cls: Any = type(value)
    count = _counter(cls)
    return 0 if count is None else count(value)
