"""Sessions of browsers on a real server: links that work once, and cookies that end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.live.test_tokens import Overlay

from distributary.network.buckets import Buckets
from distributary.network.gateway.sessions import SessionBucket, csrf_of
from distributary.network.gateway.tokens import Access, Tokens, new_secret

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Overlay]:
    overlay = Overlay(tmp_path_factory.mktemp("sessions"))
    yield overlay
    overlay.nats.kill()


@asynccontextmanager
async def gateway(overlay: Overlay) -> AsyncIterator[tuple[Tokens, SessionBucket]]:
    buckets = Buckets(overlay.subjects, overlay.server("gateway"), "gateway")
    tokens = Tokens(buckets)
    try:
        yield tokens, SessionBucket(buckets, tokens)
    finally:
        await tokens.close()
        await buckets.close()


async def made(tokens: Tokens, name: str) -> Access:
    access = await tokens.find(await tokens.create(name, scopes=["publish"], tenant="north"))
    assert access is not None
    return access


def test_a_link_logs_in_once_and_the_session_is_good_at_every_gateway(overlay: Overlay) -> None:
    async def run() -> None:
        async with gateway(overlay) as (tokens, here), gateway(overlay) as (_, there):
            access = await made(tokens, "once")
            link = await here.offer(access)
            tries = await asyncio.gather(*(one.log_in(link) for one in (here, there) * 5))
            found = [one for one in tries if one is not None]
            assert len(found) == 1
            secret, permitted = found[0]
            assert permitted == access
            assert await here.find(secret) == await there.find(secret) == access
            # What was drawn before is not good again after somebody has used it.
            assert await there.offer(access, link) == link
            assert await there.log_in(link) is None
            await there.log_out(secret)
            assert await here.find(secret) is None

    asyncio.run(run())


def test_a_session_ends_with_its_token_also_if_that_is_made_anew(overlay: Overlay) -> None:
    async def run() -> None:
        async with gateway(overlay) as (tokens, sessions):
            access = await made(tokens, "ends")
            late = await sessions.offer(access)
            found = await sessions.log_in(await sessions.offer(access))
            assert found is not None
            assert await tokens.revoke("ends", "north")
            assert await sessions.find(found[0]) is None
            await made(tokens, "ends")
            assert await sessions.find(found[0]) is None
            assert await sessions.log_in(late) is None

    asyncio.run(run())


def test_each_secret_is_good_for_one_thing(overlay: Overlay) -> None:
    """A link is no session, a session no token, and none of them is kept as it is."""

    async def run() -> list[str]:
        async with gateway(overlay) as (tokens, sessions):
            token = await tokens.create("kinds", scopes=["admin"])
            access = await tokens.find(token)
            assert access is not None
            link, used = await sessions.offer(access), await sessions.offer(access)
            found = await sessions.log_in(used)
            assert found is not None
            session = found[0]
            assert [await tokens.find(one) for one in (link, session)] == [None, None]
            assert [await sessions.find(one) for one in (link, token)] == [None, None]
            assert [await sessions.log_in(one) for one in (session, token)] == [None, None]
            for wrong in ("", "x", "x" * 10**5, new_secret(), f"{session} "):
                assert await sessions.find(wrong) is None
                assert await sessions.log_in(wrong) is None
            return [token, link, used, session, csrf_of(session)]

    secrets = asyncio.run(run())
    assert len({*secrets}) == len(secrets)
    stored = Path(overlay.folder / "jetstream")
    files = [path.read_bytes() for path in stored.rglob("*") if path.is_file()]
    assert not [secret for secret in secrets if any(secret.encode() in data for data in files)]
