"""Whoever is let in may speak for itself only, and read only what is for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.live.overlays import RunningOverlay, eventually, running_overlay

from distributary.broker.client import Publish
from distributary.broker.encoding import encode
from distributary.broker.membership.roster import Gossip
from distributary.network.connection import NatsConnection, Server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningOverlay]:
    with running_overlay(tmp_path_factory.mktemp("live") / "state", brokers=2) as overlay:
        yield overlay


def connection(overlay: RunningOverlay, user: str, *read: str) -> NatsConnection:
    return NatsConnection(
        overlay.server(user),
        name=user,
        inbox=overlay.subjects.inbox(user),
        handlers={subject: lambda _: None for subject in read},
    )


def refused(overlay: RunningOverlay, user: str, *subjects: str) -> int:
    """How many subjects the server does not let somebody publish on."""

    async def run() -> int:
        one = connection(overlay, user)
        await one.wait()
        for subject in subjects:
            one.send(subject, encode(Gossip(())))
        await one.flush()
        count = one.refused
        await one.close()
        return count

    return asyncio.run(run())


def test_nobody_publishes_as_somebody_else(overlay: RunningOverlay) -> None:
    a, b = overlay.brokers
    named = overlay.subjects
    client = "@gateway/me"
    own = [named.to_broker(b, a), named.to_client(client, a), named.to_host(b, a)]
    assert refused(overlay, a, *own) == 0
    foreign = [
        named.to_broker(a, b),
        named.to_client(client, b),
        named.to_host(a, b),
        named.to_home(a, client),
        named.presence(a, client),
        "anything",
    ]
    assert refused(overlay, a, *foreign) == len(foreign)
    own = [named.to_home(a, client), named.presence(a, client), named.to_host(a, "gateway")]
    assert refused(overlay, "gateway", *own) == 0
    foreign = [
        named.to_home(a, "@other/me"),
        named.to_home(a, "@me"),
        named.presence(a, "@tenant@other/me"),
        named.to_broker(a, b),
        named.to_client(client, a),
    ]
    assert refused(overlay, "gateway", *foreign) == len(foreign)
    assert refused(overlay, "operator", named.to_home(a, client), named.to_broker(a, b)) == 2


def test_nobody_reads_what_is_for_somebody_else(overlay: RunningOverlay) -> None:
    a, b = overlay.brokers
    named = overlay.subjects
    tries = [
        (a, named.to_broker(b, "*")),
        (a, named.to_client("@gateway/me", "*")),
        (a, ">"),
        ("gateway", named.to_client("@other/me", "*")),
        ("gateway", f"{named.inbox('operator')}.>"),
        ("operator", f"{named.inbox(a)}.>"),
    ]

    async def run() -> list[int]:
        counts = []
        for user, subject in tries:
            one = connection(overlay, user, subject)
            await one.wait()
            await one.flush()
            counts.append(one.refused)
            await one.close()
        return counts

    assert asyncio.run(run()) == [1] * len(tries)


def test_nobody_comes_in_without_a_password(overlay: RunningOverlay) -> None:
    async def run() -> list[str]:
        problems = []
        for user, password in (("", ""), (overlay.brokers[0], "wrong"), ("root", "")):
            server = Server((overlay.line["nats"],), user, password)
            one = NatsConnection(server, name="stranger", inbox="_INBOX", handlers={})
            await eventually(lambda one=one: one.problem)  # type: ignore[misc]
            assert not one.connected
            problems.append(one.problem.lower())
            await one.close()
        return problems

    assert all("authorization" in problem for problem in asyncio.run(run()))


def test_what_makes_no_sense_is_dropped_and_the_broker_goes_on(overlay: RunningOverlay) -> None:
    a = overlay.brokers[0]
    subject = overlay.subjects.to_home(a, "@gateway/me")

    async def run() -> None:
        async with overlay.gate() as gate:
            for data in (b"", b"\x02", b"\xff" * 100, bytes(600_000), encode(Publish("x"))[:-1]):
                gate.connection.send(subject, data)
            gate.connection.send(f"{subject}=2", encode(Publish("x")))
            assert await gate.client("me", a).status("none") is None

    asyncio.run(run())
    assert "Misbehaved" in overlay.log(a)
