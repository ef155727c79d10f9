"""Connections: what may not be said in clear text is not said at all, and who is cancelled ends."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import ssl
import struct
import time
from itertools import pairwise
from pathlib import Path

import pytest
from nats.aio.msg import Msg
from tests.live.overlays import eventually
from tests.nats_server import shared_server

from distributary.network.connection import NatsConnection, Server
from distributary.network.server import free_port


@pytest.mark.parametrize("way", ["authority", "scheme"])
def test_a_server_that_does_not_speak_tls_is_told_no_password(way: str) -> None:
    """Whoever is on the way can have a server seem to be one that does not."""
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id":"x","version":"2.11.0","max_payload":1048576}\r\n')
        heard.append(await reader.read(4096))
        writer.close()

    async def run() -> str:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        authority = ssl.get_default_verify_paths().cafile if way == "authority" else None
        if way == "authority" and authority is None:
            pytest.skip("this machine has no authorities")
        scheme = "tls" if way == "scheme" else "nats"
        known = Server(
            (f"{scheme}://127.0.0.1:{port}",),
            "me",
            "secret",
            None if authority is None else Path(authority),
        )
        one = NatsConnection(known, name="me", inbox="_INBOX", handlers={})
        await eventually(lambda: one.problem and heard)
        assert not one.connected
        problem = one.problem
        await one.close()
        server.close()
        return problem

    assert "does not speak TLS" in asyncio.run(run())
    assert not any(b"secret" in data for data in heard)


def test_a_cancellation_counts_that_comes_together_with_the_answer() -> None:
    """Until Python 3.12 what the library waits with returns the answer then, and says nothing."""
    server = Server((shared_server().url,), "test", "test")
    subject = f"cancelled.{os.getpid()}"

    async def run() -> bool:
        asked: list[Msg] = []
        one = NatsConnection(server, name="me", inbox="_INBOX", handlers={subject: asked.append})
        await one.wait()
        task = asyncio.ensure_future(one.request(subject, b"", timeout_s=60))
        await eventually(lambda: asked)
        assert one._client is not None
        for awaited in one._client._resp_map.values():
            awaited.add_done_callback(lambda _: task.cancel())
        one.send(asked[0].reply, b"")
        await asyncio.wait([task])
        await one.close()
        return task.cancelled()

    assert asyncio.run(run())


def test_an_end_that_comes_while_nobody_answers_is_an_end() -> None:
    """What the library waits with may forget that it was cancelled; it tried for two minutes."""

    async def run() -> None:
        known = Server((f"nats://127.0.0.1:{free_port()}",))
        for number in range(200):
            one = NatsConnection(known, name="me", inbox="_INBOX", handlers={})
            for _ in range(number % 40):
                await asyncio.sleep(0)
            await asyncio.wait_for(one.close(), 30)

    asyncio.run(run())


def test_somebody_who_is_gone_is_looked_for_soon_and_described() -> None:
    """The library waits two seconds before it tries again; brokers stand still meanwhile."""

    async def run() -> float:
        port = free_port()
        known = Server((f"nats://127.0.0.1:{port}",))
        one = NatsConnection(known, name="me", inbox="_INBOX", handlers={})
        await eventually(lambda: one.problem)
        assert str(port) in one.problem
        tried: list[float] = []

        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tried.append(time.monotonic())
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", port)
        await eventually(lambda: len(tried) > 8)
        await one.close()
        server.close()
        return min(later - first for first, later in pairwise(tried))

    assert asyncio.run(run()) < 1


def test_a_server_that_resets_a_connection_leaves_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As it does to somebody who does not read what it is sent."""
    begun = resets = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal begun, resets
        begun += 1
        writer.write(b'INFO {"server_id":"x","version":"2.11.0","max_payload":1048576}\r\n')
        while (line := await reader.readline()) and not line.startswith(b"PUB"):
            if line.startswith(b"PING"):
                writer.write(b"PONG\r\n")
        sock: socket.socket = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        resets += 1

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        known = Server((f"nats://127.0.0.1:{port}",))
        one = NatsConnection(known, name="me", inbox="_INBOX", handlers={})

        def sent() -> bool:
            for _ in range(50):
                one.send("x", bytes(100_000))
            return resets >= 3

        await eventually(sent)
        await one.close()
        await eventually(lambda: resets == begun)
        server.close()

    asyncio.run(run())
    gc.collect()
    assert not [record for record in caplog.records if record.name == "asyncio"]


def test_a_handler_that_fails_does_not_end_the_connection() -> None:
    """It is called by what reads from the socket, which goes on with what comes next."""
    server = Server((shared_server().url,), "test", "test")
    subject = f"failing.{os.getpid()}"

    async def run() -> list[bytes]:
        heard: list[bytes] = []

        def handle(message: Msg) -> None:
            heard.append(message.data)
            assert message.data != b"1"

        one = NatsConnection(server, name="me", inbox="_INBOX", handlers={subject: handle})
        await one.wait()
        client = one._client
        for number in range(4):
            one.send(subject, b"%d" % number)
        await one.flush()
        assert one._client is client
        await one.close()
        return heard

    assert asyncio.run(run()) == [b"0", b"1", b"2", b"3"]
