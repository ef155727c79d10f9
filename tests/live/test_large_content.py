"""Large content over three hops: every byte of it, while no broker needs much memory."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import av
import numpy as np
import pytest
from benchmarks.live.brokers import Chain, running_chain, three_hops
from benchmarks.live.server import running_server
from tests.live.overlays import eventually
from tests.video_files import look_at

from distributary.broker.client import Delivery
from distributary.network.client import Client, Numbered

pytestmark = [pytest.mark.slow, pytest.mark.full]

MEMORY_BYTES_MAX = 300 * 2**20
MP4 = "video/mp4;width=640;bitrate=1000k"
LIMITS = "[settings.content]\ncontent_bytes_max = 629145600\n[converters]\nseconds = 600.0\n"


class Device:
    """A subscriber that takes one format, or any."""

    def __init__(self, chain: Chain, home: str, name: str, accept: str | None) -> None:
        self.got: list[Delivery] = []
        self.client: Client = chain.gate.client(name, home, self._take)
        self.wish = {"id": "w", "filters": [{"exact": {"type": "load"}}]}
        if accept is not None:
            self.wish["profile"] = {"accept": [accept]}  # type: ignore[assignment]

    def _take(self, message: Numbered) -> None:
        assert isinstance(message, Delivery), message
        self.got.append(message)

    async def save(self, path: Path) -> str:
        """Write what has come to a file; return its digest."""
        await eventually(lambda: self.got, 600)
        blob = self.got[0].blob
        assert blob is not None
        digest = hashlib.sha256()
        with path.open("wb") as file:
            async for chunk in self.client.content(blob):
                file.write(chunk)
                digest.update(chunk)
        assert digest.hexdigest() == blob.digest
        self.client.acknowledge("w", self.got[0].number)
        return blob.digest


def noise(size: int) -> bytes:
    """A video of at least so many bytes: nothing packs what is random."""
    rng = np.random.default_rng(1)
    file = BytesIO()
    with av.open(file, "w", format="mp4") as made:
        stream = made.add_stream("libx264", rate=25, options={"qp": "12"})
        stream.width, stream.height, stream.pix_fmt = 640, 360, "yuv420p"
        while file.tell() < size:
            picture = rng.integers(0, 256, (360, 640, 3), dtype=np.uint8)
            made.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        made.mux(stream.encode(None))
    return file.getvalue()


def publication(media_type: str) -> str:
    document = {"specversion": "1.0", "id": "1", "source": "/large", "type": "load"}
    return json.dumps({**document, "datacontenttype": media_type})


async def deliver(
    folder: Path, content: bytes, media_type: str, wanted: Sequence[tuple[int, str | None]]
) -> list[Path]:
    """Publish content at one end; return what devices at places of the way have got."""
    way = three_hops()
    with running_server(folder / "nats", streams=False) as url:
        async with running_chain(folder, url, way, graph="video", settings=LIMITS) as chain:
            devices = [
                Device(chain, way[place], f"d{number}", accept)
                for number, (place, accept) in enumerate(wanted)
            ]
            for device in devices:
                await device.client.subscribe(device.wish)
            publisher = chain.gate.client("giver", way[0])
            await publisher.publish(publication(media_type), content, media_type)
            files = [folder / f"d{number}" for number in range(len(devices))]
            for device, file in zip(devices, files, strict=True):
                await device.save(file)
            for pid in await chain.told("pid"):
                assert peak_bytes(int(pid)) < MEMORY_BYTES_MAX
    return files


def peak_bytes(pid: int) -> int:
    """The most memory that a process has had so far."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def test_a_video_of_20_mb_is_converted_twice_over_three_hops(tmp_path: Path) -> None:
    video = noise(20_000_000)
    assert len(video) > 20_000_000
    wanted = [
        (3, "video/x-flv;width=320;bitrate=200k"),
        (2, "video/3gpp;width=176;bitrate=80k"),
        (3, MP4),
    ]
    small, tiny, same = asyncio.run(deliver(tmp_path, video, MP4, wanted))
    assert same.read_bytes() == video
    assert look_at(small.read_bytes()).size[0] == 320
    assert look_at(tiny.read_bytes()).size[0] == 176


def test_a_file_of_500_mb_needs_little_memory(tmp_path: Path) -> None:
    content = np.random.default_rng(2).bytes(500_000_000)
    (file,) = asyncio.run(deliver(tmp_path, content, "application/octet-stream", [(3, None)]))
    assert file.stat().st_size == len(content)
    with file.open("rb") as written:
        digest = hashlib.file_digest(written, "sha256").hexdigest()
    assert digest == hashlib.sha256(content).hexdigest()
