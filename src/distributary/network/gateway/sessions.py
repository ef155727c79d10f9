"""Sessions of browsers: a link that works once, and a cookie after it.

A token in the address of a page would be in histories and logs, so a browser is given none. A link
has a secret that is good for one login; what the cookie has is good for a session, at all gateways.
A session may do what its token may, and ends with it. Of both secrets only hashes are kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import msgspec

from distributary.network.buckets import Buckets, Entry, WasChanged
from distributary.network.gateway.tokens import (
    Access,
    Tokens,
    TokensAway,
    digest_of,
    new_secret,
)

__all__ = ["SESSION_S", "SessionBucket", "cookie_of", "csrf_of"]

SESSION_S = 12 * 3600
"""How long a session lasts."""

_LINK_S = 24 * 3600
_BUCKET = "sessions"
_LINK = "link"
_SESSION = "session"
# Longer ones are nobody's.
_SECRET_CHARACTERS_MAX = 128
# The end of a session of which nobody has told is found after so long.
_LOOK_S = 2.0


class _Session(msgspec.Struct, frozen=True):
    """A session or a link.

    Attributes
    ----------
    tenant, name, created
        The token that it stands for; one that was made anew is another one.
    used
        Whether a link has been used. It is not deleted then: whoever offers it again, as after a
        crash, must not make it good again.
    """

    tenant: str
    name: str
    created: datetime
    expires: datetime
    used: bool = False


class SessionBucket:
    """The bucket `sessions`."""

    def __init__(self, buckets: Buckets, tokens: Tokens) -> None:
        self._bucket = buckets[_BUCKET]
        self._tokens = tokens
        # What is to be done when each session ends that something is connected by.
        self._connected: dict[str, dict[object, Callable[[], None]]] = {}
        self._changed = asyncio.Event()
        self._bucket.listeners.append(self._heard)

    async def offer(self, access: Access, secret: str | None = None) -> str:
        """Return the secret of a link by which a browser gets what a token permits.

        Parameters
        ----------
        secret
            One that was drawn before; if it is known already, nothing changes.
        """
        drawn = new_secret() if secret is None else secret
        try:
            await self._keep((_LINK, digest_of(drawn)), access, _LINK_S)
        except WasChanged:
            if secret is None:
                raise
        return drawn

    async def log_in(self, link: str) -> tuple[str, Access] | None:
        """Use a link; return the secret of a new session and what it permits, or None."""
        entry = await self._get(_LINK, link)
        found = None if entry is None else await self._valid(entry)
        if entry is None or found is None:
            return None
        session, access = found
        used = msgspec.json.encode(msgspec.structs.replace(session, used=True))
        try:
            await self._bucket.put(*entry.key, value=used, revision=entry.revision, ttl_s=_LINK_S)
        except WasChanged:
            # Somebody else was faster.
            return None
        secret = new_secret()
        await self._keep((_SESSION, digest_of(secret)), access, SESSION_S)
        return secret, access

    async def find(self, secret: str) -> Access | None:
        """Return what the session permits to which a cookie belongs, if it is valid."""
        entry = await self._get(_SESSION, secret)
        found = None if entry is None else await self._valid(entry)
        return None if found is None else found[1]

    async def log_out(self, secret: str) -> None:
        """End a session."""
        await self._bucket.delete(_SESSION, digest_of(secret))

    def when_ended(self, secret: str, end: Callable[[], None]) -> Callable[[], None]:
        """Have something done when a session has ended; return how to undo that."""
        key = object()
        self._connected.setdefault(secret, {})[key] = end

        def undo() -> None:
            ends = self._connected.get(secret, {})
            ends.pop(key, None)
            if not ends:
                self._connected.pop(secret, None)

        return undo

    async def watch(self) -> None:
        """End what is connected by sessions that end, at whichever gateway, or are over."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._changed.wait()
            self._changed.clear()
            for secret in list(self._connected):
                # Of what cannot be read now nobody knows that it has ended.
                with suppress(OSError, TokensAway):
                    if await self.find(secret) is None:
                        for end in list(self._connected.get(secret, {}).values()):
                            end()

    def _heard(self, key: tuple[str, ...]) -> None:
        if key[:1] == (_SESSION,):
            self._changed.set()

    async def _get(self, kind: str, secret: str) -> Entry | None:
        if not 0 < len(secret) <= _SECRET_CHARACTERS_MAX:
            return None
        return await self._bucket.get(kind, digest_of(secret))

    async def _keep(self, key: tuple[str, str], access: Access, seconds: int) -> None:
        expires = datetime.now(UTC) + timedelta(seconds=seconds)
        session = _Session(access.tenant, access.name, access.created, expires)
        value = msgspec.json.encode(session)
        await self._bucket.put(*key, value=value, revision=0, ttl_s=seconds)

    async def _valid(self, entry: Entry) -> tuple[_Session, Access] | None:
        assert entry.value is not None
        try:
            session = msgspec.json.decode(entry.value, type=_Session)
        except msgspec.DecodeError:
            return None
        if session.used or datetime.now(UTC) >= session.expires:
            return None
        access = await self._tokens.named(session.name, session.tenant)
        if access is None or access.created != session.created:
            return None
        return session, access


def cookie_of(host: str) -> str:
    """Return the name of the cookie of a gateway; browsers do not tell ports apart."""
    port = host.rpartition(":")[2]
    return f"distributary-{port}" if port.isascii() and port.isdigit() else "distributary"


def csrf_of(secret: str) -> str:
    """Return what a page has to send with whatever changes something, by the secret of its session.

    A page of ours can ask for it; a page of somebody else can have the browser send the cookie at
    most, and cannot read this.
    """
    return hmac.new(secret.encode(), b"csrf", hashlib.sha256).hexdigest()
