"""Browsers at a gateway: how they come in, and what pages of others cannot have them do."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import websockets
from tests.live.gateways import WAIT_S, Http, Stream, event, problem
from tests.live.overlays import RunningOverlay, running_overlay, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningOverlay]:
    with running_overlay(tmp_path_factory.mktemp("browsers") / "state", brokers=1) as overlay:
        yield overlay
        said = overlay.log("gateway")
        assert "Traceback" not in said, said


@pytest.fixture(scope="module")
def http(overlay: RunningOverlay) -> Iterator[Http]:
    with Http(overlay.line["gateway"], overlay.line["token"]) as http:
        yield http


@pytest.fixture
def browser(http: Http) -> Iterator[httpx.Client]:
    """A browser that is logged in."""
    link = http.post("/login").json()["login"]
    with httpx.Client(base_url=http.url, timeout=WAIT_S) as client:
        assert client.get(link).status_code == 303
        yield client


def test_the_link_of_up_works_once_and_gives_a_cookie_that_scripts_do_not_see(
    overlay: RunningOverlay,
) -> None:
    link = overlay.line["login"]
    with httpx.Client(base_url=overlay.line["gateway"], timeout=WAIT_S) as client:
        # Looking at what is there does not use it up.
        assert client.head(link).status_code in (404, 405)
        first = client.get(link)
        assert first.status_code == 303
        assert first.headers["location"].startswith("/")
        name, *flags = first.headers["set-cookie"].split("; ")
        assert {flag.lower().partition("=")[0] for flag in flags} == {
            "httponly",
            "max-age",
            "path",
            "samesite",
        }
        assert "samesite=strict" in first.headers["set-cookie"].lower()
        assert client.get("/session").json()["name"] == "up"
        assert client.get("/").headers["location"] == first.headers["location"]
        assert client.get("/", follow_redirects=True).status_code == 200
        secret = name.partition("=")[2]
    with httpx.Client(base_url=overlay.line["gateway"], timeout=WAIT_S) as other:
        assert "used" in problem(other.get(link), 403)
        assert not other.cookies
        as_token = {"authorization": f"Bearer {secret}"}
        problem(other.get("/session", headers=as_token), 401)


def test_a_gateway_that_comes_back_does_not_take_the_link_again(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with (
        running_overlay(tmp_path_factory.mktemp("again") / "state", brokers=1) as overlay,
        httpx.Client(base_url=overlay.line["gateway"], timeout=WAIT_S) as client,
    ):
        assert client.get(overlay.line["login"]).status_code == 303
        overlay.kill("gateway")
        wait_until(lambda: _is_there(client))
        answer = client.get("/session")
        assert answer.status_code == 200, answer.text
        client.cookies.clear()
        problem(client.get(overlay.line["login"]), 403)


def _is_there(client: httpx.Client) -> bool:
    try:
        return client.get("/ready").status_code == 200
    except httpx.TransportError:
        return False


def test_what_changes_something_by_a_cookie_needs_what_only_our_pages_know(
    browser: httpx.Client, http: Http
) -> None:
    csrf = browser.get("/session").json()["csrf"]
    document = {"types": ["csrf"]}
    for headers in ({}, {"x-csrf-token": ""}, {"x-csrf-token": csrf[:-1]}, {"x-csrf-token": "é"}):
        sent = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
        for method, path in (
            ("POST", "/subscriptions"),
            ("POST", "/events"),
            ("POST", "/tokens"),
            ("DELETE", "/session"),
            ("PUT", "/subscriptions/x"),
            ("PATCH", "/subscriptions/x"),
        ):
            answer = browser.request(method, path, json=document, headers=sent)
            assert "X-CSRF-Token" in problem(answer, 403)
    form = browser.post("/subscriptions", data={"types": "csrf"})
    assert "X-CSRF-Token" in problem(form, 403)
    made = browser.post("/subscriptions", json=document, headers={"x-csrf-token": csrf})
    assert made.status_code == 201
    # It is the subscription of the token, and a token needs no such header.
    assert http.delete(made.headers["location"]).status_code == 204


def test_pages_of_others_get_nothing(browser: httpx.Client, http: Http) -> None:
    csrf = browser.get("/session").json()["csrf"]
    host = urlsplit(http.url).netloc
    port = host.rpartition(":")[2]
    for origin in (
        "http://evil.example",
        "null",
        f"https://{host}",
        f"http://{host}.evil.example",
        f"http://evil.example:{port}",
        "http://127.0.0.1:1",
        "file://",
        "",
    ):
        headers = {"origin": origin, "x-csrf-token": csrf}
        assert "Origin" in problem(browser.get("/session", headers=headers), 403)
        assert "Origin" in problem(browser.post("/subscriptions", json={}, headers=headers), 403)
        # Nor is another page told that it may ask.
        asked = {"origin": origin, "access-control-request-method": "POST"}
        refused = browser.request("OPTIONS", "/events", headers=asked)
        assert refused.status_code == 403
        assert not [name for name in refused.headers if name.startswith("access-control")]
    for site in ("cross-site", "same-site"):
        answer = browser.get("/subscriptions", headers={"sec-fetch-site": site})
        assert "Sec-Fetch-Site" in problem(answer, 403)
    ours = {"origin": http.url, "sec-fetch-site": "same-origin", "x-csrf-token": csrf}
    assert browser.get("/subscriptions", headers=ours).status_code == 200


def test_names_that_point_here_and_are_not_ours_are_refused(http: Http) -> None:
    """A page whose own name has been made to point here is of the same origin as we are."""
    port = urlsplit(http.url).port
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "a b"):
        for path in ("/health", "/session", "/login/x"):
            assert "Host" in problem(http.get(path, headers={"host": host}), 400)
    for host in (f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
        assert http.get("/session", headers={"host": host}).status_code == 200


def test_logging_out_ends_the_session_and_so_does_revoking_its_token(http: Http) -> None:
    made = http.post("/tokens", json={"name": "clicks", "scopes": ["subscribe"]}).json()
    for way in ("log out", "revoke"):
        link = http.post("/login", token=made["token"]).json()["login"]
        with httpx.Client(base_url=http.url, timeout=WAIT_S) as client:
            client.get(link)
            told = client.get("/session").json()
            assert (told["name"], told["scopes"]) == ("clicks", ["subscribe"])
            cookies = dict(client.cookies)
            if way == "log out":
                answer = client.delete("/session", headers={"x-csrf-token": told["csrf"]})
                assert "Max-Age=0" in answer.headers["set-cookie"]
            else:
                answer = http.delete("/tokens/clicks")
            assert answer.status_code == 204
            client.cookies.update(cookies)
            problem(client.get("/session"), 401)


def test_what_is_connected_by_a_session_ends_with_it_and_nothing_else_does(
    browser: httpx.Client, http: Http
) -> None:
    names = [http.subscribe({"types": ["ends"]}) for _ in range(3)]
    csrf = browser.get("/session").json()["csrf"]
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    url = f"{http.url.replace('http', 'ws', 1)}/subscriptions/{names[0]}/events"

    async def log_out() -> int | None:
        async with websockets.connect(
            url,
            open_timeout=WAIT_S,
            origin=http.url,  # type: ignore[arg-type]
            additional_headers={"cookie": cookie},
            subprotocols=["cloudevents.json"],  # type: ignore[list-item]
        ) as one:
            answer = await asyncio.to_thread(
                browser.delete, "/session", headers={"x-csrf-token": csrf}
            )
            assert answer.status_code == 204
            async with asyncio.timeout(60):
                await one.wait_closed()
            return one.close_code

    path = f"/subscriptions/{names[1]}/events"
    with browser.stream("GET", path, timeout=60) as mine, http.events(names[2]) as another:
        assert mine.status_code == 200
        assert asyncio.run(log_out()) == 1008
        assert Stream(mine).rest() == []
        assert http.publish(event("/ends", 1, "ends")).status_code == 202
        assert another.take(1)[0].event["id"] == "1"


def test_answers_tell_browsers_to_do_nothing_by_themselves(http: Http) -> None:
    for path in ("/health", "/subscriptions", "/nothing", "/openapi.json", "/login/x"):
        headers = http.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert not [name for name in headers if name.startswith("access-control")]
        assert "server" not in headers


def test_a_script_that_somebody_has_stored_is_for_saving_not_for_running(http: Http) -> None:
    for kind in ("text/html", "image/svg+xml", "application/xhtml+xml", "text/javascript"):
        data = f"<html><script>alert('{kind}')</script>".encode().ljust(70_000)
        path = f"/content/{hashlib.sha256(data).hexdigest()}"
        put = http.put(path, content=data, headers={"content-type": kind})
        assert put.status_code < 300, put.text
        for more in ({}, {"range": "bytes=0-99"}, {"sec-fetch-dest": "iframe"}):
            answer = http.get(path, headers=more)
            assert answer.status_code in (200, 206)
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["content-security-policy"] == "sandbox"
            assert answer.headers["content-disposition"].startswith("attachment")
            assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_a_web_socket_by_a_cookie_is_for_our_own_pages(browser: httpx.Client, http: Http) -> None:
    csrf = browser.get("/session").json()["csrf"]
    made = browser.post("/subscriptions", json={"types": ["x"]}, headers={"x-csrf-token": csrf})
    url = f"{http.url.replace('http', 'ws', 1)}{made.headers['location']}/events"
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())

    async def status(origin: str | None) -> int:
        try:
            async with websockets.connect(
                url,
                open_timeout=WAIT_S,
                origin=origin,  # type: ignore[arg-type]
                additional_headers={"cookie": cookie},
                subprotocols=["cloudevents.json"],  # type: ignore[list-item]
            ):
                return 101
        except websockets.InvalidStatus as error:
            return error.response.status_code

    tried = {
        origin: asyncio.run(status(origin)) for origin in (None, "http://evil.example", http.url)
    }
    assert tried == {None: 403, "http://evil.example": 403, http.url: 101}


def raw(url: str, request: bytes) -> tuple[int, dict[str, Any]]:
    """What comes back for some bytes."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    with socket.create_connection((parts.hostname, parts.port or 80), timeout=60) as one:
        one.sendall(request)
        with one.makefile("rb") as stream:
            answer = stream.read()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def test_what_two_could_read_differently_is_refused(http: Http) -> None:
    host = urlsplit(http.url).netloc.encode()
    token = b"authorization: Bearer " + http.token.encode()
    smuggled = b"GET /tokens HTTP/1.1\r\nhost: %b\r\n%b\r\n\r\n" % (host, token)
    begin = b"POST /events HTTP/1.1\r\nhost: %b\r\n%b\r\n" % (host, token)
    for more in (
        b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
        b"transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n" + smuggled,
        b"content-length: 0\r\ncontent-length: 44\r\n\r\n" + smuggled,
        b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n" + smuggled,
        b"transfer-encoding\t: chunked\r\n\r\n0\r\n\r\n" + smuggled,
        b"x: y\r\n transfer-encoding: chunked\r\n\r\n" + smuggled,
        b"host: evil.example\r\n\r\n",
        b"authorization: Bearer x\r\n\r\n",
        b"content-type: a/b\r\ncontent-type: application/cloudevents+json\r\n\r\n",
        b"x: " + b"a" * 100_000 + b"\r\n\r\n",
        b"x: a\r\n" * 1000 + b"\r\n",
    ):
        status, told = raw(http.url, begin + more)
        assert 400 <= status < 500, (more[:60], told)
        assert "tokens" not in told
    long = b"GET /events?%b HTTP/1.1\r\nhost: %b\r\n\r\n" % (b"a" * 9_000, host)
    assert raw(http.url, long)[0] == 414
