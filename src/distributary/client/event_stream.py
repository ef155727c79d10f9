"""Server-sent events: bytes in, messages out, whatever the chunks they come in.

The rules are those of the HTML standard, with one difference: there an identifier stays until
the next one, and here a message has the one that came with it or none. A version of a stream
comes without a number, and must not look like a repetition of the delivery before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from distributary.errors import PeerMisbehaved

__all__ = ["MESSAGE_BYTES_MAX", "EventStream", "Message"]

MESSAGE_BYTES_MAX = 32 * 2**20
"""The most that one message may take: a peer that never ends a line must not fill our memory."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Message:
    """One server-sent event.

    Attributes
    ----------
    data
        Its lines of data, joined.
    id
        The identifier that came with it, if one did.
    event
        Of which kind it is; "" unless it says so.
    """

    data: str
    id: str | None = None
    event: str = ""


class EventStream:
    """What has come of one stream.

    Attributes
    ----------
    retry_ms
        How long to wait before connecting again, if the other side has said so.
    last_id
        The last identifier that came, with a message or alone.
    """

    def __init__(self) -> None:
        self.retry_ms: int | None = None
        self.last_id: str | None = None
        self._buffer = bytearray()
        self._searched = 0
        self._at_start = True
        self._after_return = False
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._id: str | None = None
        self._event = ""

    def feed(self, chunk: bytes) -> list[Message]:
        """Take bytes; return the messages that they complete."""
        self._buffer += chunk
        if self._at_start and not self._skip_mark():
            return []
        if self._after_return and self._buffer:
            # The line ended with the chunk before: a line feed now belongs to that end.
            self._after_return = False
            if self._buffer[:1] == b"\n":
                del self._buffer[:1]
        messages = []
        position = 0
        while (end := _LINE_END.search(self._buffer, max(position, self._searched))) is not None:
            message = self._take(bytes(self._buffer[position : end.start()]))
            if message is not None:
                messages.append(message)
            position = end.end()
            self._after_return = end[0] == b"\r" and position == len(self._buffer)
        del self._buffer[:position]
        self._searched = len(self._buffer)
        if self._data_bytes + len(self._buffer) > MESSAGE_BYTES_MAX:
            raise PeerMisbehaved(
                f"an event of the stream has more than {MESSAGE_BYTES_MAX:,} bytes"
            )
        return messages

    def _skip_mark(self) -> bool:
        """Drop the byte order mark that may be first; say whether that is decided."""
        if len(self._buffer) < len(_BYTE_ORDER_MARK) and _BYTE_ORDER_MARK.startswith(self._buffer):
            return False
        self._buffer = self._buffer.removeprefix(_BYTE_ORDER_MARK)
        self._at_start = False
        return True

    def _take(self, line: bytes) -> Message | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._data_bytes += len(value) + 1
        elif name == b"id":
            if b"\0" not in value:
                self._id = self.last_id = _text(value)
        elif name == b"event":
            self._event = _text(value)
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_ms = int(value)
        return None

    def _dispatch(self) -> Message | None:
        message = None
        if self._data:
            message = Message(_text(b"\n".join(self._data)), self._id, self._event)
        self._data, self._data_bytes, self._id, self._event = [], 0, None, ""
        return message


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")
