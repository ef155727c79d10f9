"""WebSockets of a gateway: events in both directions, acknowledged on the way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
import websockets
from tests.live.gateways import WAIT_S, Http, event
from tests.live.overlays import RunningOverlay, running_overlay, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningOverlay]:
    with running_overlay(tmp_path_factory.mktemp("sockets") / "state", brokers=3) as overlay:
        yield overlay


@pytest.fixture(scope="module")
def http(overlay: RunningOverlay) -> Iterator[Http]:
    with Http(overlay.line["gateway"], overlay.line["token"]) as http:
        yield http


def connect(http: Http, path: str, protocol: str = "cloudevents.json") -> Any:
    return websockets.connect(
        http.url.replace("http", "ws") + path,
        open_timeout=WAIT_S,
        additional_headers={"authorization": f"Bearer {http.token}"},
        subprotocols=[websockets.Subprotocol(protocol)],
    )


def accepted_total(http: Http) -> float:
    lines = http.get("/metrics").text.splitlines()
    (line,) = (one for one in lines if one.startswith("distributary_events_accepted_total "))
    return float(line.split()[1])


def test_deliveries_are_numbered_and_acknowledged_by_messages(http: Http) -> None:
    name = http.subscribe({"types": ["numbered"]})
    http.publish([event("/ws", number, "numbered", data={"n": number}) for number in range(300)])

    async def run() -> None:
        async with connect(http, f"/subscriptions/{name}/events") as socket:
            assert socket.subprotocol == "cloudevents.json"
            got = [json.loads(await socket.recv()) for _ in range(300)]
            assert [one["sequence"] for one in got] == list(range(1, 301))
            assert [one["data"]["n"] for one in got] == list(range(300))
            await socket.send(json.dumps({"ack": 290}))
        async with connect(http, f"/subscriptions/{name}/events") as socket:
            got = [json.loads(await socket.recv()) for _ in range(10)]
            assert [one["sequence"] for one in got] == list(range(291, 301))
        async with connect(http, f"/subscriptions/{name}/events?after=295") as socket:
            assert json.loads(await socket.recv())["sequence"] == 296

    asyncio.run(run())


def test_whoever_comes_back_at_once_is_not_ousted_by_itself(http: Http) -> None:
    """Word of a connection that has ended may come when the next one is there already."""
    name = http.subscribe({"types": ["again"]})
    http.publish([event("/again", 1, "again")])

    async def run() -> None:
        for _ in range(150):
            async with connect(http, f"/subscriptions/{name}/events") as socket:
                assert json.loads(await socket.recv())["sequence"] == 1

    asyncio.run(run())


def test_publications_are_pipelined_and_answered_in_order(http: Http) -> None:
    name = http.subscribe({"types": ["pipelined"]})

    async def run() -> list[dict[str, Any]]:
        async with connect(http, "/publish") as socket:
            for number in range(500):
                await socket.send(json.dumps(event("/pipe", number, "pipelined")))
            await socket.send('{"id": "no event"}')
            await socket.send(json.dumps(event("/pipe", 500, "pipelined")))
            return [json.loads(await socket.recv()) for _ in range(502)]

    counted = accepted_total(http)
    answers = asyncio.run(run())
    accepted = [one["accepted"]["id"] for one in answers if "accepted" in one]
    assert accepted == [str(number) for number in range(501)]
    assert accepted_total(http) == counted + 501
    assert answers[500]["problem"]["status"] == 400
    assert answers[500]["problem"]["id"] == "no event"
    assert "specversion" in answers[500]["problem"]["detail"]
    with http.events(name) as stream:
        assert [one.event["id"] for one in stream.take(501)] == accepted


def test_a_newer_connection_takes_over_and_the_older_one_stays_away(http: Http) -> None:
    name = http.subscribe({"types": ["taken"]})
    http.publish(event("/taken", 1, "taken"))
    with http.events(name) as first:
        assert first.take(1)[0].id == "1"
        with http.events(name, last="1") as second:
            assert first.rest() == []
            # As a browser comes again, and as one does that counts events by itself.
            assert first.last == "ousted"
            for last in ("ousted", "1"):
                with http.events(name, last=last) as third:
                    assert third.response.status_code == 204
            http.publish(event("/taken", 2, "taken"))
            assert second.take(1)[0].id == "2"

    async def oust() -> int | None:
        path = f"/subscriptions/{name}/events?after=2"
        async with connect(http, path) as socket, connect(http, path):
            with pytest.raises(websockets.ConnectionClosed):
                await socket.recv()
            code: int | None = socket.close_code
            return code

    assert asyncio.run(oust()) == 4000


def test_what_is_wrong_is_said_before_a_socket_is_accepted(http: Http) -> None:
    async def status(path: str, protocol: str = "cloudevents.json") -> tuple[int, dict[str, Any]]:
        with pytest.raises(websockets.InvalidStatus) as refused:
            async with connect(http, path, protocol):
                pass
        response = refused.value.response
        assert response.headers["content-type"] == "application/problem+json"
        assert response.body is not None
        return response.status_code, json.loads(response.body)

    code, problem = asyncio.run(status("/subscriptions/nothing/events"))
    assert (code, problem["status"]) == (404, 404)
    assert "nothing" in problem["detail"]
    assert asyncio.run(status("/publish", "other"))[0] == 400
    nobody = Http(http.url, "nobody")
    with nobody:
        http = nobody
        assert asyncio.run(status("/publish"))[0] == 401


def test_versions_of_a_stream_object_come_without_numbers(http: Http) -> None:
    acme = {"source": "/quotes", "subject": "acme", "type": "quote"}
    assert http.put("/objects", json=[acme, acme]).status_code == 200
    announced = http.put("/objects", json=acme)
    assert announced.status_code == 200, announced.text
    assert announced.json() == {"objects": [{"source": "/quotes", "subject": "acme"}]}
    tolerance = {"value": "/price", "divergence": "absolute", "amount": 1}
    name = http.subscribe({"types": ["quote"], "tolerance": tolerance})

    def version(sequence: int, price: float) -> None:
        one = event("/quotes", sequence, "quote", subject="acme", data={"price": price})
        assert http.publish({**one, "sequence": str(sequence)}).status_code == 202

    version(1, 10.0)
    with http.events(name) as stream:
        first = stream.take(1)[0]
        assert first.id == ""
        assert first.event["data"] == {"price": 10.0}
        assert (first.event["subject"], first.event["type"]) == ("acme", "quote")
        version(2, 10.5)
        version(3, 11.5)
        assert stream.take(1)[0].event["data"] == {"price": 11.5}
    with http.events(name) as stream:
        assert stream.take(1)[0].event["data"] == {"price": 11.5}
    wait_until(lambda: http.get("/streams").json()["streams"])


def test_a_subscription_is_changed_and_ended(http: Http) -> None:
    name = http.subscribe({"types": ["before"]})
    told = http.patch(f"/subscriptions/{name}", json={"types": ["after"]})
    assert told.status_code == 200, told.text
    assert told.json()["types"] == ["after"]
    http.publish(event("/change", 2, "after"))
    with http.events(name) as stream:
        assert stream.take(1)[0].event["id"] == "2"
        told = http.put(f"/subscriptions/{name}", json={"filters": [{"exact": {"type": "third"}}]})
        assert told.status_code == 200, told.text
        http.publish(event("/change", 3, "third"))
        assert stream.take(1)[0].event["id"] == "3"
        listed = http.get("/subscriptions").json()
        assert [one["filters"] for one in listed if one["id"] == name] == [told.json()["filters"]]
        wrong = http.put(f"/subscriptions/{name}", json={"filters": [{"nonsense": 1}]})
        assert wrong.status_code == 400
        assert http.get(f"/subscriptions/{name}").json()["filters"] == told.json()["filters"]
        assert http.delete(f"/subscriptions/{name}").status_code == 204
        assert stream.rest() == []
    assert http.get(f"/subscriptions/{name}").status_code == 404
    assert http.delete(f"/subscriptions/{name}").status_code == 404
