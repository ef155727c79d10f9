"""Hostile messages from those who are let in: a gateway's user, and a broker's.

Whatever they say, brokers go on, and whoever keeps to the rules is served as before.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.hostile_messages import Mutations
from tests.live.overlays import RunningOverlay, running_overlay
from tests.live.traffic import Traffic, event

from distributary.broker import client as client_messages
from distributary.broker.client import Acknowledge, Publish, Subscribe, Unsubscribe
from distributary.broker.encoding import encode, kinds
from distributary.broker.membership.roster import Gossip, MemberStatus, News
from distributary.network.connection import NatsConnection
from distributary.network.requests import (
    CHUNK_BYTES,
    GetChunk,
    GetRows,
    GetStatus,
    PutChunk,
    Request,
    encode_request,
)
from distributary.network.status import ask

pytestmark = pytest.mark.slow

_ROUNDS = 60
_SURROGATE = "=ed=a0=80"


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningOverlay]:
    with running_overlay(tmp_path_factory.mktemp("live") / "state", brokers=3) as overlay:
        yield overlay


def _connection(overlay: RunningOverlay, user: str, **handlers: Any) -> NatsConnection:
    inbox = overlay.subjects.inbox(user)
    return NatsConnection(overlay.server(user), name=user, inbox=inbox, handlers=handlers)


def _broken(rng: random.Random, whole: bytes) -> bytes:
    """A message as nobody sends it."""
    what = rng.randrange(5)
    if what == 0:
        return whole[: rng.randrange(len(whole))]
    if what == 1:
        return rng.randbytes(rng.randrange(2_000))
    if what == 2:
        return whole + rng.randbytes(8)
    if what == 3:
        place = rng.randrange(len(whole))
        return whole[:place] + rng.randbytes(1) + whole[place + 1 :]
    return whole[:100_000] * rng.randrange(2, 9)


def _of_clients(rng: random.Random) -> list[object]:
    return [
        Publish(event("/h", rng.randrange(5))),
        Subscribe('{"id": "h", "filters": [{"exact": {"type": "h"}}]}'),
        Unsubscribe("h"),
        Acknowledge("h", rng.randrange(-5, 2**40)),
        client_messages.AskStatus("h"),
        client_messages.Announce(event("/h", 1)),
        client_messages.Changed("/h", "x", rng.randrange(9), 1, (("/v", 1.0),)),
    ]


def _requests(rng: random.Random) -> list[bytes]:
    digest = f"{rng.getrandbits(256):064x}"
    asked: list[Request] = [
        GetStatus(),
        GetRows("subscriptions", after="x" * rng.randrange(100_000)),
        GetChunk(digest, rng.choice((-1, 0, 2**62)), rng.choice((-1, 0, 2**62))),
        GetChunk("../journal.db", 0, 100),
        PutChunk("@gateway/h", "a/b", digest, rng.choice((-1, 0, 10, 2**62)), 0, b"x"),
        PutChunk("@gateway/h", "a/b", digest, 3 * CHUNK_BYTES, 2**62, bytes(CHUNK_BYTES)),
        PutChunk("@other/h", "a/b", "../../x", 10, 0, b"x"),
    ]
    return [encode_request(one) for one in asked]


async def _well(overlay: RunningOverlay, before: dict[str, int], source: str) -> None:
    """Everybody is there, in the same process as before, and does its work."""
    async with overlay.gate() as gate:
        traffic = Traffic(gate, overlay.brokers)
        await traffic.subscribe(3)
        await traffic.publish(source, 30)
        await traffic.settled()
        for subscriber in traffic.subscribers.values():
            await subscriber.unsubscribe("all")
    assert overlay.pids() == before
    # On a busy machine somebody may seem to be away for a moment.
    counts: list[int] = []
    async with asyncio.timeout(60):
        while counts != [len(overlay.brokers)] * len(overlay.brokers):
            server = overlay.server("operator")
            told = await ask(overlay.subjects, server, "operator", overlay.brokers)
            counts = [one["members_up"] if one else 0 for one in told.values()]
    for name in overlay.brokers:
        assert "failed over" not in overlay.log(name)
        assert "Traceback" not in overlay.log(name)


def test_what_a_gateway_says_harms_nobody(overlay: RunningOverlay) -> None:
    rng = random.Random(11)
    before = overlay.pids()

    async def run() -> None:
        gateway = _connection(overlay, "gateway")
        await gateway.wait()
        named, mutations = overlay.subjects, Mutations(rng, overlay.brokers, [b"\x02"])
        for number in range(_ROUNDS):
            for home in overlay.brokers:
                client = f"@{rng.choice(('', 'north@'))}gateway/h{number % 5}"
                client = client if client.count("@") == 1 else f"@{client[1:]}"
                subject = named.to_home(home, client)
                for message in _of_clients(rng):
                    data = encode(message)
                    gateway.send(subject, data)
                    gateway.send(subject, data)
                    gateway.send(subject, _broken(rng, data))
                    gateway.send(subject, encode(mutations.changed(message)))
                    gateway.send(named.presence(home, client), _broken(rng, b"10"))
                for asked in _requests(rng):
                    gateway.send(named.to_host(home, "gateway"), asked)
                    gateway.send(named.to_host(home, "gateway"), _broken(rng, asked))
                # Nobody has such a name, and no journal could keep it.
                begin = subject.rpartition(".")[0]
                gateway.send(f"{begin}.{_SURROGATE}", encode(_of_clients(rng)[1]))
                gateway.send(subject, bytes(1_000_000))
                gateway.send(subject, encode(Gossip((News(home, 99, MemberStatus.LEFT),))))
            await gateway.flush()
        await gateway.close()
        await _well(overlay, before, "after-a-gateway")

    asyncio.run(run())


def test_what_a_broker_says_in_the_way_of_nonsense_harms_nobody(overlay: RunningOverlay) -> None:
    """Brokers believe each other; what breaks the protocol they drop."""
    rng = random.Random(12)
    before = overlay.pids()
    bad, *others = overlay.brokers

    async def run() -> None:
        broker = _connection(overlay, bad)
        await broker.wait()
        for _ in range(_ROUNDS):
            for other in others:
                subject = overlay.subjects.to_broker(other, bad)
                for message in _of_clients(rng):
                    # A broker is no client.
                    broker.send(subject, encode(message))
                for kind in kinds():
                    head = kind.to_bytes(2, "big")
                    broker.send(subject, head + rng.randbytes(rng.randrange(60)))
                broker.send(subject, bytes(1_000_000))
                for asked in _requests(rng):
                    broker.send(overlay.subjects.to_host(other, bad), _broken(rng, asked))
            await broker.flush()
        await broker.close()
        await _well(overlay, before, "after-a-broker")

    asyncio.run(run())


def test_nobody_is_answered_in_the_place_of_somebody_else(overlay: RunningOverlay) -> None:
    """A broker may answer wherever it is asked to: at a subject of another, it would be forging."""
    victim, asked, claimed = overlay.brokers
    forged = overlay.subjects.to_broker(victim, claimed)
    got: list[bytes] = []

    async def run() -> None:
        # The victim hears what comes for it twice, as this is another connection of its user.
        ears = _connection(overlay, victim, **{forged: lambda message: got.append(message.data)})
        gateway = _connection(overlay, "gateway")
        await ears.wait()
        await gateway.wait()
        client = gateway._client
        assert client is not None
        to_host = overlay.subjects.to_host(asked, "gateway")
        for _ in range(5):
            await client.publish(to_host, encode_request(GetStatus()), reply=forged)
        # Behind these, one that is answered.
        assert await gateway.request(to_host, encode_request(GetStatus()), timeout_s=60.0)
        await ears.flush()
        await gateway.close()
        await ears.close()

    asyncio.run(run())
    # Everything from a broker begins with the version; answers of hosts do not.
    assert not any(b"status" in data for data in got)
