"""Connections that take their time: a real server, real sockets, and less patience than usual."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn

from distributary.network.gateway import patience, protection
from distributary.network.gateway.patience import PatientHttp, PatientWebSocket
from distributary.network.gateway.problems import Problem

SLOW_S = 30.0


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Says how many bytes a body has, or sends without end."""
    if scope["path"] == "/endless":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not scope["gone"].is_set():
            await send({"type": "http.response.body", "body": bytes(65536), "more_body": True})
            await asyncio.sleep(0)
        return
    count, more = 0, True
    body = protection._Body(receive)
    while more:
        message = await body()
        count += len(message.get("body", b""))
        more = message.get("more_body", False)
    data = str(count).encode()
    headers = [(b"content-length", str(len(data)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": data})


@asynccontextmanager
async def serving(app: Any = application) -> AsyncIterator[int]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        config = uvicorn.Config(
            app,
            http=PatientHttp,
            ws=PatientWebSocket,
            log_config=None,
            lifespan="off",
            access_log=False,
            timeout_keep_alive=1,
        )
        server = uvicorn.Server(config)
        config.load()
        task = asyncio.ensure_future(server._serve([listening]))
        while not server.started:
            await asyncio.sleep(0)
        try:
            yield port
        finally:
            server.should_exit = True
            await task


async def answered(port: int, *parts: bytes) -> bytes:
    """All that comes back until the connection ends, which it must."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(SLOW_S):
            for part in parts:
                writer.write(part)
                await writer.drain()
            return await reader.read()
    finally:
        writer.close()


def told(answer: bytes) -> dict[str, Any]:
    """The problem that an answer tells."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head
    found: dict[str, Any] = json.loads(body)
    assert head.startswith(f"HTTP/1.1 {found['status']} ".encode())
    return found


HEAD = b"POST / HTTP/1.1\r\nhost: x\r\n"


@pytest.mark.parametrize("begun", [b"", b"P", b"POST / HTTP/1.1\r\nhost: x\r\nx-a: "])
def test_who_does_not_say_what_it_wants_is_not_waited_for(
    begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "HEAD_S", 0.2)

    async def run() -> bytes:
        async with serving() as port:
            return await answered(port, begun)

    assert told(asyncio.run(run()))["status"] == 408


def test_a_header_that_drips_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte is progress, and still there is an end."""
    monkeypatch.setattr(patience, "HEAD_S", 0.5)

    async def run() -> bytes:
        async with serving() as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(HEAD)

            async def drip() -> None:
                while not writer.is_closing():
                    writer.write(b"x-a: b\r\n")
                    await asyncio.sleep(0.02)

            dripping = asyncio.ensure_future(drip())
            async with asyncio.timeout(SLOW_S):
                found = await reader.readuntil(b"\r\n\r\n")
            writer.close()
            await dripping
            return found

    assert asyncio.run(run()).startswith(b"HTTP/1.1 408 ")


def test_who_asks_whether_to_go_on_and_goes_on_wrongly_is_refused_once() -> None:
    """The answer is written before anybody has asked for the body."""
    ended: list[BaseException | None] = []

    async def noted(scope: Any, receive: Any, send: Any) -> None:
        try:
            await application(scope, receive, send)
        except BaseException as error:
            ended.append(error)
            raise
        ended.append(None)

    async def run() -> bytes:
        async with serving(noted) as port:
            head = HEAD + b"expect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n"
            return await answered(port, head + b"no chunk\r\n")

    assert told(asyncio.run(run()))["status"] == 400
    assert ended == [None]


def test_a_connection_that_is_kept_has_the_same_patience_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patience, "HEAD_S", 0.3)
    whole = HEAD + b"content-length: 3\r\n\r\nabc"

    async def run() -> bytes:
        async with serving() as port:
            return await answered(port, whole, whole, b"POST / HTTP/1.1\r\n")

    found = asyncio.run(run())
    assert found.count(b"HTTP/1.1 200 OK") == 2
    assert b"HTTP/1.1 408 " in found


@pytest.mark.parametrize(
    "parts",
    [
        [HEAD + b"x-a: " + b"a" * 200_000],
        [HEAD, *[b"x-a: b\r\n" * 1000] * 20],
        [b"GET /" + b"a" * 200_000],
        [HEAD + b"cookie: " + b"a=b; " * 50_000],
    ],
)
def test_headers_that_do_not_end_are_not_read_to_the_end(parts: list[bytes]) -> None:
    async def run() -> bytes:
        async with serving() as port:
            return await answered(port, *parts)

    assert told(asyncio.run(run()))["status"] == 431


@pytest.mark.parametrize(
    "request_",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nhost: x\r\n\r\n",
        HEAD + b"content-length: 3\r\ncontent-length: 4\r\n\r\nabcd",
        HEAD + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"content-length: -1\r\n\r\n",
        HEAD + b"content-length: 0x3\r\n\r\nabc",
        HEAD + b"content-length: 99999999999999999999999\r\n\r\n",
        HEAD + b"transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n\r\n",
        HEAD + b"transfer-encoding : chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"x-a\r\n : b\r\n\r\n",
        HEAD + b"x-a: \x00\r\n\r\n",
        HEAD + b"x a: b\r\n\r\n",
        HEAD + b"\r\ncontent-length: 5\r\n\r\nabc",
        b"CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + bytes(100),
    ],
)
def test_what_is_no_request_is_told_so_or_hung_up_on(
    request_: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two who read it could take it for two different requests: nobody gets an answer to both."""
    monkeypatch.setattr(patience, "HEAD_S", 0.3)
    monkeypatch.setattr(protection, "_BODY_S", 0.3)

    async def run() -> bytes:
        async with serving() as port:
            return await answered(port, request_)

    found = asyncio.run(run())
    assert found.count(b"HTTP/1.1 ") == 1
    assert told(found)["status"] in (400, 408)


def test_an_answer_that_nobody_takes_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "STALLED_S", 0.3)
    gone = asyncio.Event()

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        scope["gone"] = gone

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            gone.set()

        watching = asyncio.ensure_future(watch())
        await application(scope, receive, send)
        await watching

    async def run() -> None:
        async with serving(endless) as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
            writer.write(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n")
            async with asyncio.timeout(SLOW_S):
                await gone.wait()
            writer.close()

    asyncio.run(run())


def test_a_body_that_comes_too_slowly_ends_and_one_that_is_large_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(protection, "_BODY_S", 0.3)
    size = 3 * 2**20

    async def failing(scope: Any, receive: Any, send: Any) -> None:
        try:
            await application(scope, receive, send)
        except Problem as problem:
            headers = [(b"connection", b"close"), (b"content-length", b"0")]
            await send(
                {"type": "http.response.start", "status": problem.status, "headers": headers}
            )
            await send({"type": "http.response.body", "body": b""})

    async def run() -> tuple[bytes, bytes]:
        async with serving(failing) as port:
            slow = await answered(port, HEAD + b"content-length: 100\r\n\r\nabc")
            head = HEAD + b"connection: close\r\ncontent-length: %d\r\n\r\n" % size
            return slow, await answered(port, head, bytes(size))

    slow, large = asyncio.run(run())
    assert slow.startswith(b"HTTP/1.1 408 ")
    assert large.startswith(b"HTTP/1.1 200 ")
    assert large.endswith(str(size).encode())
