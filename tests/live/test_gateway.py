"""The gateway of a running overlay: events in by HTTP, and out as server-sent events."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from tests.live.gateways import Http, event, problem
from tests.live.overlays import RunningOverlay, running_overlay, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningOverlay]:
    with running_overlay(tmp_path_factory.mktemp("gateway") / "state", brokers=3) as overlay:
        yield overlay


@pytest.fixture(scope="module")
def http(overlay: RunningOverlay) -> Iterator[Http]:
    with Http(overlay.line["gateway"], overlay.line["token"]) as http:
        yield http


def test_the_gateway_is_there_when_the_line_is(http: Http) -> None:
    assert http.get("/health", token="").json() == {"status": "ok"}
    assert http.get("/ready", token="").json() == {"status": "ready"}
    assert http.get("/openapi.json", token="").json()["openapi"].startswith("3.")
    for path in ("/health", "/ready"):
        looked = http.request("HEAD", path, token="")
        assert (looked.status_code, looked.content) == (200, b"")


def test_events_of_all_modes_are_delivered_in_order(http: Http) -> None:
    name = http.subscribe({"filters": [{"exact": {"type": "modes"}}]})
    headers = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/modes", "ce-type": "modes"}
    binary = http.post(
        "/events", content=b"text", headers={**headers, "content-type": "text/plain"}
    )
    assert binary.status_code == 202
    assert binary.json() == {"accepted": [{"source": "/modes", "id": "1"}]}
    structured = http.publish(event("/modes", 2, "modes", data={"a": [1, 2.5]}))
    assert structured.json() == {"accepted": [{"source": "/modes", "id": "2"}]}
    batch = http.publish([event("/modes", 3, "modes"), event("/modes", 4, "modes", data="x")])
    assert [one["id"] for one in batch.json()["accepted"]] == ["3", "4"]
    with http.events(name) as stream:
        got = stream.take(4)
    assert [one.id for one in got] == ["1", "2", "3", "4"]
    assert [one.event["id"] for one in got] == ["1", "2", "3", "4"]
    assert got[0].event["data"] == "text"
    assert got[0].event["datacontenttype"] == "text/plain"
    assert got[1].event["data"] == {"a": [1, 2.5]}


def test_a_batch_is_delivered_in_order_whatever_its_sources(http: Http) -> None:
    name = http.subscribe({"types": ["batch"]})
    for begin in range(0, 60, 20):
        batch = [event(f"/batch/{n % 7}", n, "batch") for n in range(begin, begin + 20)]
        assert http.publish(batch).status_code == 202
    with http.events(name) as stream:
        assert [one.event["id"] for one in stream.take(60)] == [str(n) for n in range(60)]


def test_what_is_published_twice_is_delivered_once(http: Http) -> None:
    name = http.subscribe({"types": ["twice"]})
    for number in (1, 1, 2, 1):
        assert http.publish(event("/twice", number, "twice")).status_code == 202
    with http.events(name) as stream:
        assert [one.event["id"] for one in stream.take(2)] == ["1", "2"]
        http.publish(event("/twice", 3, "twice"))
        assert stream.take(1)[0].event["id"] == "3"


def test_a_connection_goes_on_after_the_last_event_that_was_seen(http: Http) -> None:
    name = http.subscribe({"types": ["resume"]})
    http.publish([event("/resume", number, "resume") for number in range(10)])
    with http.events(name) as stream:
        stream.take(5)
    with http.events(name, last="3") as stream:
        assert [one.id for one in stream.take(7)] == ["4", "5", "6", "7", "8", "9", "10"]
    told = http.get(f"/subscriptions/{name}").json()
    assert (told["acknowledged"], told["last"], told["waiting"]) == (3, 10, 7)
    # Without a number, all that is not acknowledged; and nobody has got what was not sent.
    with http.events(name) as stream:
        assert stream.take(1)[0].id == "4"
    with http.events(name, last="999") as stream:
        http.publish(event("/resume", 10, "resume"))
        assert stream.take(1)[0].id == "11"


def test_problems_name_what_is_wrong(http: Http) -> None:
    assert "token" in problem(http.get("/subscriptions", token=""), 401)
    wrong = "no"
    assert "token" in problem(http.get("/subscriptions", token=wrong), 401)
    assert "nothing" in problem(http.get("/subscriptions/nothing"), 404)
    assert problem(http.get("/nowhere"), 404)
    assert problem(http.put("/events"), 405)
    assert "specversion" in problem(http.post("/events", content=b"x"), 400)
    no_source = json.loads(json.dumps(event("/s", 1, "t")))
    del no_source["source"]
    assert "source" in problem(http.publish(no_source), 400)
    assert "events[1]" in problem(http.publish([event("/s", 1, "t"), no_source]), 400)
    assert "filters" in problem(http.post("/subscriptions", json={}), 400)
    filters = [{"exactly": {"type": "t"}}]
    assert "exactly" in problem(http.post("/subscriptions", json={"filters": filters}), 400)
    assert problem(http.post("/tokens"), 400) == "the body: is missing"
    assert "UTF-8" in problem(http.post("/tokens", content=b'{"name": "\xbe"}'), 400)
    xml = {"content-type": "application/cloudevents+xml"}
    assert "xml" in problem(http.post("/events", content=b"<a/>", headers=xml), 415)


def test_a_field_that_means_nothing_is_refused_with_the_one_that_was_meant(http: Http) -> None:
    slip = http.post("/subscriptions", json={"types": ["slip"], "filter": []})
    assert (
        problem(slip, 400)
        == "filter: is not a field of a subscription; hint: did you mean filters?"
    )
    name = http.subscribe({"types": ["slip"]})
    told = http.get(f"/subscriptions/{name}").json()
    assert http.put(f"/subscriptions/{name}", json=told).status_code == 200
    past = http.patch(
        f"/subscriptions/{name}", json={"config": {"expires": "2020-01-01T00:00:00Z"}}
    )
    assert "config.expires" in problem(past, 400)
    assert http.get(f"/subscriptions/{name}").json()["state"] == "registered"


def test_the_interface_describes_itself(http: Http) -> None:
    document = http.get("/openapi.json", token="").json()
    described = {
        f"{method.upper()} {path}" for path, one in document["paths"].items() for method in one
    }
    assert described >= {
        "POST /events",
        "POST /subscriptions",
        "GET /subscriptions",
        "GET /subscriptions/{name}",
        "PUT /subscriptions/{name}",
        "PATCH /subscriptions/{name}",
        "DELETE /subscriptions/{name}",
        "GET /subscriptions/{name}/events",
        "POST /subscriptions/{name}/acks",
        "PUT /objects",
        "PUT /content/{digest}",
        "GET /content/{digest}",
        "GET /plans",
        "GET /trees",
        "GET /streams",
        "GET /brokers",
        "POST /brokers/{broker}/drain",
        "GET /live",
        "POST /tokens",
        "GET /health",
        "GET /ready",
        "GET /metrics",
    }
    page = http.get("/docs", token="")
    assert page.headers["content-type"].startswith("text/html")
    assert "/subscriptions/{name}/events" in page.text
    # Nothing of it is anybody else's.
    assert "://" not in page.text


def test_what_happens_is_counted_and_told(http: Http) -> None:
    name = http.subscribe({"types": ["counted"]})
    http.publish([event("/counted", number, "counted") for number in range(3)])
    with http.events(name) as stream:
        stream.take(3)

    def figure(name: str) -> float:
        lines = http.get("/metrics").text.splitlines()
        figures = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return float(figures[f"distributary_{name}"])

    assert figure("events_accepted_total") >= 3
    assert figure("events_delivered_total") >= 2
    wait_until(lambda: figure("brokers_up") == 3)
    # All of those that the guide has, and no others.
    guide = Path("docs/metrics.md").read_text(encoding="utf-8")
    names = re.findall(r"^# TYPE (\w+)", http.get("/metrics").text, re.MULTILINE)
    assert sorted(re.findall(r"^\| `(distributary_\w+)`", guide, re.MULTILINE)) == sorted(names)
    with http.stream("/live") as live:
        first = live.take(1)[0]
        assert first.kind == "brokers"
        assert len(first.event) == 3
        http.publish(event("/counted", 4, "counted"))
        while (sent := live.take(1)[0]).kind != "plan":
            pass
        assert (sent.event["source"], sent.event["id"]) == ("/counted", "4")


def test_messages_of_acknowledgement_free_what_waits(http: Http) -> None:
    name = http.subscribe({"types": ["acked"]})
    http.publish([event("/acked", number, "acked") for number in range(20)])

    def waiting() -> int:
        found: int = http.get(f"/subscriptions/{name}").json()["waiting"]
        return found

    wait_until(lambda: waiting() == 20)
    with http.events(name, query="?ack=explicit") as stream:
        stream.take(10)
        assert http.post(f"/subscriptions/{name}/acks", json={"up_to": 7}).status_code == 204
        wait_until(lambda: waiting() == 13)
    assert http.post(f"/subscriptions/{name}/acks", json={"up_to": 999}).status_code == 204
    wait_until(lambda: waiting() == 0)


def test_a_subscription_that_is_asked_for_again_by_its_key_is_made_once(http: Http) -> None:
    def ask(key: str, kind: str, token: str | None = None) -> httpx.Response:
        return http.post(
            "/subscriptions", json={"types": [kind]}, headers={"idempotency-key": key}, token=token
        )

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: ask("one", "once"), range(8)))
    assert {one.status_code for one in answers} == {201}
    (name,) = {one.json()["id"] for one in answers}
    assert {one.headers["location"] for one in answers} == {f"/subscriptions/{name}"}
    assert [one.get("types") for one in http.get("/subscriptions").json()].count(["once"]) == 1
    http.publish(event("/once", 1, "once"))
    # To ask again does not begin anew.
    assert ask("one", "once").json()["id"] == name
    with http.events(name) as stream:
        assert stream.take(1)[0].event["id"] == "1"
    assert "Idempotency-Key" in problem(ask("one", "other"), 409)
    for key in ("", "x" * 256):
        assert "Idempotency-Key" in problem(ask(key, "once"), 400)
    made = http.post("/tokens", json={"name": "another", "scopes": ["subscribe"]}).json()
    assert ask("one", "once", token=made["token"]).json()["id"] != name
    assert ask("two", "once").json()["id"] != name
    # One that has ended may be made anew.
    assert http.delete(f"/subscriptions/{name}").status_code == 204
    assert ask("one", "other").json()["id"] == name
    http.publish([event("/once", 2, "once"), event("/once", 3, "other")])
    with http.events(name) as stream:
        assert stream.take(1)[0].event["id"] == "3"
