"""A gateway at a NATS server that is there: what gateways share is made by an operator, once."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.commands import check_one_line, run
from tests.live.brokers import Brokers, started_brokers
from tests.live.gateways import Http, event, problem
from tests.live.overlays import wait_until

from distributary.network.gateway.problems import of
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


@contextmanager
def served(command: tuple[str, ...], port: int) -> Iterator[Http]:
    """Run a gateway, and ask it when it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", "distributary", *command], stderr=subprocess.PIPE, text=True
    )

    def is_ready() -> bool:
        assert process.poll() is None
        try:
            return http.get("/ready").status_code == 200
        except httpx.TransportError:
            return False

    try:
        with Http(f"http://127.0.0.1:{port}", FIRST) as http:
            wait_until(is_ready, PATIENCE_S)
            yield http
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said


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
        with served(command, port) as http:
            name = http.subscribe({"types": ["made"]})
            assert http.publish(event("/made", 1, "made")).status_code == 202
            with http.events(name) as stream:
                assert stream.take(1)[0].event["id"] == "1"
            # To prepare it again takes nothing away.
            assert prepared(brokers, "operator").returncode == 0
            assert http.get(f"/subscriptions/{name}").status_code == 200


def test_what_cannot_be_stored_is_refused_with_the_reason_until_there_is_room(
    tmp_path: Path,
) -> None:
    with started_brokers(tmp_path, ["0a00"], store=tmp_path / "jetstream") as brokers:
        assert prepared(brokers, "operator").returncode == 0
        port = free_port()
        with served(configured(brokers, "gateway", port=port), port) as http:
            name = http.subscribe({"types": ["stored"]})
            brokers.kill("0a00")
            # As if no disk had as much room as there has to be.
            brokers.start("0a00", DISTRIBUTARY_BROKER_ROOM_MIB="1000000000")

            def is_low() -> bool:
                told = http.get("/brokers").json()["brokers"]["0a00"]
                return told is not None and told["room_low"]

            wait_until(is_low, PATIENCE_S)
            data = b"large" * 50_000
            large = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "stored"}

            def ask_all() -> list[httpx.Response]:
                return [
                    http.put(f"/content/{hashlib.sha256(data).hexdigest()}", content=data),
                    http.post("/events", content=data, headers=large),
                    http.publish(event("/s", 2, "stored")),
                    http.publish(event("/s", 2, "stored")),
                ]

            for refused in ask_all():
                assert refused.status_code in (429, 503)
                assert "disk" in problem(refused, refused.status_code)
                assert int(refused.headers["retry-after"]) >= 1
            brokers.kill("0a00")
            brokers.start("0a00")
            wait_until(lambda: not is_low() and http.get("/ready").status_code == 200, PATIENCE_S)

            def is_taken() -> bool:
                return {one.status_code for one in ask_all()} == {201, 202}

            wait_until(is_taken, PATIENCE_S)
            with http.events(name) as stream:
                assert [one.event["id"] for one in stream.take(2)] == ["1", "2"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_gateway_says_that_its_own_disk_is_full(number: int) -> None:
    told = of(OSError(number, "no room"))
    assert (told.status, told.retry_s) == (503, 1.0)
    assert "disk of the gateway is full" in told.detail


def test_a_server_without_a_store_is_named(tmp_path: Path) -> None:
    with started_brokers(tmp_path, []) as brokers:
        refused = prepared(brokers, "operator")
        check_one_line(refused.returncode, refused.stdout, refused.stderr, "JetStream")
