"""`distributary broker`: one process each, against a NATS server that is there."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.live.overlays import eventually, running_overlay
from tests.live.traffic import Traffic
from tests.nats_server import NatsServer

from distributary.network.client import ClientGate
from distributary.network.connection import Server
from distributary.network.server import users_of
from distributary.network.status import ask
from distributary.network.subjects import Subjects

pytestmark = pytest.mark.slow

FOUNDERS, LATER = ("0a00", "5b00"), "fc00"
SUBJECTS = Subjects("east")


@contextmanager
def broker(folder: Path, url: str, name: str, password: str) -> Iterator[subprocess.Popen[bytes]]:
    """A broker that is stopped in good order."""
    joins = f"members = {[*FOUNDERS]}" if name in FOUNDERS else f'contact = "{FOUNDERS[0]}"'
    path = folder / f"{name}.toml"
    path.write_text(
        f'[broker]\nidentity = "{name}"\noverlay = "east"\nstate = "{name}"\n{joins}\n'
        f'graph = "none"\n[nats]\nurls = ["{url}"]\nuser = "{name}"\n'
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "distributary", "broker", "--config", str(path)],
        env={**os.environ, "DISTRIBUTARY_NATS_PASSWORD": password},
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


async def up_at(server: Server, names: Sequence[str]) -> list[int]:
    """How many members each broker counts as there; 0 of one that does not answer."""
    told = await ask(SUBJECTS, server, "operator", names)
    return [0 if one is None else one.get("members_up", 0) for one in told.values()]


async def wait_for(server: Server, names: Sequence[str]) -> None:
    while await up_at(server, names) != [len(names)] * len(names):
        await asyncio.sleep(0.1)


def test_brokers_find_each_other_and_one_that_comes_later(tmp_path: Path) -> None:
    names = [*FOUNDERS, LATER]
    users = users_of(SUBJECTS, names, gateways=["gateway"], operators=["operator"])
    nats = NatsServer(tmp_path, users.values())
    server = Server((nats.url,), "operator", users["operator"].password)

    async def run() -> None:
        await asyncio.wait_for(wait_for(server, FOUNDERS), 60)
        gate = ClientGate(
            SUBJECTS, Server((nats.url,), "gateway", users["gateway"].password), "gateway"
        )
        await gate.connection.wait()
        traffic = Traffic(gate, names)
        with broker(tmp_path, nats.url, LATER, users[LATER].password):
            await asyncio.wait_for(wait_for(server, names), 60)
            await traffic.subscribe(3)
            await asyncio.gather(*(traffic.publish(f"p{k}", 20) for k in range(3)))
            await traffic.settled()
            await gate.close()

    try:
        one, other = (broker(tmp_path, nats.url, name, users[name].password) for name in FOUNDERS)
        with one, other:
            asyncio.run(run())
    finally:
        nats.kill()


def test_an_overlay_grows(tmp_path: Path) -> None:
    with running_overlay(tmp_path / "state", brokers=1) as overlay:
        first = overlay.brokers

    async def run() -> None:
        with running_overlay(tmp_path / "state", brokers=3) as overlay:
            assert overlay.brokers[:1] == first
            server = overlay.server("operator")
            counts: list[int] = []

            async def look() -> None:
                while counts != [3, 3, 3]:
                    told = await ask(overlay.subjects, server, "operator", overlay.brokers)
                    counts[:] = [one["members_up"] if one else 0 for one in told.values()]

            await asyncio.wait_for(look(), 60)
            async with overlay.gate() as gate:
                traffic = Traffic(gate, overlay.brokers)
                await traffic.subscribe(3)
                await traffic.publish("p", 20)
                await eventually(lambda: len(traffic.received["s2"]) == 20)
                await traffic.settled()

    asyncio.run(run())


def test_a_configuration_that_cannot_be_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "broker.toml"
    path.write_text('[broker]\nidentity = "zz"\n')
    command = [sys.executable, "-m", "distributary", "broker", "--config", str(path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert "'zz'" in line


def test_a_journal_of_somebody_else_stops_a_broker_for_good(tmp_path: Path) -> None:
    with running_overlay(tmp_path / "state", brokers=1) as overlay:
        (name,) = overlay.brokers
    journal = tmp_path / "state" / "brokers" / name / "journal.db"
    journal.write_bytes(b"nothing of the kind" * 1000)
    command = [sys.executable, "-m", "distributary", "up", "--json", "--brokers", "1"]
    result = subprocess.run(
        [*command, "--state", str(tmp_path / "state")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert f"{name} cannot start" in result.stderr
    assert "journal of broker" in (tmp_path / "state" / "logs" / f"{name}.log").read_text()
