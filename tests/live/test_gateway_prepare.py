"""A gateway at a NATS server that is there: what gateways share is made by an operator, once."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.commands import check_one_line, run
from tests.live.brokers import Brokers, started_brokers
from tests.live.gateways import Http, event
from tests.live.overlays import wait_until

from distributary.network.server import free_port

pytestmark = pytest.mark.slow

PATIENCE_S = 300.0
FIRST = "0123456789abcdef" * 4


def configured(
    brokers: Brokers, user: str, *, port: int = 8480, password: str | None = None
) -> tuple[str, ...]:
    """The command of a gateway, or of an operator, that is let in under a name."""
    path = brokers.folder / f"{user}-{port}.toml"
    secret = brokers.server(user).password if password is None else password
    (brokers.folder / f"{user}-password").write_text(secret)
    (brokers.folder / "token").write_text(FIRST)
    path.write_text(
        f'[gateway]\nbrokers = {[*brokers.names] or ["0a00"]}\noverlay = "east"\nport = {port}\n'
        f'state = "gateway"\ntoken_file = "token"\n'
        f'[nats]\nurls = ["{brokers.nats.url}"]\nuser = "{user}"\n'
        f'password_file = "{user}-password"\n'
    )
    return "gateway", "--config", str(path)


def prepared(
    brokers: Brokers, user: str, password: str | None = None
) -> subprocess.CompletedProcess[str]:
    return run(*configured(brokers, user, password=password), "--prepare")


def test_two_commands_give_an_overlay_its_gateway(tmp_path: Path) -> None:
    with started_brokers(tmp_path, ["0a00"], store=tmp_path / "jetstream") as brokers:
        asyncio.run(asyncio.wait_for(brokers.wait(), PATIENCE_S))
        port = free_port()
        command = configured(brokers, "gateway", port=port)
        early = run(*command)
        assert early.returncode != 0
        assert "--prepare" in early.stderr
        assert "Traceback" not in early.stderr
        # Who is no operator may not, and nobody else's word changes that.
        for user, password in (("gateway", None), ("operator", "wrong")):
            refused = prepared(brokers, user, password)
            check_one_line(
                refused.returncode, refused.stdout, refused.stderr, "what gateways share"
            )
        for _ in range(2):
            told = prepared(brokers, "operator")
            assert (told.returncode, told.stdout) == (0, ""), told.stderr
        process = subprocess.Popen(
            [sys.executable, "-m", "distributary", *command],
            stderr=subprocess.PIPE,
            text=True,
        )

        def is_ready() -> bool:
            assert process.poll() is None
            try:
                return http.get("/ready").status_code == 200
            except httpx.TransportError:
                return False

        with Http(f"http://127.0.0.1:{port}", FIRST) as http:
            wait_until(is_ready, PATIENCE_S)
            name = http.subscribe({"types": ["made"]})
            assert http.publish(event("/made", 1, "made")).status_code == 202
            with http.events(name) as stream:
                assert stream.take(1)[0].event["id"] == "1"
            # To prepare it again takes nothing away.
            assert prepared(brokers, "operator").returncode == 0
            assert http.get(f"/subscriptions/{name}").status_code == 200
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said


def test_a_server_without_a_store_is_named(tmp_path: Path) -> None:
    with started_brokers(tmp_path, []) as brokers:
        refused = prepared(brokers, "operator")
        check_one_line(refused.returncode, refused.stdout, refused.stderr, "JetStream")
