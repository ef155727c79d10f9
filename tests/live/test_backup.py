"""`distributary backup` and `restore`: what was accepted comes back, and nobody forgets alone."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.live.gateways import Http, event
from tests.live.overlays import RunningOverlay, eventually, running_overlay, wait_until
from tests.live.traffic import Traffic

from distributary.broker.client import Delivery
from distributary.network.client import Numbered
from distributary.network.status import ask

pytestmark = pytest.mark.slow


def distributary(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "distributary", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_what_was_accepted_before_a_backup_under_load_comes_back(tmp_path: Path) -> None:
    """Journals from different moments would have lost something between them."""
    state, copy = tmp_path / "state", tmp_path / "copy"
    before: dict[str, int] = {}

    async def publish(overlay: RunningOverlay) -> None:
        async with overlay.gate() as gate:
            traffic = Traffic(gate, overlay.brokers)
            await traffic.subscribe(1)
            await traffic.subscribers["s0"].close()
            under_way = [asyncio.ensure_future(traffic.publish(f"p{k}", 200)) for k in range(3)]
            await eventually(lambda: sum(map(len, traffic.accepted.values())) > 60)
            before.update({source: len(got) for source, got in traffic.accepted.items()})
            told = await asyncio.to_thread(
                distributary, "backup", str(copy), "--state", str(overlay.state)
            )
            assert told.returncode == 0, told.stderr
            await asyncio.gather(*under_way)

    with running_overlay(state, brokers=3) as overlay:
        asyncio.run(publish(overlay))
        pids = overlay.pids()
        started = {**overlay.line["brokers"], "nats": overlay.line["server"]}
        assert {name: pids[name] for name in started} == started
        names = overlay.brokers
        again = distributary("backup", str(copy), "--state", str(state))
        assert again.returncode == 2
        assert "is there already" in again.stderr
        busy = distributary("restore", str(copy), "--state", str(state))
        assert busy.returncode == 2
        assert "is in use" in busy.stderr
    assert not (state / "snapshot").exists()
    well = distributary("restore", str(copy), "--state", str(state))
    assert well.returncode == 2
    assert "--fresh" in well.stderr
    told = distributary("restore", str(copy), "--state", str(state), "--fresh")
    assert told.returncode == 0, told.stderr

    async def read(overlay: RunningOverlay) -> None:
        async with overlay.gate() as gate:
            got: list[tuple[str, int]] = []

            def deliver(message: Numbered) -> None:
                assert isinstance(message, Delivery)
                read = json.loads(message.event)
                got.append((read["source"], int(read["id"])))
                subscriber.acknowledge(message.subscription, message.number)

            subscriber = gate.client("s0", overlay.brokers[0], deliver)
            await subscriber.status("all")
            await eventually(
                lambda: all(
                    sum(one == source for one, _ in got) >= count
                    for source, count in before.items()
                ),
                progress=lambda: len(got),
            )
            for source in before:
                mine = [number for one, number in got if one == source]
                assert mine == list(range(len(mine)))

    with running_overlay(state, brokers=3) as overlay:
        assert overlay.brokers == names
        asyncio.run(read(overlay))


def test_a_broker_that_has_forgotten_alone_gets_a_new_identifier(tmp_path: Path) -> None:
    state, copy = tmp_path / "state", tmp_path / "copy"
    with running_overlay(state, brokers=3) as overlay:
        names = overlay.brokers
    assert distributary("backup", str(copy), "--state", str(state)).returncode == 0
    shutil.rmtree(state / "brokers" / names[0])
    told = distributary("restore", str(copy), "--state", str(state))
    assert told.returncode == 0, told.stderr
    assert names[0] in told.stdout

    async def run(overlay: RunningOverlay) -> None:
        server = overlay.server("operator")
        counts: list[int] = []
        while counts != [3, 3, 3]:
            asked = await ask(overlay.subjects, server, "operator", overlay.brokers)
            counts = [one.get("members_up", 0) if one else 0 for one in asked.values()]
        async with overlay.gate() as gate:
            traffic = Traffic(gate, overlay.brokers)
            await traffic.subscribe(3)
            await traffic.publish("p", 20)
            await traffic.settled()

    with running_overlay(state, brokers=3) as overlay:
        assert overlay.brokers[:2] == names[1:]
        assert overlay.brokers[2] not in names
        asyncio.run(asyncio.wait_for(run(overlay), 120))


@pytest.mark.parametrize("runs", [True, False], ids=["running", "at rest"])
def test_tokens_work_and_subscriptions_go_on_where_there_was_nothing(
    tmp_path: Path, runs: bool
) -> None:
    copy, there = tmp_path / "copy", tmp_path / "there"
    with running_overlay(tmp_path / "here", brokers=2) as overlay:
        with Http(overlay.line["gateway"], overlay.line["token"]) as admin:
            made = {"name": "kept", "scopes": ["publish", "subscribe"], "tenant": "north"}
            token = admin.post("/tokens", json=made).json()["token"]
        with Http(overlay.line["gateway"], token) as http:
            name = http.subscribe({"types": ["kept"]})
            http.publish([event("/kept", number, "kept") for number in range(1, 5)])
            wait_until(lambda: http.get(f"/subscriptions/{name}").json().get("last") == 4)
            assert http.post(f"/subscriptions/{name}/acks", json={"up_to": 2}).status_code == 204
            wait_until(lambda: http.get(f"/subscriptions/{name}").json()["acknowledged"] == 2)
            if runs:
                told = distributary("backup", str(copy), "--state", str(overlay.state))
                assert told.returncode == 0, told.stderr
            # It goes on here.
            assert http.publish(event("/kept", 5, "kept")).status_code == 202
        state = overlay.state
    if not runs:
        told = distributary("backup", str(copy), "--state", str(state))
        assert told.returncode == 0, told.stderr
    # Nothing of what is here is needed.
    state.rename(tmp_path / "gone")
    told = distributary("restore", str(copy), "--state", str(there))
    assert told.returncode == 0, told.stderr
    with running_overlay(there, brokers=2) as overlay, Http(overlay.line["gateway"], token) as http:
        first = 5 if runs else 6
        assert http.publish(event("/kept", first, "kept")).status_code == 202
        with http.events(name) as stream:
            got = [(one.id, one.event["id"]) for one in stream.take(first - 2)]
        assert got == [(str(number), str(number)) for number in range(3, first + 1)]
        assert [one["id"] for one in http.get("/subscriptions").json()] == [name]


def test_what_is_no_whole_backup_is_not_brought_back(tmp_path: Path) -> None:
    state, copy = tmp_path / "state", tmp_path / "copy"
    with running_overlay(state, brokers=1) as overlay:
        (name,) = overlay.brokers
    nothing = distributary("backup", str(copy), "--state", str(tmp_path / "nowhere"))
    assert nothing.returncode == 2
    assert "has no overlay" in nothing.stderr
    assert distributary("backup", str(copy), "--state", str(state)).returncode == 0
    journal = copy / "brokers" / name / "journal.db"
    data = bytearray(journal.read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    whole = journal.read_bytes()
    journal.write_bytes(data)
    other = tmp_path / "other"
    broken = distributary("restore", str(copy), "--state", str(other))
    assert broken.returncode == 2
    assert not (other / "overlay.json").exists()
    journal.write_bytes(whole)
    shared = max((copy / "nats").rglob("*.blk"), key=lambda path: path.stat().st_size)
    kept = shared.read_bytes()
    shared.write_bytes(kept[:-1])
    half = distributary("restore", str(copy), "--state", str(other))
    assert half.returncode == 2
    assert "is not what was copied" in half.stderr
    shared.write_bytes(kept)
    (copy / "backup.json").unlink()
    half = distributary("restore", str(copy), "--state", str(other))
    assert half.returncode == 2
    assert "is no whole backup" in half.stderr
