"""What a gateway is told by its configuration: limits of tenants, its names, pages that may ask."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import websockets
from tests.certificates import Authority
from tests.commands import check_one_line, run
from tests.live.gateways import WAIT_S, Http, event
from tests.live.overlays import RunningOverlay, running_overlay, wait_until

from distributary.network.server import free_port

pytestmark = pytest.mark.slow

EVENTS_PER_S = 4.0
FIRST = "0123456789abcdef" * 4
PAGE = "https://pages.example"


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningOverlay]:
    with running_overlay(tmp_path_factory.mktemp("limits") / "state", brokers=1) as overlay:
        yield overlay


@pytest.fixture(scope="module")
def http(overlay: RunningOverlay, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Http]:
    """A gateway with few of everything."""
    folder: Path = tmp_path_factory.mktemp("limited")
    port = free_port()
    (folder / "gateway.toml").write_text(
        f'[gateway]\nbrokers = {json.dumps(overlay.brokers)}\noverlay = "up"\nport = {port}\n'
        f'hosts = ["gateway.example"]\norigins = ["{PAGE}"]\ntoken_file = "token"\n'
        f"[limits]\nsubscriptions = 2\nstored_mib = 1\nevents_per_s = {EVENTS_PER_S}\n"
        f'[nats]\nurls = ["{overlay.line["nats"]}"]\nuser = "gateway"\n'
    )
    (folder / "token").write_text(f"{FIRST}\n")
    password = (overlay.state / "gateway" / "password").read_text()
    process = subprocess.Popen(
        [sys.executable, "-m", "distributary", "gateway", "--config", str(folder / "gateway.toml")],
        env={**os.environ, "DISTRIBUTARY_NATS_PASSWORD": password},
        stderr=subprocess.PIPE,
        text=True,
    )

    def is_ready() -> bool:
        try:
            return limited.get("/ready").status_code == 200
        except httpx.TransportError:
            return False

    with Http(f"http://127.0.0.1:{port}", overlay.line["token"]) as limited:
        wait_until(is_ready)
        yield limited
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert "Traceback" not in said


def made(http: Http, tenant: str) -> Http:
    asked = {"name": "t", "tenant": tenant, "scopes": ["publish", "subscribe"]}
    return Http(http.url, http.post("/tokens", json=asked).json()["token"])


def refused_by(answer: httpx.Response, name: str) -> int:
    assert answer.status_code == 429, answer.text
    assert name in answer.json()["detail"]
    return int(answer.headers["retry-after"])


def test_subscriptions_events_and_bytes_of_a_tenant_have_a_limit(http: Http) -> None:
    with made(http, "many") as many, made(http, "few") as few:
        names = [many.subscribe({"types": ["t"]}) for _ in range(2)]
        assert refused_by(many.post("/subscriptions", json={"types": ["t"]}), "subscriptions") > 0
        few.subscribe({"types": ["t"]})
        many.delete(f"/subscriptions/{names[0]}")
        wait_until(lambda: many.post("/subscriptions", json={"types": ["t"]}).status_code == 201)

        batch = [event("/many", number, "x") for number in range(6)]
        answer = many.publish(batch)
        assert answer.status_code == 202
        # Room comes back while a busy machine does something else.
        while answer.status_code == 202:
            answer = many.publish(batch)
        assert refused_by(answer, "events_per_s") in (1, 2)
        assert few.publish(event("/few", 1, "x")).status_code == 202

        wait_until(lambda: many.publish(event("/many", 10, "x")).status_code == 202)
        large = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/many", "ce-type": "x"}
        wait_until(
            lambda: (
                "stored_mib"
                in many.post("/events", content=bytes(2**20), headers={**large, "ce-id": "2"}).text
            )
        )
        assert few.publish(event("/few", 2, "x")).status_code == 202


def test_the_first_token_of_a_gateway_is_in_a_file(http: Http) -> None:
    told = http.get("/session", token=FIRST).json()
    assert (told["name"], told["tenant"]) == ("first", "")
    assert told["scopes"] == ["publish", "subscribe", "admin"]


def test_tokens_come_by_tls_or_from_here(overlay: RunningOverlay, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    files = authority.server()
    port = free_port()
    config = tmp_path / "gateway.toml"
    begin = (
        f'[gateway]\nbrokers = {json.dumps(overlay.brokers)}\noverlay = "up"\nport = {port}\n'
        'host = "0.0.0.0"\n'
    )
    nats = f'[nats]\nurls = ["{overlay.line["nats"]}"]\nuser = "gateway"\n'
    config.write_text(begin + nats)
    refused = run("gateway", "--config", str(config))
    check_one_line(refused.returncode, refused.stdout, refused.stderr, "clear text")
    secure = f'certificate = "{files["cert_file"]}"\nkey = "{files["key_file"]}"\n'
    config.write_text(begin + secure + nats)
    password = (overlay.state / "gateway" / "password").read_text()
    process = subprocess.Popen(
        [sys.executable, "-m", "distributary", "gateway", "--config", str(config)],
        env={**os.environ, "DISTRIBUTARY_NATS_PASSWORD": password},
    )
    try:
        context = ssl.create_default_context(cafile=authority.certificate)
        url = f"https://127.0.0.1:{port}"
        with httpx.Client(base_url=url, verify=context, timeout=WAIT_S) as client:

            def status() -> int | None:
                try:
                    return client.get("/ready").status_code
                except httpx.TransportError:
                    return None

            wait_until(lambda: status() == 200)
            link = client.post(
                "/login", headers={"authorization": f"Bearer {overlay.line['token']}"}
            ).json()["login"]
            assert "secure" in client.get(link).headers["set-cookie"].lower()
            ours = {"origin": f"https://127.0.0.1:{port}"}
            assert client.get("/session", headers=ours).status_code == 200
    finally:
        process.terminate()
        assert process.wait(60) == 0


def test_who_sends_many_in_a_row_is_slowed_and_keeps_their_order(http: Http) -> None:
    with made(http, "rows") as rows:
        name = rows.subscribe({"types": ["row"]})
        url = f"{rows.url.replace('http', 'ws', 1)}/publish"
        count = 14

        async def run() -> list[str]:
            async with websockets.connect(
                url,
                open_timeout=WAIT_S,
                additional_headers={"authorization": f"Bearer {rows.token}"},
                subprotocols=[websockets.Subprotocol("cloudevents.json")],
            ) as socket:
                for number in range(count):
                    await socket.send(json.dumps(event("/row", number, "row")))
                return [json.loads(await socket.recv())["accepted"]["id"] for _ in range(count)]

        began = time.monotonic()
        ids = [str(number) for number in range(count)]
        assert asyncio.run(run()) == ids
        # A second and a half of them may come at once.
        assert time.monotonic() - began >= count / EVENTS_PER_S - 1.6
        with rows.events(name) as stream:
            assert [one.event["id"] for one in stream.take(count)] == ids


def test_a_page_that_was_named_may_ask_with_a_token_and_never_with_the_cookie(http: Http) -> None:
    asked = {
        "origin": PAGE,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, ce-id",
    }
    preflight = http.request("OPTIONS", "/events", token="", headers=asked)
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == PAGE
    assert "POST" in preflight.headers["access-control-allow-methods"]
    assert preflight.headers["access-control-allow-headers"] == "authorization, ce-id"
    assert "access-control-allow-credentials" not in preflight.headers
    answer = http.get("/subscriptions", headers={"origin": PAGE})
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["vary"] == "origin"
    link = http.post("/login").json()["login"]
    with httpx.Client(base_url=http.url, timeout=WAIT_S) as browser:
        browser.get(link)
        assert browser.get("/session").status_code == 200
        refused = browser.get("/session", headers={"origin": PAGE})
        assert refused.status_code == 403
    other = http.get("/subscriptions", headers={"origin": "https://other.example"})
    assert other.status_code == 403
    assert "access-control-allow-origin" not in other.headers


def test_a_name_that_was_given_is_one_under_which_it_may_be_asked(http: Http) -> None:
    for host, status in {"gateway.example": 200, "GATEWAY.example": 200, "x.example": 400}.items():
        assert http.get("/session", headers={"host": host}).status_code == status
