"""A client whose home stays away publishes elsewhere; its subscriptions wait for the home."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from itertools import count
from pathlib import Path

import pytest
from tests.live.brokers import Brokers, started_brokers
from tests.live.overlays import LOOK_S, eventually
from tests.live.traffic import event

from distributary.broker.client import Delivery
from distributary.network.client import Client, Numbered

pytestmark = pytest.mark.slow

HOME, *OTHERS = NAMES = ("0a00", "5b00", "fc00")
GOES_ON_S = 10.0


class Subscriber:
    """What one client gets, and in which order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.got: list[int] = []
        self.client: Client

    def take(self, message: Numbered) -> None:
        assert isinstance(message, Delivery)
        self.got.append(int(json.loads(message.event)["id"]))
        self.client.acknowledge(message.subscription, message.number)


def _publication(number: int, content: bytes | None) -> tuple[str, bytes | None, str]:
    if content is None:
        return event("/p", number), None, ""
    document = json.loads(event("/p", number))
    # It is beside the event.
    del document["data"]
    media_type = document["datacontenttype"] = "application/octet-stream"
    return json.dumps(document), content, media_type


async def _run(brokers: Brokers, content: bytes | None) -> None:
    await asyncio.wait_for(brokers.wait(), 120)
    sessions: dict[int, str] = {}
    at: set[int] = set()
    async with brokers.gate(NAMES) as gate:
        subscribers = [Subscriber(f"s{k}") for k in range(3)]
        for one, home in zip(subscribers, NAMES, strict=True):
            one.client = gate.client(one.name, home, one.take)
            await one.client.subscribe({"id": "all", "filters": [{"exact": {"type": "t"}}]})
        publisher = gate.client("p", HOME)

        async def publish(number: int) -> None:
            accepted = await publisher.publish(*_publication(number, content))
            sessions[number] = accepted.session
            at.add(number)

        under_way = [asyncio.ensure_future(publish(number)) for number in range(150)]
        await eventually(lambda: len(at) > 20)
        brokers.kill(HOME)
        under_way += [asyncio.ensure_future(publish(number)) for number in range(150, 300)]
        looks = count()
        await eventually(lambda: next(looks) < 0 or max(at) >= 150)
        # Not in seconds: a machine that is busy with something else is seldom here to look.
        assert next(looks) < GOES_ON_S / LOOK_S
        await asyncio.gather(*under_way)
        assert publisher.home == HOME
        assert publisher.publishes_at in OTHERS
        waited = len(subscribers[0].got)
        brokers.start(HOME)
        # What only the first home had stored comes when that is back.
        await eventually(
            lambda: all(len(one.got) >= 300 for one in subscribers),
            120,
            progress=lambda: sum(len(one.got) for one in subscribers),
        )
        assert waited < 300
        assert publisher.publishes_at in OTHERS
    by_session: defaultdict[str, list[int]] = defaultdict(list)
    for number in range(300):
        by_session[sessions[number]].append(number)
    # On a machine with much else to do the second home may seem to be away as well.
    assert len(by_session) >= 2
    for one in subscribers:
        assert sorted(one.got) == list(range(300)), "each of them once"
        for numbers in by_session.values():
            mine = set(numbers)
            assert [number for number in one.got if number in mine] == numbers


@pytest.mark.parametrize("content", [None, b"some content" * 100], ids=["events", "content"])
def test_publications_go_on_when_the_home_is_killed_for_good(
    tmp_path: Path, content: bytes | None
) -> None:
    with started_brokers(tmp_path, NAMES) as brokers:
        asyncio.run(_run(brokers, content))


def test_nobody_leaves_a_home_that_is_there(tmp_path: Path) -> None:
    """One that restarts soon, and a server that is gone for longer, keep their sessions."""

    async def run(brokers: Brokers) -> None:
        await asyncio.wait_for(brokers.wait(), 120)
        async with brokers.gate(NAMES) as gate:
            publisher = gate.client("p", HOME)
            first = await publisher.publish(event("/p", 0))
            brokers.nats.kill()
            later = [asyncio.ensure_future(publisher.publish(event("/p", n))) for n in range(1, 9)]
            await asyncio.sleep(6.0)
            await asyncio.to_thread(brokers.nats.start)
            answers = await asyncio.gather(*later)
            assert {one.session for one in answers} == {first.session}
            assert publisher.publishes_at == HOME

    with started_brokers(tmp_path, NAMES) as brokers:
        asyncio.run(run(brokers))
