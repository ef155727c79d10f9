"""Events through real brokers: once each, in order, whatever is killed meanwhile."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.live.overlays import RunningOverlay, running_overlay
from tests.live.traffic import Traffic, event

from distributary.broker.client import Delivery
from distributary.network.client import Client, Numbered, WasRefused

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningOverlay]:
    with running_overlay(tmp_path_factory.mktemp("live") / "state", brokers=5) as overlay:
        yield overlay


def test_everybody_gets_everything_once_and_in_order(overlay: RunningOverlay) -> None:
    async def run() -> None:
        async with overlay.gate() as gate:
            traffic = Traffic(gate, overlay.brokers)
            await traffic.subscribe(10, kind="t")
            await asyncio.gather(*(traffic.publish(f"a{k}", 100) for k in range(3)))
            await traffic.settled()

    asyncio.run(run())


def test_only_what_matches_comes_and_a_bad_event_is_refused(overlay: RunningOverlay) -> None:
    got: list[str] = []

    def deliver(message: Numbered) -> None:
        assert isinstance(message, Delivery)
        got.append(message.event)

    async def run() -> None:
        async with overlay.gate() as gate:
            subscriber = gate.client("few", overlay.brokers[0], deliver)
            await subscriber.subscribe({"id": "few", "filters": [{"exact": {"type": "only"}}]})
            publisher = gate.client("many", overlay.brokers[1])
            with pytest.raises(WasRefused, match="publication"):
                await publisher.publish('{"specversion": "1.0", "id": "1"}')
            answers = [
                publisher.publish(event("/many", number, "only" if number % 3 == 0 else "other"))
                for number in range(30)
            ]
            await asyncio.gather(*answers)
            status = await subscriber.status("few")
            while status is None or status.last < 10:
                status = await subscriber.status("few")
            await subscriber.unsubscribe("few")
            assert await subscriber.status("few") is None

    asyncio.run(run())
    assert [json.loads(text)["id"] for text in got] == [str(number) for number in range(0, 30, 3)]


def test_a_home_tells_of_an_end_until_that_is_known_for_good(overlay: RunningOverlay) -> None:
    """Whoever hears of it may crash before it has kept it, and would ask for nothing ever after."""
    wish = {
        "id": "full",
        "filters": [{"exact": {"type": "much"}}],
        "config": {"queue_bytes": 2_000},
    }

    async def run() -> list[bool]:
        async with overlay.gate() as gate:
            home, told = overlay.brokers[0], []

            def hearer() -> Client:
                return gate.client("hearer", home, changed=lambda _: None)

            client = hearer()
            await client.subscribe(wish)
            publisher = gate.client("much", overlay.brokers[1])
            for number in range(10):
                await publisher.publish(event("/much", number, "much", data="x" * 500))
            while "full" not in client.ended:
                assert await client.status("other") is None
            for known in (False, True, False):
                if known:
                    client.know_ends()
                await client.close()
                client = hearer()
                assert await client.status("full") is None
                told.append("full" in client.ended)
            return told

    assert asyncio.run(run()) == [True, False, False]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "restarted"])
def test_nothing_is_lost_when_brokers_and_the_server_are_killed_or_all_restarted_in_turn(
    tmp_path: Path, number: signal.Signals
) -> None:
    async def run(overlay: RunningOverlay) -> None:
        async with overlay.gate() as gate:
            traffic = Traffic(gate, overlay.brokers)
            await traffic.subscribe(8)
            rolling = number == signal.SIGTERM
            victims = [*overlay.brokers[:3], "nats", overlay.brokers[1]]
            for victim in overlay.brokers if rolling else victims:
                enough = traffic.accepted_count + 40
                under_way = [asyncio.ensure_future(traffic.publish(f"p{k}", 60)) for k in range(4)]
                # All of it may be accepted when it is looked at next.
                while traffic.accepted_count < enough:
                    await asyncio.sleep(0.005)
                await asyncio.to_thread(overlay.kill, victim, number)
                await asyncio.gather(*under_way)
            await traffic.settled()

    with running_overlay(tmp_path / "state", brokers=4) as overlay:
        asyncio.run(run(overlay))
