"""What a client publishes, and when it says it again."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from distributary.broker.addresses import client_address
from distributary.broker.client import Accepted, Publish
from distributary.network.connection import NatsConnection
from distributary.network.outgoing import REPEAT_S, Outgoing
from distributary.network.subjects import Subjects


def test_what_has_stood_in_line_is_not_repeated_as_soon_as_it_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client that hands over many events at once would else say most of them twice."""

    async def run() -> None:
        now_s = 100.0
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now_s)
        sent: list[int] = []

        def send(message: object, home: str) -> None:
            assert isinstance(message, Publish)
            sent.append(message.number)

        outgoing = Outgoing(
            cast(NatsConnection, SimpleNamespace(connected=True)),
            Subjects("test"),
            "gate",
            client_address("gate/client"),
            "0a",
            send=send,
            brokers=(),
        )
        answers: list[asyncio.Future[Any]] = [
            outgoing.publish(f"{number}", None, "") for number in range(1, 66)
        ]
        under_way = list(sent)
        assert under_way == list(range(1, 65))
        now_s += 0.8 * REPEAT_S
        for number in under_way:
            outgoing.accepted(Accepted("", "", outgoing.session, number))
        assert sent == [*under_way, 65]
        now_s += 0.4 * REPEAT_S
        outgoing.look(now_s)
        assert sent == [*under_way, 65]
        now_s += 0.7 * REPEAT_S
        outgoing.look(now_s)
        assert sent == [*under_way, 65, 65]
        assert [answer.done() for answer in answers] == [True] * 64 + [False]

    asyncio.run(run())
