"""Tokens: who may do what at a gateway.

A token is 256 random bits. Only its hash is kept, in the bucket `tokens` under its tenant and name,
and each gateway has a copy of that bucket in memory. A hash that is quick to compute is enough:
nobody guesses 256 bits. Nor does the time of a look-up tell anything: what is compared there is
the hash, of which nobody can choose a part. A token that is replaced, revoked or over ends at every
gateway, with the connections that were opened by it.

An administrator of the first tenant, which has no name, administers the overlay; one of another
tenant administers that tenant.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import secrets
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Literal, TypeAlias, get_args

import msgspec

from distributary.broker.addresses import is_tenant
from distributary.errors import BadInput, DistributaryError, quoted
from distributary.network.buckets import Buckets, Entry, WasChanged

__all__ = ["SCOPES", "Access", "Scope", "Tokens", "TokensAway", "digest_of", "new_secret"]

_log = logging.getLogger(__name__)

Scope: TypeAlias = Literal["publish", "subscribe", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
"""What a token can permit."""

_BUCKET = "tokens"
_KIND = "token"
_TOKEN_BYTES = 32
# So that people and programs that look for leaked secrets know one.
_BEGIN = "dst_"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SOURCE_ENDS = ("/", ":")
_SOURCE_CHARACTERS_MAX = 512
_SOURCES_MAX = 64
_CURRENT_S = 5.0
# Timers do not like years.
_TIMER_S_MAX = 3600.0


class TokensAway(DistributaryError):
    """Nobody can tell whether a token is valid, as the bucket cannot be read at present."""


class Access(msgspec.Struct, frozen=True):
    """What a token permits.

    Attributes
    ----------
    name, tenant
        Whose it is; subscriptions belong to both together.
    sources
        What the sources of publications must begin with, one of these, whose last part is whole
        unless it ends at `/` or `:`: `/site` permits `/site` and `/site/7`. "" permits any.
    expires
        When it ends by itself.
    created
        When it was made; one that is made anew is another one.
    """

    name: str
    tenant: str
    scopes: tuple[Scope, ...]
    sources: tuple[str, ...] = ("",)
    expires: datetime | None = None
    created: datetime = datetime.fromtimestamp(0, UTC)

    def has(self, scope: Scope) -> bool:
        """Whether a scope is permitted."""
        return scope in self.scopes

    def may_publish_from(self, source: str) -> bool:
        """Whether the source of a publication is permitted."""
        return any(
            prefix in ("", source)
            or (
                source.startswith(prefix)
                and (prefix.endswith(_SOURCE_ENDS) or source[len(prefix)] in _SOURCE_ENDS)
            )
            for prefix in self.sources
        )

    @property
    def is_operator(self) -> bool:
        """Whether it may see and change what is other tenants'."""
        return self.administers("") and self.tenant == ""

    def administers(self, tenant: str) -> bool:
        """Whether it may see and change what is a tenant's."""
        return "admin" in self.scopes and self.tenant in ("", tenant)

    def is_over(self, now: datetime) -> bool:
        """Whether it has ended by itself."""
        return self.expires is not None and now >= self.expires


class _Stored(msgspec.Struct, frozen=True):
    digest: str
    access: Access


def digest_of(secret: str) -> str:
    """Return the hash by which a secret is known."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _checked(access: Access) -> Access:
    """Return what a token is to permit, or raise `BadInput` naming what cannot be."""
    if not _NAME.fullmatch(access.name):
        raise BadInput(
            f"name {quoted(access.name)}",
            "must have 1 to 64 letters, digits, dots, dashes and underscores, "
            "and begin with a letter or digit",
        )
    if not is_tenant(access.tenant):
        raise BadInput(
            f"tenant {quoted(access.tenant)}",
            "must have at most 64 small letters, digits and dashes",
        )
    if not access.scopes:
        raise BadInput("scopes", "is empty", hint=f"give some of {', '.join(SCOPES)}")
    for scope in access.scopes:
        if scope not in SCOPES:
            raise BadInput(f"scope {quoted(scope)}", "is none", hint=f"use {', '.join(SCOPES)}")
    if not 1 <= len(access.sources) <= _SOURCES_MAX:
        raise BadInput("sources", f"must be 1 to {_SOURCES_MAX} prefixes")
    for source in access.sources:
        if len(source) > _SOURCE_CHARACTERS_MAX:
            raise BadInput("source", f"has more than {_SOURCE_CHARACTERS_MAX} characters")
    if access.expires is not None and access.expires.tzinfo is None:
        raise BadInput("expires", "has no offset", hint="write it as in 2030-01-31T12:00:00Z")
    return access


class Tokens:
    """All tokens of an overlay, as one gateway knows them."""

    def __init__(self, buckets: Buckets) -> None:
        self._bucket = buckets[_BUCKET]
        self._by_digest: dict[str, Access] = {}
        # What is to be done when each of them ends.
        self._valid: dict[Access, dict[object, Callable[[], None]]] = {}
        self._timers: dict[Access, asyncio.TimerHandle] = {}
        self._loop = asyncio.get_running_loop()
        self._watcher = self._bucket.watch(self._changed)

    async def find(self, token: str) -> Access | None:
        """Return what a token permits, if it is valid.

        Raises
        ------
        TokensAway
            When that cannot be told: who was revoked meanwhile must not come in.
        """
        await self._wait()
        access = self._by_digest.get(digest_of(token))
        return None if access is None or access.is_over(datetime.now(UTC)) else access

    async def named(self, name: str, tenant: str = "") -> Access | None:
        """Return what the token of a name permits, if it is valid; or raise `TokensAway`."""
        await self._wait()
        stored = _stored(self._watcher.entries.get((_KIND, tenant, name)))
        access = None if stored is None else stored.access
        return None if access is None or access.is_over(datetime.now(UTC)) else access

    async def _wait(self) -> None:
        if not self._watcher.is_current:
            try:
                async with asyncio.timeout(_CURRENT_S):
                    await self._watcher.wait()
            except TimeoutError:
                raise TokensAway("tokens cannot be looked up: there is no connection") from None

    def is_valid(self, access: Access) -> bool:
        """Whether what somebody was let in by is still valid."""
        return access in self._valid and not access.is_over(datetime.now(UTC))

    def when_ended(self, access: Access, end: Callable[[], None]) -> Callable[[], None]:
        """Have something done when a token ends, which may be now; return how to undo that."""
        ends = self._valid.get(access)
        if ends is None:
            end()
            return lambda: None
        ends[key := object()] = end
        return partial(_remove, ends, key)

    async def create(
        self,
        name: str,
        *,
        scopes: Iterable[Scope],
        sources: Iterable[str] = ("",),
        tenant: str = "",
        expires: datetime | None = None,
        token: str | None = None,
    ) -> str:
        """Make a token; return it, as nobody will be able to later.

        Parameters
        ----------
        token
            One that was drawn before, which then replaces another one of this name.

        Raises
        ------
        BadInput
            When it breaks the rules.
        WasChanged
            When there is one of this name.
        OSError
            When it cannot be stored.
        """
        wanted = frozenset(scopes)
        ordered = tuple(scope for scope in SCOPES if scope in wanted)
        unknown = tuple(sorted(wanted.difference(SCOPES)))
        access = _checked(
            Access(
                name,
                tenant,
                (*ordered, *unknown),
                tuple(dict.fromkeys(sources)),
                expires,
                datetime.now(UTC),
            )
        )
        if access.is_over(access.created):
            raise BadInput("expires", "is over already")
        secret = new_secret() if token is None else token
        value = msgspec.json.encode(_Stored(digest_of(secret), access))
        there = await self._bucket.get(_KIND, tenant, name)
        known = _stored(there)
        if token is None and known is not None and not known.access.is_over(access.created):
            raise WasChanged(f"there is a token {quoted(name)} already")
        if known is not None and known.digest == digest_of(secret) and _same(known.access, access):
            return secret
        revision = 0 if there is None else there.revision
        written = await self._bucket.put(_KIND, tenant, name, value=value, revision=revision)
        await self._watcher.reached(written)
        return secret

    def list(self, tenant: str | None = None) -> list[Access]:
        """Return what all tokens permit, or those of a tenant; also of those that are over."""
        stored = [_stored(entry) for entry in self._watcher.entries.values()]
        found = [one.access for one in stored if one and tenant in (None, one.access.tenant)]
        return sorted(found, key=lambda access: (access.tenant, access.name))

    async def revoke(self, name: str, tenant: str = "") -> bool:
        """End a token everywhere; return whether there was one.

        Raises
        ------
        OSError
            When that cannot be stored.
        """
        entry = await self._bucket.get(_KIND, tenant, name)
        if entry is None:
            return False
        await self._watcher.reached(await self._bucket.delete(_KIND, tenant, name))
        return True

    async def close(self) -> None:
        """Know no token any more."""
        await self._watcher.close()
        for timer in self._timers.values():
            timer.cancel()

    def _changed(self, old: Entry | None, new: Entry | None) -> None:
        gone, come = _stored(old), _stored(new)
        if gone is not None:
            self._by_digest.pop(gone.digest, None)
        if come is not None and not come.access.is_over(datetime.now(UTC)):
            self._by_digest[come.digest] = come.access
            if come.access not in self._valid:
                self._valid[come.access] = {}
                self._look_at_time(come.access)
        if gone is not None and (come is None or gone != come):
            self._end(gone.access)

    def _end(self, access: Access) -> None:
        timer = self._timers.pop(access, None)
        if timer is not None:
            timer.cancel()
        for end in list(self._valid.pop(access, {}).values()):
            end()

    def _look_at_time(self, access: Access) -> None:
        """End a token when it is over, as the wall clock has it."""
        self._timers.pop(access, None)
        if access.expires is None or access not in self._valid:
            return
        left_s = (access.expires - datetime.now(UTC)).total_seconds()
        if left_s <= 0:
            self._end(access)
            return
        wait_s = min(left_s, _TIMER_S_MAX)
        self._timers[access] = self._loop.call_later(wait_s, self._look_at_time, access)


def _remove(ends: dict[object, Callable[[], None]], key: object) -> None:
    ends.pop(key, None)


def _same(one: Access, other: Access) -> bool:
    """Whether two permit the same."""
    return msgspec.structs.replace(one, created=other.created) == other


def new_secret() -> str:
    """Return 256 random bits as a text that is known for a secret when it is found."""
    return _BEGIN + secrets.token_urlsafe(_TOKEN_BYTES)


def _stored(entry: Entry | None) -> _Stored | None:
    if entry is None or entry.value is None or entry.key[:1] != (_KIND,):
        return None
    try:
        stored = msgspec.json.decode(entry.value, type=_Stored)
        access = _checked(stored.access)
    except (msgspec.DecodeError, BadInput) as error:
        _log.warning("an entry of tokens cannot be read: %s", error)
        return None
    # What it says of itself must be where it stands: names are checked by whoever wrote it.
    return stored if entry.key == (_KIND, access.tenant, access.name) else None
