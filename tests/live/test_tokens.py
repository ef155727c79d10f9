"""Tokens in a bucket of a real server: who is let in, and who is not any more."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.live.overlays import eventually
from tests.nats_server import NatsServer

from distributary.broker.encoding import encode
from distributary.broker.membership.roster import Gossip
from distributary.errors import BadInput
from distributary.network.buckets import Buckets, WasChanged, make_buckets
from distributary.network.connection import NatsConnection, Server
from distributary.network.gateway.tokens import Access, Tokens, TokensAway
from distributary.network.server import User, users_of
from distributary.network.subjects import Subjects

pytestmark = pytest.mark.slow

names = map("token-{}".format, itertools.count())


class Overlay:
    """A server with buckets, and everybody's passwords."""

    def __init__(self, folder: Path) -> None:
        self.subjects = Subjects("east")
        self.folder = folder
        self._users: dict[str, User] = users_of(
            self.subjects, ["a1", "b2"], gateways=["gateway"], operators=["operator"]
        )
        self.nats = NatsServer(folder, self._users.values(), store=folder / "jetstream")
        asyncio.run(make_buckets(self.subjects, self.server("operator"), "operator"))

    def server(self, user: str) -> Server:
        return Server((self.nats.url,), user, self._users[user].password)

    @asynccontextmanager
    async def tokens(self) -> AsyncIterator[Tokens]:
        buckets = Buckets(self.subjects, self.server("gateway"), "gateway")
        tokens = Tokens(buckets)
        try:
            yield tokens
        finally:
            await tokens.close()
            await buckets.close()


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Overlay]:
    overlay = Overlay(tmp_path_factory.mktemp("tokens"))
    yield overlay
    overlay.nats.kill()


def test_a_token_lets_in_at_every_gateway_until_it_is_revoked(overlay: Overlay) -> None:
    async def run() -> None:
        async with overlay.tokens() as here, overlay.tokens() as there:
            name = next(names)
            token = await here.create(
                name, scopes=["subscribe", "publish"], sources=["/site/"], tenant="north"
            )
            access = await here.find(token)
            assert access is not None
            assert (access.name, access.tenant, access.scopes, access.sources) == (
                name,
                "north",
                ("publish", "subscribe"),
                ("/site/",),
            )
            assert access in here.list()
            assert access in here.list("north")
            assert access not in here.list("")
            while await there.find(token) is None:
                await asyncio.sleep(0)
            assert await there.find(token) == access
            ended, gone = asyncio.Event(), asyncio.Event()
            there.when_ended(access, ended.set)
            there.when_ended(access, gone.set)()
            assert there.is_valid(access)
            assert not ended.is_set()
            async with asyncio.timeout(60):
                assert await here.revoke(name, "north")
                assert await here.find(token) is None
                await ended.wait()
            assert await there.find(token) is None
            assert not there.is_valid(access)
            assert not gone.is_set()
            there.when_ended(access, gone.set)
            assert gone.is_set()
            assert not await there.revoke(name, "north")

    asyncio.run(run())


def test_nothing_else_lets_in(overlay: Overlay) -> None:
    async def run() -> None:
        async with overlay.tokens() as tokens:
            token = await tokens.create(next(names), scopes=["admin"])
            wrong = ["", token[:-1], token + "x", token.upper(), f" {token}", "\ud800", "x" * 10**6]
            assert [await tokens.find(one) for one in wrong] == [None] * len(wrong)
            stored = overlay.folder / "jetstream"
            files = [path.read_bytes() for path in stored.rglob("*") if path.is_file()]
            assert any(b"digest" in data for data in files)
            assert not any(token.encode() in data for data in files)

    asyncio.run(run())


def test_a_token_that_is_over_ends_by_itself_and_may_be_made_anew(overlay: Overlay) -> None:
    async def run() -> None:
        async with overlay.tokens() as tokens:
            name = next(names)
            soon = datetime.now(UTC) + timedelta(seconds=0.3)
            token = await tokens.create(name, scopes=["publish"], expires=soon)
            access = await tokens.find(token)
            assert access is not None
            with pytest.raises(WasChanged, match="already"):
                await tokens.create(name, scopes=["publish"])
            ended = asyncio.Event()
            tokens.when_ended(access, ended.set)
            await ended.wait()
            assert await tokens.find(token) is None
            assert access in tokens.list()
            again = await tokens.create(name, scopes=["publish"])
            assert await tokens.find(again) is not None
            assert await tokens.find(token) is None
            with pytest.raises(BadInput, match="over already"):
                await tokens.create(next(names), scopes=["publish"], expires=soon)

    asyncio.run(run())


def test_a_token_that_was_drawn_before_replaces_the_one_of_its_name(overlay: Overlay) -> None:
    async def run() -> None:
        ended = asyncio.Event()
        async with overlay.tokens() as tokens:
            name = next(names)
            first_token, second_token = "first", "second"
            made = await tokens.create(name, scopes=["publish"], token=first_token)
            assert made == first_token
            first = await tokens.find("first")
            assert first is not None
            tokens.when_ended(first, ended.set)
            await tokens.create(name, scopes=["publish"], token=first_token)
            assert await tokens.find("first") == first
            assert not ended.is_set()
            await tokens.create(name, scopes=["publish"], token=second_token)
            assert await tokens.find("first") is None
            assert await tokens.find("second") is not None
            assert ended.is_set()

    asyncio.run(run())


def test_two_who_make_a_token_of_one_name_do_not_both_get_one(overlay: Overlay) -> None:
    async def run() -> None:
        async with overlay.tokens() as here, overlay.tokens() as there:
            name = next(names)
            made = await asyncio.gather(
                *(one.create(name, scopes=["publish"]) for one in (here, there, here, there)),
                return_exceptions=True,
            )
            assert sorted(type(one).__name__ for one in made) == ["WasChanged"] * 3 + ["str"]

    asyncio.run(run())


def test_tokens_survive_the_server_and_nobody_comes_in_while_it_is_away(tmp_path: Path) -> None:
    overlay = Overlay(tmp_path)

    async def run() -> None:
        async with overlay.tokens() as here, overlay.tokens() as there:
            kept = await here.create("kept", scopes=["publish"])
            revoked = await here.create("revoked", scopes=["publish"])
            async with asyncio.timeout(60):
                while await there.find(revoked) is None:
                    await asyncio.sleep(0.01)
            assert await here.revoke("revoked")
            overlay.nats.kill()
            await eventually(lambda: not there._watcher.is_current)
            with pytest.raises(TokensAway):
                await there.find(kept)
            overlay.nats.start()
            access = await there.find(kept)
            assert access is not None
            assert access.name == "kept"
            assert await there.find(revoked) is None

    try:
        asyncio.run(run())
    finally:
        overlay.nats.kill()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"name": ""}, "name ''"),
        ({"name": "a/b"}, "name 'a/b'"),
        ({"name": "-a"}, "name '-a'"),
        ({"tenant": "North"}, "tenant 'North'"),
        ({"tenant": "a.b"}, "tenant 'a.b'"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["publish", "root"]}, "scope 'root'"),
        ({"sources": []}, "sources"),
        ({"sources": ["x" * 512 + "/"]}, "source"),
        ({"expires": datetime(2100, 1, 1)}, "expires"),
    ],
)
def test_what_a_token_cannot_be_is_refused_by_name(
    overlay: Overlay, change: dict[str, object], named: str
) -> None:
    async def run() -> None:
        async with overlay.tokens() as tokens:
            given = {"name": "bad", "scopes": ["publish"], **change}
            with pytest.raises(BadInput) as caught:
                await tokens.create(**given)  # type: ignore[arg-type]
            assert caught.value.place == named

    asyncio.run(run())


def test_sources_are_permitted_by_whole_parts_of_names() -> None:
    access = Access("a", "", ("publish",), ("/site/", "urn:x:", "/town", "urn:y"))
    permitted = ("/site/", "/site/1", "urn:x:", "urn:x:1", "/town", "/town/1", "/town:1", "urn:y:1")
    refused = ("/site", "/sites/1", "urn:x", "/towns", "/town1", "/tow", "urn:yy:1", "urn", "", "/")
    assert all(map(access.may_publish_from, permitted))
    assert not any(map(access.may_publish_from, refused))
    assert Access("a", "", ("publish",)).may_publish_from("anything")


def test_an_administrator_administers_its_own_tenant_and_the_first_one_everybody() -> None:
    first, north = Access("a", "", ("admin",)), Access("a", "north", ("admin",))
    assert [first.administers(tenant) for tenant in ("", "north", "south")] == [True] * 3
    assert [north.administers(tenant) for tenant in ("", "north", "south")] == [False, True, False]
    assert (first.is_operator, north.is_operator) == (True, False)
    assert not Access("a", "", ("publish", "subscribe")).administers("")


def test_what_somebody_else_wrote_into_the_bucket_lets_nobody_in(overlay: Overlay) -> None:
    """Also not under the name of another token; and those behind it are still found."""

    async def run() -> None:
        async with overlay.tokens() as tokens:
            name = next(names)
            token = await tokens.create(name, scopes=["publish"], tenant="north")
            bucket = tokens._bucket
            entry = await bucket.get("token", "north", name)
            assert entry is not None
            assert entry.value is not None
            await bucket.put("token", "south", name, value=entry.value)
            await bucket.put("token", "", "x", value=b"{")
            await bucket.put("other", value=entry.value)
            named = overlay.subjects
            raw = f"{named.entry('tokens')}.=zz"
            await tokens._bucket._request(raw, entry.value, {})
            access = await tokens.find(token)
            assert access is not None
            assert access.tenant == "north"
            last = await tokens.create(next(names), scopes=["publish"])
            assert await tokens.find(last) is not None
            for key in (("token", "south", name), ("token", "", "x"), ("other",)):
                await bucket.delete(*key)

    asyncio.run(run())


def test_a_key_that_no_server_takes_does_not_end_the_connection(overlay: Overlay) -> None:
    async def run() -> None:
        async with overlay.tokens() as tokens:
            bucket = tokens._bucket
            connection = bucket._buckets.connection
            await connection.wait()
            client = connection._client
            for size in (1_000, 10_000):
                key = ("x", "é" * size)
                assert await bucket.get(*key) is None
                with pytest.raises(BadInput, match="too long"):
                    await bucket.put(*key, value=b"")
            await bucket.put("x", "a" * 3_000, value=b"long")
            entry = await bucket.get("x", "a" * 3_000)
            assert entry is not None
            assert entry.value == b"long"
            await bucket.delete("x", "a" * 3_000)
            assert connection._client is client

    asyncio.run(run())


def test_a_gateway_may_use_its_buckets_and_nothing_else_of_the_store(overlay: Overlay) -> None:
    """A consumer, a stream or a direct read would say to a broker what a gateway likes."""
    named = overlay.subjects
    kept = named.bucket("tokens")
    tries = {
        "gateway": [
            f"$JS.API.STREAM.CREATE.KV_{kept}",
            f"$JS.API.STREAM.UPDATE.KV_{kept}",
            f"$JS.API.STREAM.DELETE.KV_{kept}",
            f"$JS.API.STREAM.PURGE.KV_{kept}",
            "$JS.API.STREAM.CREATE.mine",
            f"$JS.API.CONSUMER.CREATE.KV_{kept}",
            f"$JS.API.CONSUMER.CREATE.KV_{kept}.mine",
            f"$JS.API.DIRECT.GET.KV_{kept}",
            f"$JS.API.DIRECT.GET.KV_{kept}.{named.entry('tokens', 'x')}",
            "$KV.west_tokens.x",
            "$JS.API.STREAM.MSG.GET.KV_west_tokens",
            f"{named.changes('tokens')}.x",
        ],
        "a1": [named.entry("tokens", "x"), f"$JS.API.STREAM.MSG.GET.KV_{kept}"],
        "operator": [named.entry("tokens", "x"), f"$JS.API.STREAM.MSG.GET.KV_{kept}"],
    }

    async def refused(user: str, subjects: list[str]) -> int:
        one = NatsConnection(overlay.server(user), name=user, inbox=named.inbox(user), handlers={})
        await one.wait()
        for subject in subjects:
            one.send(subject, b"{}")
        await one.flush()
        await one.close()
        return one.refused

    for user, subjects in tries.items():
        assert asyncio.run(refused(user, subjects)) == len(subjects)


def test_an_answer_that_is_led_to_a_broker_is_no_message_there(overlay: Overlay) -> None:
    """A server answers to whatever subject a request names, and may publish everywhere."""
    from distributary.broker.encoding import decode
    from distributary.errors import PeerMisbehaved

    named = overlay.subjects
    subject = named.to_broker("b2", "a1")

    async def run() -> list[bytes]:
        heard: list[bytes] = []
        broker = NatsConnection(
            overlay.server("b2"),
            name="b2",
            inbox=named.inbox("b2"),
            handlers={subject: lambda message: heard.append(message.data)},
        )
        gateway = NatsConnection(
            overlay.server("gateway"), name="g", inbox=named.inbox("gateway"), handlers={}
        )
        await broker.wait()
        await gateway.wait()
        client = gateway._client
        assert client is not None
        await client.publish(named.entry("tokens", "forged"), encode(Gossip(())), reply=subject)
        asked = b'{"last_by_subj": "%s"}' % named.entry("tokens", "forged").encode()
        get = f"$JS.API.STREAM.MSG.GET.KV_{named.bucket('tokens')}"
        await client.publish(get, asked, reply=subject)
        await eventually(lambda: len(heard) == 2)
        for one in (gateway, broker):
            await one.close()
        return heard

    for data in asyncio.run(run()):
        with pytest.raises(PeerMisbehaved):
            decode(data)
