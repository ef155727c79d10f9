"""TLS: brokers and clients speak it when they are told to, and nothing else then."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.certificates import Authority
from tests.live.brokers import Brokers, started_brokers
from tests.live.overlays import eventually
from tests.live.traffic import Traffic

from distributary.network.connection import NatsConnection, Server

pytestmark = pytest.mark.slow

NAMES = ("0a00", "fc00")


def test_brokers_and_clients_speak_tls_and_believe_one_authority(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    authority, other = Authority(tmp_path / "one"), Authority(tmp_path / "other")

    async def run(brokers: Brokers) -> None:
        await asyncio.wait_for(brokers.wait(), 120)
        async with brokers.gate() as gate:
            traffic = Traffic(gate, NAMES)
            await traffic.subscribe(2)
            await traffic.publish("p", 20)
            await traffic.settled()
        known = brokers.server("operator")
        strangers = [
            Server(known.urls, known.user, known.password, other.certificate),
            Server(known.urls, known.user, known.password),
        ]
        for server in strangers:
            one = NatsConnection(server, name="stranger", inbox="_INBOX", handlers={})
            await eventually(lambda one=one: one.problem)  # type: ignore[misc]
            assert not one.connected
            assert "certificate" in one.problem.lower()
            await one.close()

    with started_brokers(tmp_path, NAMES, authority=authority) as brokers:
        asyncio.run(run(brokers))
        passwords = [brokers.server(name).password for name in (*NAMES, "gateway", "operator")]
    said = capfd.readouterr()
    assert not any(secret in said.out + said.err for secret in passwords)
