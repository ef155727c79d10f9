"""The process of a gateway: where it listens."""

from __future__ import annotations

import asyncio
import socket

import pytest

from distributary.network.server import listening_at


def test_what_a_gateway_writes_leaves_at_once() -> None:
    """Else every answer waits for 40 ms, until what was written before is acknowledged."""

    async def run() -> int:
        delays: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted = writer.get_extra_info("socket")
            delays.set_result(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with listening_at("127.0.0.1", 0) as listening:
            port = listening.getsockname()[1]
            async with await asyncio.start_server(connected, sock=listening):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                found = await delays
                writer.close()
        return found

    assert asyncio.run(run()) != 0


def test_a_port_that_somebody_has_is_an_error_of_the_system() -> None:
    with listening_at("127.0.0.1", 0) as listening, pytest.raises(OSError, match="in use"):
        listening_at("127.0.0.1", listening.getsockname()[1])
