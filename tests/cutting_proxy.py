"""A real TCP proxy that cuts connections, as networks do: at any byte, without a word."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

__all__ = ["CuttingProxy", "cutting_proxy"]

_CHUNK_BYTES = 4096


class CuttingProxy:
    """What stands between a client and its gateway.

    Attributes
    ----------
    url
        Where it is.
    cut
        How many connections were cut.
    bytes_max
        A connection ends after at most so many bytes in either direction; None lets all pass.
    """

    def __init__(self, url: str, rng: random.Random, bytes_max: int | None) -> None:
        target = urlsplit(url)
        assert target.hostname is not None
        assert target.port is not None
        self._target = target.hostname, target.port
        self._rng = rng
        self._open: set[asyncio.StreamWriter] = set()
        self.url = ""
        self.cut = 0
        self.connections = 0
        self.bytes_max = bytes_max

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass bytes both ways until the connection ends or is cut."""
        self.connections += 1
        try:
            there, back = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        left = None if self.bytes_max is None else self._rng.randint(1, self.bytes_max)
        self._open |= {writer, back}
        budget = [left]
        # A gateway is asked under its own name only.
        ours, theirs = urlsplit(self.url).netloc.encode(), "{}:{}".format(*self._target).encode()
        ways = [
            asyncio.create_task(self._pass(reader, back, budget, (ours, theirs))),
            asyncio.create_task(self._pass(there, writer, budget)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            pass  # The test is over.
        finally:
            for way in ways:
                way.cancel()
            for end in (writer, back):
                end.transport.abort()
                self._open.discard(end)

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        budget: list[int | None],
        renamed: tuple[bytes, bytes] | None = None,
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(_CHUNK_BYTES):
                if renamed is not None:
                    data = data.replace(*renamed)
                left = budget[0]
                if left is not None:
                    if len(data) >= left:
                        # Some of it arrives, and then nothing.
                        writer.write(data[:left])
                        await writer.drain()
                        self.cut += 1
                        return
                    budget[0] = left - len(data)
                writer.write(data)
                await writer.drain()

    def cut_all(self) -> None:
        """Cut every connection now."""
        for end in list(self._open):
            end.transport.abort()
        self.cut += 1


@asynccontextmanager
async def cutting_proxy(
    url: str, *, seed: int = 0, bytes_max: int | None = None
) -> AsyncIterator[CuttingProxy]:
    """Yield a proxy in front of a gateway."""
    proxy = CuttingProxy(url, random.Random(seed), bytes_max)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    proxy.url = f"http://{host}:{port}"
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut_all()
        await server.wait_closed()
