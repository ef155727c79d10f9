"""Patience: how long a connection may take to say what it wants, and to take its answer.

The server waits for the rest of a request for ever, reads headers of any size, and keeps an answer
for as long as nobody takes it. Many such connections cost their owner nothing.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from distributary.network.gateway.problems import MEDIA_TYPE, document

__all__ = ["HEAD_BYTES_MAX", "HEAD_S", "STALLED_S", "PatientHttp", "PatientWebSocket"]

HEAD_BYTES_MAX = 64 * 2**10
"""How large a request may be before its body begins."""

HEAD_S = 10.0
"""How long it may take until then, from the beginning of a connection or its first byte."""

STALLED_S = 30.0
"""How long nobody may take anything of what waits to be sent."""

_LINGERS_S = 1.0

if TYPE_CHECKING:
    _Protocol = HttpToolsProtocol
else:
    _Protocol = object


class _Unstalled(_Protocol):
    """Ends a connection whose other side takes nothing."""

    _stalled: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        """Wait for the other side, for a while."""
        super().pause_writing()
        # To close it would be to wait until all is taken.
        self._stalled = self.loop.call_later(STALLED_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Do not end the connection: the other side has taken what waited."""
        super().resume_writing()
        self._taken()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._taken()
        super().connection_lost(exc)

    def _taken(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


class PatientHttp(_Unstalled, HttpToolsProtocol):
    """HTTP with bounds for what comes before the body of a request."""

    _waiting: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._come()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take some bytes, and count them until the body begins."""
        if self._refused:
            return
        super().data_received(data)
        if self._waiting is not None:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self._refuse(
                    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                    f"the headers have more than {HEAD_BYTES_MAX:,} bytes",
                )

    def on_message_begin(self) -> None:
        """Wait for the rest of the headers."""
        super().on_message_begin()
        if self._waiting is None:
            self._wait()

    def on_headers_complete(self) -> None:
        """Have the request answered."""
        self._come()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request."""
        self._refuse(HTTPStatus.BAD_REQUEST, "this is not a request of HTTP/1.1")

    def _wait(self) -> None:
        self._head_bytes = 0
        self._waiting = self.loop.call_later(HEAD_S, self._waited)

    def _come(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _waited(self) -> None:
        if not self.transport.is_closing():
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, f"no request has come within {HEAD_S:g} s")

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        """Answer beside the application, and close the connection."""
        self._come()
        self._refused = True
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if cycle.response_started:
                # In the middle of another answer nobody would understand this one.
                self.transport.close()
                return
            cycle.disconnected = True
            # Nor is it told to go on with a body.
            cycle.waiting_for_100_continue = False
            cycle.message_event.set()
        self.transport.write(_problem(status, detail))
        if self.transport.can_write_eof():
            # Whoever is still sending would not get to read this if it were closed at once; and
            # whoever is gone is not told.
            with suppress(OSError):
                self.transport.write_eof()
            self.loop.call_later(_LINGERS_S, self.transport.abort)
        else:
            self.transport.close()


class PatientWebSocket(_Unstalled, WebSocketsSansIOProtocol):  # type: ignore[misc]
    """WebSocket whose messages must be taken."""


def _problem(status: HTTPStatus, detail: str) -> bytes:
    data = document(status, detail)
    return (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n"
        f"content-type: {MEDIA_TYPE}\r\n"
        f"content-length: {len(data)}\r\n"
        "connection: close\r\n\r\n"
    ).encode() + data
