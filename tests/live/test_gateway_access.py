"""Who may do what at a gateway: tokens, scopes and tenants, and what each of them is refused."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import json
import secrets
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import websockets
from tests.live.gateways import WAIT_S, Http, event, problem
from tests.live.overlays import RunningOverlay, running_overlay, wait_until

pytestmark = pytest.mark.slow

numbers = itertools.count()


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningOverlay]:
    with running_overlay(tmp_path_factory.mktemp("access") / "state", brokers=2) as overlay:
        yield overlay
        said = overlay.log("gateway")
        assert "Traceback" not in said, said
        assert "something is wrong with the gateway itself" not in said


@pytest.fixture(scope="module")
def admin(overlay: RunningOverlay) -> Iterator[Http]:
    with Http(overlay.line["gateway"], overlay.line["token"]) as http:
        yield http


def made(admin: Http, *scopes: str, **more: Any) -> Http:
    """Somebody with a new token."""
    answer = admin.post(
        "/tokens", json={"name": f"t{next(numbers)}", "scopes": list(scopes), **more}
    )
    assert answer.status_code == 201, answer.text
    return Http(admin.url, answer.json()["token"])


def named(http: Http) -> str:
    name: str = http.get("/session").json()["name"]
    return name


def operations(admin: Http) -> list[tuple[str, str]]:
    """All that needs a token, as the document of the interface has it, with names filled in."""
    paths = admin.get("/openapi.json").json()["paths"]
    public = ("/health", "/ready", "/login/{link}")
    return [
        (method.upper(), path.replace("{", "").replace("}", ""))
        for path, item in paths.items()
        for method in item
        if method in ("get", "post", "put", "patch", "delete")
        and not (path in public and method == "get")
    ]


def test_nothing_is_done_without_a_token_or_with_one_that_is_none(admin: Http) -> None:
    with made(admin, "publish", "subscribe", "admin") as over:
        assert admin.delete(f"/tokens/{named(over)}").status_code == 204
    tries: list[dict[str, str]] = [
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": f"Basic {admin.token}"},
        {"authorization": admin.token},
        {"authorization": f"Bearer {admin.token[:-1]}"},
        {"authorization": f"Bearer {admin.token}x"},
        {"authorization": f"Bearer {over.token}"},
        {"cookie": f"distributary={admin.token}"},
        {"x-token": admin.token},
    ]
    found = operations(admin)
    assert len(found) >= 15
    with httpx.Client(base_url=admin.url, timeout=WAIT_S) as client:
        for method, path in found:
            for headers in tries if path == "/events" else tries[:2] + tries[7:8]:
                answer = client.request(method, path, headers=headers)
                problem(answer, 401)
                assert answer.headers["www-authenticate"] == "Bearer"
        in_url = client.get("/subscriptions", params={"token": admin.token, "access_token": "x"})
        problem(in_url, 401)


def test_a_token_that_is_over_is_none(admin: Http) -> None:
    from datetime import UTC, datetime, timedelta

    soon = datetime.now(UTC) + timedelta(seconds=2.0)
    with made(admin, "subscribe", expires=soon.isoformat()) as http:
        wait_until(lambda: http.get("/subscriptions").status_code == 401)
        assert datetime.now(UTC) >= soon


def _template(path: str) -> str:
    """A path as the document has it, with names for what is filled in."""
    parts = path.split("/")
    known = {"subscriptions": "name", "tokens": "name", "content": "digest", "brokers": "broker"}
    if len(parts) > 2:
        parts[2] = known.get(parts[1], "tenant")
    return "/".join(parts)


NEEDED = {
    "publish": [("POST", "/events"), ("PUT", "/objects"), ("PUT", f"/content/{'0' * 64}")],
    "subscribe": [
        ("POST", "/subscriptions"),
        ("GET", "/subscriptions"),
        ("GET", "/subscriptions/x"),
        ("PUT", "/subscriptions/x"),
        ("PATCH", "/subscriptions/x"),
        ("DELETE", "/subscriptions/x"),
        ("GET", "/subscriptions/x/events"),
        ("POST", "/subscriptions/x/acks"),
    ],
    "admin": [
        ("GET", "/tokens"),
        ("POST", "/tokens"),
        ("DELETE", "/tokens/x"),
        ("DELETE", "/tenants/x"),
        ("GET", "/metrics"),
        ("POST", "/brokers/x/drain"),
    ],
}


def test_each_thing_needs_its_scope_and_the_refusal_names_it(admin: Http) -> None:
    there = {path for _, path in operations(admin)}
    with contextlib.ExitStack() as stack:
        without = {
            scope: stack.enter_context(made(admin, *({*NEEDED} - {scope}))) for scope in NEEDED
        }
        for scope, tries in NEEDED.items():
            for method, path in tries:
                answer = without[scope].request(method, path)
                if _template(path) in there:
                    assert scope in problem(answer, 403)
                else:
                    problem(answer, 404)


def test_events_are_published_from_the_sources_of_a_token_alone(admin: Http) -> None:
    with made(admin, "publish", sources=["/site/7/", "urn:x:", "/town"]) as http:
        for source, status in {
            "/site/7/camera": 202,
            "/town": 202,
            "/town/hall": 202,
            "/towns": 403,
            "urn:x:1": 202,
            "/site/7": 403,
            "/site/77/camera": 403,
            "/site/7%2Fcamera": 403,
            "//site/7/": 403,
            "urn:y:1": 403,
        }.items():
            answer = http.publish(event(source, next(numbers), "sources"))
            assert answer.status_code == status, (source, answer.text)
        mixed = [event("/site/7/a", 1, "mixed"), event("/other", 2, "mixed")]
        assert "/other" in problem(http.publish(mixed), 403)
        binary = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/other", "ce-type": "t"}
        problem(http.post("/events", headers=binary), 403)
        moved = {"source": "/other", "subject": "a", "type": "moved"}
        problem(http.put("/objects", json=moved), 403)
        long = {**moved, "source": f"/site/7/{'a' * 10_000}"}
        assert "too long" in problem(http.put("/objects", json=long), 400)
    with made(admin, "publish", sources=[""]) as http:
        assert http.publish(event("/any", next(numbers), "sources")).status_code == 202


@pytest.fixture(scope="module")
def north(admin: Http) -> Iterator[Http]:
    with made(admin, "publish", "subscribe", tenant="north") as http:
        yield http


@pytest.fixture(scope="module")
def south(admin: Http) -> Iterator[Http]:
    with made(admin, "publish", "subscribe", tenant="south") as http:
        yield http


def test_a_subscription_is_nobody_elses(admin: Http, north: Http, south: Http) -> None:
    """Not another tenant's, nor another token's of the same tenant, nor an administrator's."""
    document = {"types": ["private"]}
    name = north.subscribe(document)
    north.publish([event("/private", number, "private") for number in range(3)])
    with made(admin, "publish", "subscribe", tenant="north") as colleague:
        for other in (south, colleague, admin):
            tries = [
                other.get(f"/subscriptions/{name}"),
                other.put(f"/subscriptions/{name}", json=document),
                other.patch(f"/subscriptions/{name}", json=document),
                other.delete(f"/subscriptions/{name}"),
                other.get(f"/subscriptions/{name}/events"),
                other.get(f"/subscriptions/{name}/events", headers={"last-event-id": "2"}),
                other.post(f"/subscriptions/{name}/acks", json={"up_to": 3}),
            ]
            nobodys = secrets.token_urlsafe(15)
            unknown = problem(other.get(f"/subscriptions/{nobodys}"), 404)
            for answer in tries:
                # As if there were none.
                assert problem(answer, 404).replace(name, nobodys) == unknown
            assert name not in other.get("/subscriptions").text
    told = north.get(f"/subscriptions/{name}").json()
    assert told["acknowledged"] == 0
    with north.events(name) as stream:
        assert [one.event["id"] for one in stream.take(3)] == ["0", "1", "2"]


def test_events_stay_in_their_tenant(north: Http, south: Http, admin: Http) -> None:
    """Also if another tenant publishes the same `source` and `id`, and wants everything."""
    everybody = (north, south, admin)
    wanted = {"filters": [{"exact": {"type": "stays"}}]}
    names = [http.subscribe(wanted) for http in everybody]
    for number, http in enumerate(everybody):
        assert http.publish(event("/same", 1, "stays", data=number)).status_code == 202
    for number, (http, name) in enumerate(zip(everybody, names, strict=True)):
        http.publish(event("/same", 2, "stays", data=number))
        with http.events(name) as stream:
            assert [one.event["data"] for one in stream.take(2)] == [number, number]


def test_a_digest_neither_gives_content_nor_says_that_it_is_there(
    admin: Http, north: Http, south: Http
) -> None:
    data, size = secrets.token_bytes(100_000), 100_000
    digest = hashlib.sha256(data).hexdigest()
    name = north.subscribe({"types": ["large"]})
    put = north.put(f"/content/{digest}", content=data, headers={"content-type": "image/x"})
    assert put.status_code in (200, 201, 204), put.text
    sent = north.publish(
        event("/large", 1, "large", datacontenttype="image/x", dataref=f"/content/{digest}")
    )
    assert sent.status_code == 202, sent.text
    with north.events(name) as stream:
        (got,) = stream.take(1)
    assert got.event["dataref"].endswith(f"/content/{digest}")
    assert north.get(f"/content/{digest}").content == data
    nobodys = hashlib.sha256(secrets.token_bytes(9)).hexdigest()
    for method in ("GET", "HEAD"):
        probe, unknown = (
            south.request(method, f"/content/{one}", headers={"range": "bytes=0-9"})
            for one in (digest, nobodys)
        )
        assert probe.status_code == unknown.status_code
        assert probe.status_code == (404 if method == "GET" else 405)
        assert probe.text.replace(digest, nobodys) == unknown.text
        assert {*probe.headers} == {*unknown.headers}
    stolen, guessed = (
        south.publish(event("/large", 1, "large", dataref=f"/content/{one}"))
        for one in (digest, nobodys)
    )
    assert stolen.status_code == guessed.status_code == 400
    assert stolen.text.replace(digest, nobodys) == guessed.text
    # Who has the bytes may put them, and is not told that somebody has.
    again = south.put(f"/content/{digest}", content=data, headers={"content-type": "image/x"})
    assert (again.status_code, again.text) == (put.status_code, put.text)
    with made(admin, "publish", tenant="east") as east:
        for part in (f"bytes */{size}", f"bytes 0-9/{size}", f"bytes 90000-90009/{size}"):
            asked, unknown = (
                east.put(
                    f"/content/{one}",
                    content=b"" if "*" in part else bytes(10),
                    headers={"content-type": "image/x", "content-range": part},
                )
                for one in (digest, nobodys)
            )
            assert asked.status_code == unknown.status_code
            assert asked.text.replace(digest, nobodys) == unknown.text


def test_plans_and_streams_are_shown_to_their_tenant(admin: Http, north: Http, south: Http) -> None:
    name = north.subscribe({"types": ["planned"]})
    assert north.publish(event("/planned", 1, "planned")).status_code == 202
    with north.events(name) as stream:
        stream.take(1)
    where = {"params": {"source": "/planned", "id": "1"}}
    wait_until(lambda: north.get("/plans", **where).status_code == 200)
    assert "/planned" in north.get("/plans").text
    for other in (south, admin):
        problem(other.get("/plans", **where), 404)
    assert "/planned" not in south.get("/plans").text
    problem(south.get("/plans", params={**where["params"], "tenant": "north"}), 403)
    problem(south.get("/plans", params={"tenant": "north"}), 403)
    by_tenant = {**where["params"], "tenant": "north"}
    assert admin.get("/plans", params=by_tenant).status_code == 200
    assert (
        north.put(
            "/objects", json={"source": "/moving", "subject": "a", "type": "moved"}
        ).status_code
        < 300
    )
    for path in ("/streams", "/trees"):
        assert "/moving" not in south.get(path).text
    with south._client.stream("GET", "/live", headers=bearer(south)) as live:
        north.publish(event("/planned", 2, "planned"))
        south.subscribe({"types": ["planned"]})
        south.publish(event("/own", 1, "planned"))
        for line in live.iter_lines():
            assert "/planned" not in line
            assert line != "event: brokers"
            if "/own" in line:
                break


def bearer(http: Http) -> dict[str, str]:
    return {"authorization": f"Bearer {http.token}"}


def socket_status(http: Http, path: str) -> int:
    """What the beginning of a WebSocket is answered with."""
    url = http.url.replace("http", "ws", 1) + path

    async def run() -> int:
        try:
            async with websockets.connect(
                url,
                open_timeout=WAIT_S,
                additional_headers=bearer(http),
                subprotocols=[websockets.Subprotocol("cloudevents.json")],
            ):
                return 101
        except websockets.InvalidStatus as error:
            return error.response.status_code

    return asyncio.run(run())


def test_web_sockets_are_for_who_may_use_them(admin: Http, north: Http, south: Http) -> None:
    name = north.subscribe({"types": ["socket"]})
    path = f"/subscriptions/{name}/events"
    assert [socket_status(http, path) for http in (north, south, admin)] == [101, 404, 404]
    with made(admin, "subscribe") as reader, made(admin, "publish", "admin") as writer:
        assert socket_status(reader, "/publish") == 403
        assert socket_status(writer, "/publish") == 101
        assert socket_status(writer, path) == 403
    assert socket_status(Http(admin.url, "wrong"), "/publish") == 401


def test_revocation_ends_a_web_socket_and_what_it_sends_is_not_published(
    admin: Http, north: Http
) -> None:
    with made(admin, "publish", tenant="north", sources=["/ws/"]) as http:
        token, url = named(http), f"{http.url.replace('http', 'ws', 1)}/publish"

        async def run() -> tuple[list[dict[str, Any]], int | None]:
            async with websockets.connect(
                url,
                open_timeout=WAIT_S,
                additional_headers=bearer(http),
                subprotocols=[websockets.Subprotocol("cloudevents.json")],
            ) as socket:
                said = []
                for source in ("/ws/1", "/elsewhere"):
                    await socket.send(json.dumps(event(source, 1, "ws")))
                    said.append(json.loads(await socket.recv()))
                await asyncio.to_thread(admin.delete, f"/tokens/{token}?tenant=north")
                async with asyncio.timeout(WAIT_S):
                    await socket.wait_closed()
                return said, socket.close_code

        (accepted, refused), code = asyncio.run(run())
        assert accepted == {"accepted": {"source": "/ws/1", "id": "1"}}
        assert refused["problem"]["status"] == 403
        assert code == 1008


def test_an_administrator_of_a_tenant_administers_that_tenant_alone(admin: Http) -> None:
    with made(admin, "admin", tenant="west") as west, made(admin, "publish", tenant="east") as east:
        assert "west" in problem(
            west.post("/tokens", json={"name": "x", "scopes": ["admin"], "tenant": ""}), 403
        )
        problem(
            west.post("/tokens", json={"name": "x", "scopes": ["admin"], "tenant": "east"}), 403
        )
        problem(west.delete(f"/tokens/{named(east)}?tenant=east"), 403)
        problem(west.delete(f"/tokens/{named(east)}"), 404)
        problem(west.delete("/tenants/east"), 403)
        for path in ("/brokers", "/brokers/x"):
            assert "admin" in problem(west.get(path), 403)
        problem(west.post("/brokers/x/drain"), 403)
        assert {one["tenant"] for one in west.get("/tokens").json()["tokens"]} == {"west"}
        own = west.post("/tokens", json={"name": "x", "scopes": ["publish"]})
        assert own.json()["tenant"] == "west"
        assert east.publish(event("/e", 1, "t")).status_code == 202


def test_revocation_ends_what_is_connected(admin: Http) -> None:
    with made(admin, "subscribe", tenant="north") as http:
        name, token = http.subscribe({"types": ["never"]}), named(http)
        with http.events(name) as stream:
            assert admin.delete(f"/tokens/{token}?tenant=north").status_code == 204
            assert stream.rest() == []
        problem(http.get("/subscriptions"), 401)


def test_erasing_a_tenant_leaves_nothing_of_it_and_all_of_others(admin: Http, north: Http) -> None:
    kept = north.subscribe({"types": ["erased"]})
    with (
        made(admin, "publish", "subscribe", tenant="gone") as one,
        made(admin, "subscribe", tenant="gone") as two,
    ):
        names = [http.subscribe({"types": ["erased"]}) for http in (one, two, one)]
        one.publish(event("/g", 1, "erased"))
        with two.events(names[1]) as stream:
            stream.take(1)
            told = admin.delete("/tenants/gone").json()
            assert stream.rest() == []
        assert (told["tokens"], told["subscriptions"]) == (2, 3)
        problem(one.get("/subscriptions"), 401)
    assert not [t for t in admin.get("/tokens").json()["tokens"] if t["tenant"] == "gone"]
    with made(admin, "subscribe", tenant="gone") as later:
        assert later.get("/subscriptions").json() == []
        for name in names:
            problem(later.get(f"/subscriptions/{name}"), 404)
    north.publish(event("/n", next(numbers), "erased"))
    with north.events(kept) as stream:
        assert len(stream.take(1)) == 1
    assert admin.delete("/tenants/gone").json()["subscriptions"] == 0


def test_the_audit_log_says_who_did_what_and_no_secret_is_anywhere(
    overlay: RunningOverlay, admin: Http
) -> None:
    with made(admin, "subscribe", tenant="audited") as http:
        name = named(http)
        subscription = http.subscribe({"types": ["audited"]})
        http.delete(f"/subscriptions/{subscription}")
        http.get("/tokens")
    path = overlay.state / "gateway" / "audit.jsonl"
    found = [json.loads(line) for line in path.read_text().splitlines()]
    did = [(one["what"], one["status"]) for one in found if one.get("token") == name]
    assert did == [
        ("POST /subscriptions", 201),
        (f"DELETE /subscriptions/{subscription}", 204),
        ("GET /tokens", 403),
    ]
    (creation,) = [one for one in found if name in one.get("detail", "")]
    assert (creation["tenant"], creation["token"]) == ("", "up")
    assert "audited" in creation["detail"]
    for secret in (http.token, admin.token, overlay.line["login"].rpartition("/")[2]):
        holders = [
            file.name
            for file in overlay.state.rglob("*")
            if file.is_file() and secret.encode() in file.read_bytes()
        ]
        assert {*holders} <= {"token", "operator.json"}
