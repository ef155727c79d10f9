"""Content through real brokers: in the format that each device takes, byte for byte."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from PIL import Image
from tests.live.overlays import RunningOverlay, eventually, running_overlay

from distributary.broker.addresses import Blob
from distributary.broker.client import Delivery
from distributary.media.pool import Pool
from distributary.media.samples import map_pdf
from distributary.network.client import Client, ClientGate, Numbered
from distributary.network.requests import ContentReceived, NotGiven, PutChunk
from distributary.network.transfers import TransferFailed, ask, put_content

pytestmark = pytest.mark.slow

PDF = "application/pdf"


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningOverlay]:
    with running_overlay(tmp_path_factory.mktemp("live") / "state", brokers=4) as overlay:
        yield overlay


class Device:
    """A subscriber that takes one format."""

    def __init__(self, gate: ClientGate, home: str, name: str, accept: str, kind: str) -> None:
        self.got: list[Delivery] = []
        self.client: Client = gate.client(name, home, self._take)
        self.wish: dict[str, Any] = {
            "id": "w",
            "filters": [{"exact": {"type": kind}}],
            "profile": {"accept": [accept]},
        }

    def _take(self, message: Numbered) -> None:
        assert isinstance(message, Delivery), message
        self.got.append(message)

    async def content(self) -> bytes:
        await eventually(lambda: self.got)
        blob = self.got[0].blob
        assert blob is not None
        data = b"".join([chunk async for chunk in self.client.content(blob)])
        assert hashlib.sha256(data).hexdigest() == blob.digest
        self.client.acknowledge("w", self.got[0].number)
        return data


def event(number: int, kind: str, media_type: str) -> str:
    return json.dumps(
        {
            "specversion": "1.0",
            "id": str(number),
            "source": f"/{kind}",
            "type": kind,
            "datacontenttype": media_type,
        }
    )


def test_each_device_gets_its_own_format(overlay: RunningOverlay) -> None:
    pdf = map_pdf(pages=2)
    with Pool(1) as pool:
        text = pool.convert(pdf, PDF, "text/plain;charset=utf-8").content

    async def run() -> tuple[bytes, bytes, bytes, list[Delivery]]:
        async with overlay.gate() as gate:
            homes = overlay.brokers
            same = Device(gate, homes[0], "same", PDF, "map")
            words = Device(gate, homes[1], "words", "text/plain;charset=utf-8", "map")
            picture = Device(gate, homes[2], "picture", "image/jpeg;width=640", "map")
            nobody = Device(gate, homes[2], "nobody", PDF, "something else")
            everybody = (same, words, picture, nobody)
            await asyncio.gather(*(one.client.subscribe(one.wish) for one in everybody))
            publisher = gate.client("publisher", homes[3])
            await publisher.publish(event(1, "map", PDF), pdf, PDF)
            found = [await one.content() for one in (same, words, picture)]
            return found[0], found[1], found[2], nobody.got

    whole, words, picture, nothing = asyncio.run(run())
    assert whole == pdf
    assert words == text
    assert picture.startswith(b"\xff\xd8\xff")
    assert nothing == []


@pytest.mark.parametrize("stated", ["", ";width=800"])
def test_a_picture_of_any_size_is_converted(overlay: RunningOverlay, stated: str) -> None:
    """Nothing is enlarged, so the largest that can be made of it has the next smaller width."""
    drawn = io.BytesIO()
    Image.linear_gradient("L").resize((800, 600)).convert("RGB").save(drawn, "JPEG")
    kind, media_type = f"photo{stated}", f"image/jpeg{stated}"

    async def run() -> tuple[bytes, bytes, Delivery]:
        async with overlay.gate() as gate:
            homes = overlay.brokers
            same = Device(gate, homes[0], f"same-photo{stated}", "image/jpeg", kind)
            other = Device(gate, homes[1], f"other-photo{stated}", "image/png", kind)
            await asyncio.gather(*(one.client.subscribe(one.wish) for one in (same, other)))
            publisher = gate.client(f"camera{stated}", homes[3])
            await publisher.publish(event(1, kind, media_type), drawn.getvalue(), media_type)
            return await same.content(), await other.content(), other.got[0]

    original, made, delivery = asyncio.run(run())
    assert original == drawn.getvalue()
    with Image.open(io.BytesIO(made)) as picture:
        assert (picture.format, picture.width) == ("PNG", 640)
    told = json.loads(delivery.event)
    assert told["datacontenttype"] == "image/png;width=640"
    assert told["originaltype"] == media_type


def test_large_content_goes_in_chunks_and_waits_for_its_turn(overlay: RunningOverlay) -> None:
    """A small event behind a large one does not overtake it."""
    data = random.Random(3).randbytes(9_000_001)
    kind = "large"

    async def run() -> tuple[bytes, list[str]]:
        async with overlay.gate() as gate:
            taker = Device(gate, overlay.brokers[0], "taker", "application/octet-stream", kind)
            del taker.wish["profile"]
            await taker.client.subscribe(taker.wish)
            publisher = gate.client("giver", overlay.brokers[1])
            media_type = "application/octet-stream"
            await asyncio.gather(
                publisher.publish(event(1, kind, media_type), data, media_type),
                publisher.publish(event(2, kind, media_type), data[:10], media_type),
            )
            content = await taker.content()
            await eventually(lambda: len(taker.got) == 2)
            return content, [json.loads(one.event)["id"] for one in taker.got]

    content, ids = asyncio.run(run())
    assert content == data
    assert ids == ["1", "2"]


def test_content_arrives_although_whoever_has_it_is_killed(overlay: RunningOverlay) -> None:
    data = random.Random(5).randbytes(30_000_000)
    kind, media_type = "killed", "application/octet-stream"

    async def run() -> bytes:
        async with overlay.gate() as gate:
            taker = Device(gate, overlay.brokers[2], "patient", media_type, kind)
            del taker.wish["profile"]
            await taker.client.subscribe(taker.wish)
            publisher = gate.client("unlucky", overlay.brokers[3])
            await publisher.publish(event(1, kind, media_type), data, media_type)
            await asyncio.to_thread(overlay.kill, overlay.brokers[3])
            return await taker.content()

    assert asyncio.run(run()) == data


def test_a_put_goes_on_where_it_was_and_tells_nobody_else(overlay: RunningOverlay) -> None:
    data = random.Random(4).randbytes(1_300_000)
    blob = Blob.of("a/b", data)
    home = overlay.brokers[0]

    async def run() -> None:
        async with overlay.gate() as gate:
            subject = overlay.subjects.to_host(home, "gateway")

            def read(offset: int, count: int) -> bytes:
                return data[offset : offset + count]

            async def put(client: str, offset: int, part: bytes) -> object:
                message = PutChunk(client, "a/b", blob.digest, len(data), offset, part)
                return await ask(gate.connection, subject, message)

            assert await put("@gateway/a", 0, data[:400_000]) == ContentReceived(400_000)
            assert await put("@gateway/a", 0, data[:400_000]) == ContentReceived(400_000)
            assert await put("@gateway/a", 900_000, data[900_000:]) == ContentReceived(400_000)
            assert await put("@gateway/b", 0, b"") == ContentReceived(0)
            assert isinstance(await put("@other/b", 0, b""), NotGiven)
            await put_content(gate.connection, subject, "@gateway/a", blob, read)
            # Known or not, everybody's bytes are taken.
            assert await put("@gateway/b", 0, b"") == ContentReceived(0)
            wrong = Blob("a/b", len(data), hashlib.sha256(b"else").hexdigest())
            with pytest.raises(TransferFailed, match="digest"):
                await put_content(gate.connection, subject, "@gateway/a", wrong, read)
            much = Blob("a/b", 10**10, wrong.digest)
            with pytest.raises(TransferFailed, match="at most"):
                await put_content(gate.connection, subject, "@gateway/a", much, read)
            client = gate.client("reader", home)
            with pytest.raises(TransferFailed, match="does not have it"):
                async for _ in client.content(wrong):
                    pass

    asyncio.run(run())
