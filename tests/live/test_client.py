"""The client library on real processes: what it gets, keeps, acknowledges and survives."""

from __future__ import annotations

import asyncio
import math
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cutting_proxy import cutting_proxy
from tests.live.overlays import RunningOverlay, eventually, running_overlay

import distributary
from distributary.client import Connection, RequestRefused, Subscription, SubscriptionTaken
from distributary.content.publication import Publication
from distributary.errors import BadInput, LocalMisuse

pytestmark = pytest.mark.slow

SOME_S = 60.0


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningOverlay]:
    with running_overlay(tmp_path_factory.mktemp("overlay"), brokers=3) as running:
        yield running


def connection(overlay: RunningOverlay, url: str | None = None) -> Connection:
    return distributary.connect(
        url or overlay.line["gateway"], overlay.line["token"], patience_s=SOME_S
    )


def of(kind: str) -> list[dict[str, dict[str, str]]]:
    return [{"exact": {"type": kind}}]


async def data_of(subscription: Subscription, count: int) -> list[object]:
    """What the next events have for data; each is acknowledged, and may take its time."""
    found: list[object] = []
    async with asyncio.timeout(SOME_S) as patience:
        async for event in subscription:
            patience.reschedule(asyncio.get_running_loop().time() + SOME_S)
            found.append(event.data)
            if len(found) == count:
                event.acknowledge()
                break
    return found


def test_what_is_published_comes_as_it_was(overlay: RunningOverlay) -> None:
    async def run() -> None:
        async with connection(overlay) as d, d.subscribe(of("same")) as events:
            given: list[tuple[object, str | None]] = [
                ({"price": 12.5, "name": "grün"}, None),
                ("Straße", None),
                (b"\xff\x00\xfe", None),
                (b"caf\xe9", "text/plain;charset=iso-8859-1"),
                (b"caf\xe9", "text/plain;charset=utf-8"),
                (None, None),
            ]
            sent = [
                await d.publish(data, type="same", source="/test", media_type=kind, region="süd")
                for data, kind in given
            ]
            found = []
            async with asyncio.timeout(SOME_S):
                async for event in events:
                    found.append(event)
                    if len(found) == len(given):
                        break
            assert [(event.source, event.id) for event in found] == sent
            assert [event.data for event in found] == [
                {"price": 12.5, "name": "grün"},
                "Straße".encode(),
                b"\xff\x00\xfe",
                b"caf\xe9",
                b"caf\xe9",
                None,
            ]
            assert {event.attributes["region"] for event in found} == {"süd"}
            assert [event.number for event in found] == [1, 2, 3, 4, 5, 6]
            assert await found[0].read() == b'{"price":12.5,"name":"gr\xc3\xbcn"}'

    asyncio.run(run())


def test_many_at_once_keep_their_order(overlay: RunningOverlay) -> None:
    async def run() -> None:
        async with connection(overlay) as d, d.subscribe("type = 'order'") as events:
            await asyncio.gather(*(d.publish(n, type="order", source="/o") for n in range(300)))
            assert await d.publish_all(range(300, 700), type="order", source="/o") == 400
            assert await data_of(events, 700) == list(range(700))

    asyncio.run(run())


def test_the_same_event_again_is_delivered_once(overlay: RunningOverlay) -> None:
    async def run() -> None:
        async with connection(overlay) as d, d.subscribe(of("twice")) as events:
            first = await d.publish(1, type="twice", source="/t", id="one")
            again = await asyncio.gather(
                *(d.publish(1, type="twice", source="/t", id="one") for _ in range(5))
            )
            assert set(again) == {first}
            await d.publish(2, type="twice", source="/t")
            assert await data_of(events, 2) == [1, 2]

    asyncio.run(run())


def test_what_is_refused_is_said_and_the_others_are_published(overlay: RunningOverlay) -> None:
    async def run() -> None:
        async with connection(overlay) as d, d.subscribe(of("mixed")) as events:
            foreign = Publication.parse(
                {
                    "specversion": "1.0",
                    "id": "1",
                    "source": "/m",
                    "type": "mixed",
                    "dataref": f"/content/{'0' * 64}",
                }
            )
            results = await asyncio.gather(
                d.publish(1, type="mixed", source="/m"),
                d.publish(foreign),
                d.publish(2, type="mixed", source="/m"),
                return_exceptions=True,
            )
            assert isinstance(results[1], RequestRefused)
            assert "dataref" in str(results[1])
            assert await data_of(events, 2) == [1, 2]
            with pytest.raises(BadInput, match="type: is missing"):
                await d.publish(3)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("count", "cuts"), [(120, 10), pytest.param(600, 1_000, marks=pytest.mark.full)]
)
def test_cuts_at_any_byte_lose_nothing_and_repeat_nothing(
    overlay: RunningOverlay, count: int, cuts: int
) -> None:
    """A connection carries few events and dies; in the long run a thousand of them do."""

    async def run() -> None:
        async with (
            cutting_proxy(overlay.line["gateway"], seed=count) as proxy,
            connection(overlay, proxy.url) as d,
            d.subscribe(of(f"cut {count}")) as events,
        ):
            proxy.bytes_max = 8_000
            proxy.cut_all()
            first = 0
            # How often it is cut for so many events depends on the machine.
            while proxy.cut <= cuts:
                given = [[n, "x" * 300] for n in range(first, first + count)]
                publishing = asyncio.create_task(
                    d.publish_all(given, type=f"cut {count}", source="/c")
                )
                assert await data_of(events, count) == given
                assert await publishing == count
                first += count

    asyncio.run(run())


def test_answers_that_are_lost_make_no_second_subscription_and_end_none_twice(
    overlay: RunningOverlay,
) -> None:
    count = 12

    async def run() -> None:
        async with (
            cutting_proxy(overlay.line["gateway"], seed=5) as proxy,
            connection(overlay, proxy.url) as d,
        ):
            # A request takes about half of this, and its answer the other half.
            proxy.bytes_max = 1_600
            proxy.cut_all()
            names = []
            for place in range(count):
                async with d.subscribe(of(f"lost {place}"), keep=True) as one:
                    names.append(one.id)
            assert proxy.cut > count
            async with connection(overlay) as directly:
                there = [one["filters"] for one in await directly.subscriptions()]
                assert [there.count(of(f"lost {place}")) for place in range(count)] == [1] * count
                for name in names:
                    await d.unsubscribe(name)
                left = {one["id"] for one in await directly.subscriptions()}
                assert not left.intersection(names)
                with pytest.raises(RequestRefused, match="there is no subscription"):
                    await directly.unsubscribe(names[0])

    asyncio.run(run())


def test_a_gateway_that_is_killed_is_found_again(overlay: RunningOverlay) -> None:
    async def run() -> None:
        async with connection(overlay) as d, d.subscribe(of("killed")) as events:
            publishing = asyncio.create_task(d.publish_all(range(300), type="killed", source="/k"))
            found = await data_of(events, 50)
            await asyncio.to_thread(overlay.kill, "gateway")
            found += await data_of(events, 250)
            assert found == list(range(300))
            assert await publishing == 300

    asyncio.run(run())


@pytest.mark.parametrize("how", ["raise", "cancel", "break"])
def test_a_body_that_does_not_end_acknowledges_nothing(overlay: RunningOverlay, how: str) -> None:
    async def work(subscription: Subscription) -> None:
        async for event in subscription:
            if event.data == 1:
                if how == "raise":
                    raise RuntimeError("the body has failed")
                if how == "break":
                    break
                await asyncio.Event().wait()

    async def run() -> None:
        async with connection(overlay) as d:
            async with d.subscribe(of(how), keep=True) as events:
                await d.publish_all(range(3), type=how, source="/b")
                task = asyncio.create_task(work(events))
                await eventually(lambda: events._progress.done == 1 or task.done())
                if how == "cancel":
                    task.cancel()
                await asyncio.wait([task])
            async with d.subscribe(id=events.id) as again:
                assert await data_of(again, 2) == [1, 2]
            assert (await d.subscriptions())[0]["waiting"] == 0
            await d.unsubscribe(events.id)
            assert await d.subscriptions() == []

    asyncio.run(run())


def test_a_loop_that_begins_again_gets_what_was_not_done(overlay: RunningOverlay) -> None:
    async def run() -> None:
        async with connection(overlay) as d, d.subscribe(of("again")) as events:
            await d.publish_all(range(3), type="again", source="/b")
            async for event in events:
                if event.data == 1:
                    break
            assert await data_of(events, 2) == [1, 2]

    asyncio.run(run())


def test_subscriptions_of_one_process_do_not_mix_and_end_with_it(overlay: RunningOverlay) -> None:
    async def run() -> None:
        async with connection(overlay) as d:
            loops = [d.subscribe(of(kind)) for kind in ("left", "right")]
            for loop in loops:
                await loop.__aenter__()
            await asyncio.gather(
                d.publish_all(range(50), type="left", source="/l"),
                d.publish_all(range(50, 100), type="right", source="/r"),
            )
            found = await asyncio.gather(*(data_of(loop, 50) for loop in loops))
            assert found == [list(range(50)), list(range(50, 100))]
            assert len(await d.subscriptions()) == 2
        async with connection(overlay) as d:
            assert await d.subscriptions() == []
            late = asyncio.create_task(d.publish(0, type="late"))
            await asyncio.sleep(0)
        await asyncio.wait([late])
        with pytest.raises(LocalMisuse, match="not open"):
            await d.publish(1, type="late")
        # It was stored in time, or somebody is told that it was not.
        assert late.exception() is None or isinstance(late.exception(), LocalMisuse)

    asyncio.run(run())


def test_a_slow_body_holds_little_and_loses_nothing(overlay: RunningOverlay) -> None:
    async def run() -> None:
        async with (
            connection(overlay) as d,
            d.subscribe(of("slow")) as slow,
            d.subscribe(of("slow")) as fast,
        ):
            given = [f"{n:04d}" + "x" * 20_000 for n in range(300)]
            publishing = asyncio.create_task(d.publish_all(given, type="slow", source="/s"))
            async with asyncio.timeout(SOME_S):
                async for event in slow:
                    assert event.number == 1
                    # Meanwhile everybody else goes on.
                    found = await data_of(fast, 300)
                    break
            assert await publishing == 300
            assert found == [text.encode() for text in given]
            assert slow._queue.qsize() <= 16
            assert await data_of(slow, 300) == found

    asyncio.run(run())


def test_a_newer_reader_takes_over_and_the_older_is_told(overlay: RunningOverlay) -> None:
    async def run() -> None:
        async with connection(overlay) as one, connection(overlay) as two:
            async with one.subscribe(of("taken"), keep=True) as first:
                await one.publish(1, type="taken", source="/t")
                assert await data_of(first, 1) == [1]
                await eventually(lambda: first._progress.told == 1)
                async with two.subscribe(id=first.id) as second:
                    with pytest.raises(SubscriptionTaken, match="newer connection"):
                        await data_of(first, 1)
                    await two.publish(2, type="taken", source="/t")
                    assert await data_of(second, 1) == [2]
            await two.unsubscribe(first.id)

    asyncio.run(run())


def test_a_large_file_goes_from_disk_to_disk(overlay: RunningOverlay, tmp_path: Path) -> None:
    given = tmp_path / "large.bin"
    given.write_bytes(random.Random(1).randbytes(24 * 2**20))

    async def run() -> Path:
        url = overlay.line["gateway"]
        async with (
            cutting_proxy(url, seed=3) as proxy,
            connection(overlay, proxy.url) as d,
            d.subscribe(of("large")) as events,
        ):
            # Twice in the middle of the file, on its way there and on its way back.
            proxy.bytes_max = 40 * 2**20
            await d.publish(given, type="large", source="/l")
            async with asyncio.timeout(SOME_S):
                async for event in events:
                    assert event.data is None
                    assert event.size_bytes == 24 * 2**20
                    with pytest.raises(BadInput, match=r"save\(\) writes any size"):
                        await event.read(bytes_max=2**20)
                    return await event.save(tmp_path)
        raise AssertionError

    tracemalloc.start()
    saved = asyncio.run(run())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert saved.name == "large-2.bin"
    assert saved.read_bytes() == given.read_bytes()
    assert most < 8 * 2**20


def test_versions_of_a_stream_come_as_the_tolerance_asks(overlay: RunningOverlay) -> None:
    tolerance = {"value": "/price", "divergence": "absolute", "amount": 0.5}

    async def run() -> None:
        async with (
            connection(overlay) as d,
            d.subscribe(of("price"), tolerance=tolerance) as events,
        ):
            await d.announce("ACME", type="price", source="/market")
            prices = [10.0, 10.1, 10.2, 11.0]
            for number, price in enumerate(prices):
                version = {"price": price}
                said = {"subject": "ACME", "sequence": str(number)}
                await d.publish(version, type="price", source="/market", **said)
            found = []
            async with asyncio.timeout(SOME_S):
                async for event in events:
                    assert event.number is None
                    assert event.attributes["subject"] == "ACME"
                    found.append(event.data)
                    if event.data == {"price": 11.0}:
                        break
            # Before that there may be one more: the copy that was there when it came.
        assert len(found) <= 2

    asyncio.run(run())


HOSTILE = ["../../evil", "/etc/passwd", "CON", "..", "a\u202egpj.exe", "x" * 300, "-rf", ".profile"]


def test_names_of_strangers_stay_in_the_folder(overlay: RunningOverlay, tmp_path: Path) -> None:
    folder = tmp_path / "inner" / "folder"
    folder.mkdir(parents=True)

    async def run() -> list[Path]:
        async with connection(overlay) as d, d.subscribe(of("hostile")) as events:
            for subject in [*HOSTILE, *HOSTILE]:
                await d.publish(b"x", type="hostile", source="/h", subject=subject)
            saved = []
            async with asyncio.timeout(SOME_S):
                async for event in events:
                    saved.append(await event.save(folder))
                    if len(saved) == 2 * len(HOSTILE):
                        break
            return saved

    saved = asyncio.run(run())
    assert len(set(saved)) == len(saved)
    assert sorted(saved) == sorted(folder.iterdir())
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == set(saved)


def test_a_reference_to_elsewhere_is_not_followed(overlay: RunningOverlay) -> None:
    async def run() -> None:
        visitors: list[bytes] = []

        async def visited(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            visitors.append(await reader.read(1000))
            writer.close()

        server = await asyncio.start_server(visited, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        references = [f"http://127.0.0.1:{port}/content/{'0' * 64}", "../../subscriptions"]
        async with connection(overlay) as d, d.subscribe(of("elsewhere")) as events:
            for reference in references:
                await d.publish(type="elsewhere", source="/e", dataref=reference)
            count = 0
            async with asyncio.timeout(SOME_S):
                async for event in events:
                    assert event.attributes["dataref"] == references[count]
                    with pytest.raises(BadInput, match="not with this gateway"):
                        await event.read()
                    count += 1
                    if count == len(references):
                        break
        server.close()
        assert visitors == []

    asyncio.run(run())


def test_a_wrong_token_is_refused_at_once(overlay: RunningOverlay) -> None:
    async def run() -> None:
        url = overlay.line["gateway"]
        async with distributary.connect(url, "wrong", patience_s=math.inf) as d:
            for work in (d.publish(1, type="t"), d.subscriptions(), data_of(d.subscribe(), 1)):
                with pytest.raises(RequestRefused, match="token") as caught:
                    await work
                assert caught.value.status == 401
                assert "wrong" not in str(caught.value)

    asyncio.run(run())


def test_the_blocking_twin_works_beside_a_running_loop(
    overlay: RunningOverlay, tmp_path: Path
) -> None:
    def script() -> list[object]:
        with (
            distributary.connect_sync(overlay.line["gateway"], overlay.line["token"]) as d,
            d.subscribe(of("blocking")) as events,
        ):
            d.publish({"n": 0}, type="blocking", source="/b")
            assert d.publish_all(({"n": n} for n in range(1, 100)), type="blocking") == 99
            found: list[object] = []
            for event in events:
                found.append(event.data)
                if len(found) == 100:
                    assert event.read() == b'{"n":99}'
                    assert event.save(tmp_path).name.endswith(".json")
                    event.acknowledge()
                    break
            assert events.id in [one["id"] for one in d.subscriptions()]
            with pytest.raises(BadInput):
                d.publish(1)
            return found

    async def notebook() -> list[object]:
        return script()

    expected = [{"n": n} for n in range(100)]
    assert script() == expected
    assert asyncio.run(notebook()) == expected
