"""Requests to a gateway: who we are, what it answers, and when to ask again."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

from distributary import __version__
from distributary.client.backoff import Backoff
from distributary.client.failure import GatewayAway, RequestRefused, problem_sentence
from distributary.client.here import Address, is_here
from distributary.errors import MissingPackage

try:
    import httpx
except ModuleNotFoundError:
    raise MissingPackage("httpx", extra="client", purpose="speaking to a gateway") from None

__all__ = ["Gateway", "Observe", "Patience", "Trouble", "problem_of", "refusal_of"]

T = TypeVar("T")

Observe: TypeAlias = Callable[[str, int, int], None]
"""Told what is transferred, how many KiB of it are, and how many there are."""

_CONNECT_S = 10.0
_ANSWER_S = 30.0
# A gateway that has nothing to say says so more often than this.
_SILENCE_S = 60.0
_ERROR_BYTES_MAX = 65_536
_NO_CONTENT = 204
_NOT_FOUND = 404
# Busy, and a gateway or a proxy whose other side is away: what was asked may be asked again.
_FOR_NOW = frozenset((429, 502, 503, 504))


class Trouble(Exception):
    """A connection was cut, or there is nobody: it may be tried again.

    Attributes
    ----------
    told_s
        How long to wait, if the other side has said so.
    refusal
        What it has said, if it has said something.
    """

    def __init__(
        self, problem: str, *, told_s: float | None = None, refusal: RequestRefused | None = None
    ) -> None:
        self.told_s = told_s
        self.refusal = refusal
        super().__init__(problem)


class Gateway:
    """One gateway, and the connections to it.

    Parameters
    ----------
    patience_s
        How long to try again before giving up.
    observe
        Told how far a transfer is.
    """

    def __init__(
        self,
        address: Address,
        *,
        patience_s: float,
        tls: ssl.SSLContext | None = None,
        observe: Observe | None = None,
    ) -> None:
        self.address = address
        self.observe = observe or (lambda _, __, ___: None)
        self.patience_s = patience_s
        self.tls = tls
        if tls is None and address.url.startswith("https:"):
            self.tls = ssl.create_default_context()
        # A proxy of the environment is for other machines.
        self.by_proxy = not is_here(httpx.URL(address.url).host)
        self.headers = {"user-agent": f"distributary/{__version__}"}
        if address.token is not None:
            self.headers["authorization"] = f"Bearer {address.token}"
        self._http = httpx.AsyncClient(
            headers=self.headers,
            timeout=httpx.Timeout(_ANSWER_S, connect=_CONNECT_S, pool=None),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=8),
            verify=self.tls or False,  # Without any it is clear text.
            trust_env=self.by_proxy,
        )

    async def close(self) -> None:
        """End all connections."""
        await self._http.aclose()

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, *, headers: Mapping[str, str] = {}, **options: Any
    ) -> AsyncIterator[httpx.Response]:
        """Ask for something whose answer is read as it comes.

        Raises
        ------
        RequestRefused
            When it is refused for good.
        Trouble
            When it may be asked again, also while the answer is read.
        """
        timeout = httpx.Timeout(_SILENCE_S, connect=_CONNECT_S, pool=None)
        try:
            async with self._http.stream(
                method, self.address.url + path, headers=dict(headers), timeout=timeout, **options
            ) as response:
                if response.is_error:
                    status = response.status_code
                    reason = problem_sentence(await _start_of(response), status)
                    raise refusal_of(status, reason, response.headers.get("retry-after", ""))
                yield response
        except (httpx.TransportError, httpx.StreamError) as error:
            raise Trouble(problem_of(error)) from None

    async def ask(
        self, method: str, path: str, *, patience_s: float | None = None, **options: Any
    ) -> httpx.Response:
        """Ask until there is an answer, and return it."""
        asked = 0

        async def attempt(_: Patience) -> httpx.Response:
            nonlocal asked
            asked += 1
            try:
                async with self.stream(method, path, **options) as response:
                    await response.aread()
                    return response
            except RequestRefused as refusal:
                # Of what an earlier request has ended, whose answer was lost, there is nothing.
                if method == "DELETE" and asked > 1 and refusal.status == _NOT_FOUND:
                    return httpx.Response(_NO_CONTENT)
                raise

        return await self.persist(attempt, patience_s)

    async def persist(
        self, attempt: Callable[[Patience], Awaitable[T]], patience_s: float | None = None
    ) -> T:
        """Try something until it ends without `Trouble`, and return what it gives."""
        patience = Patience(self.address.url, self.patience_s if patience_s is None else patience_s)
        while True:
            try:
                return await attempt(patience)
            except Trouble as trouble:
                await patience.wait(trouble)


class Patience:
    """How long something is tried, and how long between."""

    def __init__(self, url: str, seconds: float) -> None:
        self._url = url
        self._seconds = seconds
        self._backoff = Backoff()
        self._since = asyncio.get_running_loop().time()

    def renew(self) -> None:
        """Begin anew, because something has come of it."""
        self._backoff.succeeded()
        self._since = asyncio.get_running_loop().time()

    async def wait(self, trouble: Trouble) -> None:
        """Wait before the next attempt, or raise what is wrong if there shall be none."""
        wait_s = self._backoff.wait_s(trouble.told_s)
        if asyncio.get_running_loop().time() + wait_s > self._since + self._seconds:
            raise trouble.refusal or GatewayAway(self._url, str(trouble))
        await asyncio.sleep(wait_s)


async def _start_of(response: httpx.Response) -> bytes:
    """Return the body of an answer, or enough of it for a sentence."""
    body = b""
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > _ERROR_BYTES_MAX:
            break
    return body


def refusal_of(status: int, reason: str, retry_after: str = "") -> Exception:
    """Return what an answer means that is an error: refused for good, or `Trouble` for now."""
    refusal = RequestRefused(status, reason)
    if status not in _FOR_NOW:
        return refusal
    is_known = retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 6
    return Trouble(reason, told_s=float(retry_after) if is_known else None, refusal=refusal)


def problem_of(error: Exception) -> str:
    """Return what happened to a connection, in few words."""
    return " ".join(str(error).split()) or type(error).__name__
