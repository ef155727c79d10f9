"""How a caller and a worker talk: frames of a JSON header and bytes, over a pair of sockets.

A worker that has read hostile content may be hostile itself. What comes from it is
therefore never unpickled, and never longer than the reader has said beforehand.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["ChannelClosed", "ChannelTimeout", "Frame", "Malformed", "readable", "receive", "send"]

_LENGTHS = struct.Struct("!IQ")  # bytes of the header, bytes of the body
_HEADER_BYTES_MAX = 1 << 16
# A body below this is sent together with its header; copying it is cheaper than a call.
_JOINED_BYTES_MAX = 1 << 16
_PORTION_BYTES = 1 << 20


class ChannelClosed(Exception):
    """The other side is gone."""


class ChannelTimeout(Exception):
    """The other side took too long."""


class Malformed(Exception):
    """The other side does not keep to the protocol."""


@dataclass(frozen=True)
class Frame:
    """One message. Values of its header have any type: the reader checks what it uses."""

    header: Mapping[str, object]
    body: bytes


def send(
    channel: socket.socket,
    header: Mapping[str, object],
    body: bytes = b"",
    *,
    deadline: float | None = None,
) -> None:
    """Send one frame.

    Gives up at the deadline, which is on the monotonic clock.
    """
    written = json.dumps(header).encode()
    assert len(written) <= _HEADER_BYTES_MAX
    start = _LENGTHS.pack(len(written), len(body)) + written
    parts = (start + body,) if len(body) <= _JOINED_BYTES_MAX else (start, body)
    try:
        for part in parts:
            channel.settimeout(_left(deadline))
            channel.sendall(part)
    except TimeoutError:
        raise ChannelTimeout from None
    except OSError:
        raise ChannelClosed from None


def receive(
    channel: socket.socket,
    *,
    body_bytes_max: int,
    deadline: float | None = None,
    watch: Callable[[], float] | None = None,
) -> Frame:
    """Return the next frame.

    A body longer than `body_bytes_max` is refused before anything of it is read. Gives up at
    the deadline, which is on the monotonic clock. While it waits it calls `watch`, which
    returns in how many seconds it wants to be called again, and may raise to end the wait.
    """

    def read(count: int) -> bytearray:
        return _read(channel, count, deadline, watch)

    header_bytes, body_bytes = _LENGTHS.unpack(read(_LENGTHS.size))
    if header_bytes > _HEADER_BYTES_MAX or body_bytes > body_bytes_max:
        raise Malformed
    try:
        header = json.loads(read(header_bytes))
    except (ValueError, RecursionError):
        raise Malformed from None
    if not isinstance(header, dict):
        raise Malformed
    return Frame(header, bytes(read(body_bytes)))


def readable(channel: socket.socket) -> bool:
    """Whether something has arrived, or the other side is gone."""
    waiting = select.poll()
    waiting.register(channel, select.POLLIN)
    return bool(waiting.poll(0))


def _read(
    channel: socket.socket,
    count: int,
    deadline: float | None,
    watch: Callable[[], float] | None,
) -> bytearray:
    # Grows with what arrives, not with what is announced.
    read = bytearray()
    while len(read) < count:
        left = _left(deadline)
        if watch is not None:
            left = min(watch(), left) if left is not None else watch()
        try:
            channel.settimeout(left)
            portion = channel.recv(min(count - len(read), _PORTION_BYTES))
        except TimeoutError:
            continue
        except OSError:
            raise ChannelClosed from None
        if not portion:
            raise ChannelClosed
        read += portion
    return read


def _left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise ChannelTimeout
    return left
