"""What messages are about, and what a client gets beside them.

Messages between brokers only refer to content, which counts when it is fetched. A client gets it
with its delivery, and it counts on the way there. A message that carries another one, encoded,
counts as that one; what carries bytes that are no message counts as itself.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast, get_type_hints

from distributary.broker.client import Delivery
from distributary.broker.encoding import decode, kind_of
from distributary.errors import PeerMisbehaved

__all__ = ["weigh"]

_CARRIED = "message"
# A message to be acknowledged carries one to be routed, which carries another. What is wrapped
# more often than that no broker sends.
_LAYERS = 2


def weigh(message: object) -> tuple[str, int]:
    """Return what a message is about, and the bytes of content that go to a client with it."""
    kind: Any = type(message)
    if kind is Delivery:
        blob = cast(Delivery, message).blob
        return kind.__name__, 0 if blob is None else blob.size_bytes
    return _about(message, _LAYERS) if _carries(kind) else kind.__name__, 0


def _about(message: object, layers: int) -> str:
    kind: Any = type(message)
    carried = None
    if layers and _carries(kind):
        carried = _about_bytes(getattr(message, _CARRIED), layers - 1)
    return kind.__name__ if carried is None else carried


def _about_bytes(encoded: bytes, layers: int) -> str | None:
    """Return what a message is about that is carried; None when there is none in the bytes.

    Only what carries another one is read for that: plans are long, and their kind is not.
    """
    kind = kind_of(encoded)
    if kind is None or not (layers and _carries(kind)):
        return None if kind is None else kind.__name__
    try:
        carried = decode(encoded)
    except PeerMisbehaved:
        return None
    return _about(carried, layers)


@cache
def _carries(cls: Any) -> bool:
    return get_type_hints(cls).get(_CARRIED) is bytes
