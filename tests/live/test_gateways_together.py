"""Several gateways of one overlay: whoever asks one of them finds what another has made."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import websockets
from tests.live.gateways import Http, Stream, event, problem
from tests.live.overlays import RunningOverlay, eventually, running_overlay, wait_until

from distributary.network.server import free_port

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningOverlay]:
    with running_overlay(tmp_path_factory.mktemp("together") / "state", brokers=2) as overlay:
        yield overlay


@pytest.fixture(scope="module")
def first(overlay: RunningOverlay) -> Iterator[Http]:
    with Http(overlay.line["gateway"], overlay.line["token"]) as http:
        yield http


def started(overlay: RunningOverlay, folder: Path, port: int) -> subprocess.Popen[str]:
    """Start a gateway by the command, which soon takes what it has written for arrived."""
    password = (overlay.state / "gateway" / "password").read_text()
    (folder / "gateway.toml").write_text(
        f'[gateway]\nbrokers = {json.dumps(overlay.brokers)}\noverlay = "up"\nport = {port}\n'
        f"acknowledged_s = 1.0\npublisher_idle_s = 1.0\n"
        f'[nats]\nurls = ["{overlay.line["nats"]}"]\nuser = "gateway"\n'
    )
    command = [sys.executable, "-m", "distributary", "gateway", "--config"]
    return subprocess.Popen(
        [*command, str(folder / "gateway.toml")],
        env={**os.environ, "DISTRIBUTARY_NATS_PASSWORD": password},
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def second(overlay: RunningOverlay, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Http]:
    port = free_port()
    process = started(overlay, tmp_path_factory.mktemp("second"), port)

    def is_ready() -> bool:
        try:
            return http.get("/ready").status_code == 200
        except httpx.TransportError:
            return False

    with Http(f"http://127.0.0.1:{port}", overlay.line["token"]) as http:
        wait_until(is_ready)
        yield http
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert "Traceback" not in said


def test_a_gateway_says_in_one_line_that_somebody_has_its_port(
    overlay: RunningOverlay, tmp_path: Path
) -> None:
    port = urlsplit(overlay.line["gateway"]).port
    assert port is not None
    process = started(overlay, tmp_path, port)
    _, said = process.communicate(timeout=120)
    assert process.returncode == os.EX_UNAVAILABLE, said
    assert "in use" in said
    assert "Traceback" not in said


def test_what_one_gateway_has_made_is_everybodys(first: Http, second: Http) -> None:
    name = first.subscribe({"types": ["shared"]})
    assert second.publish(event("/shared", 1, "shared")).status_code == 202
    assert first.publish(event("/shared", 2, "shared")).status_code == 202
    with second.events(name) as stream:
        assert sorted(one.event["id"] for one in stream.take(2)) == ["1", "2"]
    assert second.delete(f"/subscriptions/{name}").status_code == 204
    assert first.get(f"/subscriptions/{name}").status_code == 404


def test_a_connection_at_another_gateway_takes_over(first: Http, second: Http) -> None:
    name = first.subscribe({"types": ["over"]})
    first.publish(event("/over", 1, "over"))
    with first.events(name) as old:
        assert old.take(1)[0].id == "1"
        with second.events(name, last="1") as new:
            assert old.rest() == []
            with first.events(name, last=old.last) as again:
                assert again.response.status_code == 204
            # Whoever only looks does not disturb it either.
            for number in range(2, 6):
                assert first.get(f"/subscriptions/{name}").json()["last"] == number - 1
                first.publish(event("/over", number, "over"))
                assert new.take(1)[0].id == str(number)


def test_logging_out_at_one_gateway_ends_what_is_connected_at_another(
    first: Http, second: Http
) -> None:
    name = first.subscribe({"types": ["sessions"]})
    link = first.post("/login").json()["login"]
    with httpx.Client(base_url=first.url, timeout=60) as browser:
        browser.get(link)
        csrf = browser.get("/session").json()["csrf"]
        (secret,) = browser.cookies.values()
        # Browsers do not tell ports apart, so the cookie of each has its own name.
        cookie = {"cookie": f"distributary-{urlsplit(second.url).port}={secret}"}
        path = f"{second.url}/subscriptions/{name}/events"
        with browser.stream("GET", path, headers=cookie) as there:
            assert there.status_code == 200
            gone = browser.delete("/session", headers={"x-csrf-token": csrf})
            assert gone.status_code == 204
            assert Stream(there).rest() == []


def test_what_was_written_long_ago_counts_as_arrived(first: Http, second: Http) -> None:
    name = first.subscribe({"types": ["silent"]})
    first.publish([event("/silent", number, "silent") for number in range(5)])

    def acknowledged() -> int:
        found: int = first.get(f"/subscriptions/{name}").json()["acknowledged"]
        return found

    with second.events(name, query="?ack=explicit") as stream:
        stream.take(5)
        first.publish(event("/silent", 5, "silent"))
        stream.take(1)
    with first.events(name) as stream:
        assert [one.id for one in stream.take(6)] == ["1", "2", "3", "4", "5", "6"]
        assert acknowledged() == 0
    with second.events(name) as stream:
        stream.take(6)
        wait_until(lambda: acknowledged() == 6)


def publishers(http: Http) -> int:
    """How many tokens a gateway has something open for, to publish by."""
    (line,) = re.findall(r"^distributary_publishers (.*)$", http.get("/metrics").text, re.MULTILINE)
    return int(float(line))


def test_who_publishes_nothing_for_a_while_is_let_go_and_comes_back(
    first: Http, second: Http
) -> None:
    name = first.subscribe({"types": ["idle"]})
    for number in (1, 2):
        assert second.publish(event("/idle", number, "idle")).status_code == 202
        wait_until(lambda: publishers(second) == 0)
    made = first.post("/tokens", json={"name": "socket", "scopes": ["publish"]}).json()
    # Another gateway hears of it a moment later.
    wait_until(lambda: second.get("/session", token=made["token"]).status_code == 200)

    async def run() -> None:
        async with websockets.connect(
            f"{second.url.replace('http', 'ws', 1)}/publish",
            open_timeout=60,
            additional_headers={"authorization": f"Bearer {made['token']}"},
            subprotocols=[websockets.Subprotocol("cloudevents.json")],
        ) as socket:
            for number in (3, 4):
                await socket.send(json.dumps(event("/idle", number, "idle")))
                assert "accepted" in json.loads(await socket.recv())
                # Also who is connected, and says nothing.
                second.publish(event("/idle", number + 2, "idle"))
                await eventually(lambda: publishers(second) == 0)

    asyncio.run(run())
    with first.events(name) as stream:
        assert sorted(one.event["id"] for one in stream.take(6)) == list("123456")


def test_a_subscription_that_ends_by_itself_says_why(first: Http) -> None:
    name = first.subscribe({"types": ["bounded"], "config": {"queue_bytes": 2_000}})
    with first.events(name, query="?ack=explicit") as stream:
        first.publish(
            [event("/bounded", number, "bounded", data="x" * 500) for number in range(10)]
        )
        *_, last = stream.rest()
    assert last.kind == "ended"
    assert last.event["reason"] == "bytes"
    assert last.event["left"]["count"] > 0
    wait_until(lambda: first.get(f"/subscriptions/{name}").json()["state"] == "ended")
    with first.events(name) as stream:
        assert stream.response.status_code == 404
    assert first.delete(f"/subscriptions/{name}").status_code == 204


@pytest.mark.parametrize("asked", ["GET", "PUT", "PATCH"])
def test_one_that_has_ended_while_nobody_was_connected_stays_ended(
    first: Http, second: Http, asked: str
) -> None:
    """Nobody heard of it; to change it does not make it anew, with numbers from 1 on."""
    document = {"types": ["alone"], "config": {"queue_bytes": 2_000}}
    name = first.subscribe(document)
    path = f"/subscriptions/{name}"
    kept = second.subscribe({"types": ["alone"]})
    batch = [event("/alone", number, "alone", data="x" * 500) for number in range(10)]
    assert first.publish([{**one, "id": f"{asked}{one['id']}"} for one in batch]).status_code == 202
    wait_until(lambda: second.get(f"/subscriptions/{kept}").json()["last"] == 10)
    if asked != "GET":
        changed = second.request(asked, path, json={**document, "types": ["other"]})
        assert "bytes" in problem(changed, 409)
    told = second.get(path).json()
    assert (told["state"], told["reason"], told["types"]) == ("ended", "bytes", ["alone"])
    with first.events(name) as stream:
        assert stream.response.status_code == 404
    for one in (path, f"/subscriptions/{kept}"):
        assert second.delete(one).status_code == 204
