"""What clients of a gateway see when connections, brokers or the gateway itself are gone."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from tests.live.gateways import Http, event, problem
from tests.live.overlays import RunningOverlay, running_overlay, wait_until
from websockets import Subprotocol
from websockets.sync.client import connect

pytestmark = pytest.mark.slow

_STUCK_S = 60.0


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningOverlay]:
    with running_overlay(tmp_path_factory.mktemp("faults") / "state", brokers=3) as overlay:
        yield overlay


@pytest.fixture(scope="module")
def http(overlay: RunningOverlay) -> Iterator[Http]:
    with Http(overlay.line["gateway"], overlay.line["token"]) as http:
        yield http


class Listener(threading.Thread):
    """Listens to a subscription for good, and comes again after every break."""

    def __init__(self, http: Http, name: str, count: int, cuts: random.Random | None) -> None:
        super().__init__(daemon=True)
        self.got: list[tuple[str, str]] = []
        self.connections = 0
        self._url, self._token, self._name = http.url, http.token, name
        self._count, self._cuts = count, cuts

    def run(self) -> None:
        with Http(self._url, self._token) as http:
            while len(self.got) < self._count:
                try:
                    self._listen(http)
                except (httpx.TransportError, StopIteration):
                    # Nobody was there, or somebody has hung up.
                    time.sleep(0.05)

    def _listen(self, http: Http) -> None:
        last = self.got[-1][0] if self.got else None
        with http.events(self._name, last=last) as stream:
            if stream.response.status_code != 200:
                time.sleep(0.05)
                return
            self.connections += 1
            left = None if self._cuts is None else self._cuts.randrange(12)
            while len(self.got) < self._count and left != 0:
                sent = stream.take(1)[0]
                self.got.append((sent.id, sent.event["id"]))
                left = None if left is None else left - 1


def check(listener: Listener, count: int) -> None:
    """Everything once, in order, under numbers without gaps."""
    before = -1
    while listener.is_alive() and len(listener.got) > before:
        before = len(listener.got)
        listener.join(_STUCK_S)
    assert not listener.is_alive(), f"{len(listener.got)} of {count}"
    assert listener.got == [(str(n + 1), str(n)) for n in range(count)]


def publish(http: Http, kind: str, begin: int, count: int) -> None:
    """Publish events one by one, again and again until each is accepted."""
    for number in range(begin, begin + count):
        end = time.monotonic() + 60
        while True:
            assert time.monotonic() < end, "it is not accepted"
            try:
                answer = http.publish(event(f"/{kind}", number, kind))
            except httpx.TransportError:
                time.sleep(0.05)
                continue
            if answer.status_code == 202:
                break
            assert answer.status_code in (429, 503), answer.text


def cut(http: Http, cuts: int, seed: int) -> None:
    kind = f"cut-{seed}"
    name = http.subscribe({"types": [kind]})
    # Each connection is cut after six events, as it is.
    count = 6 * cuts
    listener = Listener(http, name, count, random.Random(seed))
    listener.start()
    for begin in range(0, count, 100):
        batch = [event(f"/{kind}", n, kind) for n in range(begin, min(begin + 100, count))]
        assert http.publish(batch).status_code == 202
    check(listener, count)
    assert listener.connections >= cuts / 2


def test_a_connection_that_is_cut_anywhere_misses_nothing(http: Http) -> None:
    cut(http, 25, seed=1)


@pytest.mark.full
def test_a_connection_that_is_cut_a_thousand_times_misses_nothing(http: Http) -> None:
    cut(http, 1_000, seed=2)


def test_listeners_do_not_notice_that_brokers_are_killed(
    overlay: RunningOverlay, http: Http
) -> None:
    names = [http.subscribe({"types": ["killed"]}) for _ in range(3)]
    listeners = [Listener(http, name, 60, None) for name in names]
    for one in listeners:
        one.start()
    for begin, broker in zip(range(0, 60, 20), overlay.brokers, strict=True):
        publish(http, "killed", begin, 10)
        overlay.kill(broker)
        publish(http, "killed", begin + 10, 10)
    for one in listeners:
        check(one, 60)
        assert one.connections == 1


def test_a_gateway_that_is_killed_keeps_nothing_to_itself(
    overlay: RunningOverlay, http: Http
) -> None:
    name = http.subscribe({"types": ["gateway"]})
    listener = Listener(http, name, 60, None)
    listener.start()
    for begin in (0, 20, 40):
        publish(http, "gateway", begin, 10)
        overlay.kill("gateway")
        publish(http, "gateway", begin + 10, 10)
    check(listener, 60)
    assert listener.connections > 1


def test_a_listener_does_not_notice_that_its_home_drains(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    state = tmp_path_factory.mktemp("drained") / "state"
    with (
        running_overlay(state, brokers=3) as overlay,
        Http(overlay.line["gateway"], overlay.line["token"]) as http,
    ):
        name = http.subscribe({"types": ["drained"]})
        idle = http.subscribe({"types": ["drained"]})
        listener = Listener(http, name, 40, None)
        listener.start()
        publish(http, "drained", 0, 10)

        def subscriptions() -> dict[str, int]:
            told = http.get("/brokers").json()["brokers"]
            return {one: row["subscriptions"] for one, row in told.items() if row is not None}

        leaving = [broker for broker, count in subscriptions().items() if count]
        assert http.post(f"/brokers/{leaving[0]}/drain").status_code == 202
        publish(http, "drained", 10, 20)
        wait_until(lambda: not subscriptions().get(leaving[0]))
        publish(http, "drained", 30, 10)
        check(listener, 40)
        assert listener.connections == 1
        with http.events(idle) as stream:
            assert [one.event["id"] for one in stream.take(40)] == [str(n) for n in range(40)]
        # Where they are is known to whoever asks next.
        assert http.get(f"/subscriptions/{name}").json()["last"] == 40
        overlay.kill("gateway")

        def is_back() -> bool:
            try:
                return bool(http.get(f"/subscriptions/{idle}").json().get("last") == 40)
            except httpx.TransportError:
                return False

        wait_until(is_back)
        check_stream_moves(overlay, http)


def check_stream_moves(overlay: RunningOverlay, http: Http) -> None:
    """An object whose publisher has lost its home goes on at another one, by every way."""
    quote = {"source": "/quotes", "subject": "acme", "type": "quote"}
    tolerance = {"value": "/price", "divergence": "absolute", "amount": 0.1}
    follower = http.subscribe({"types": ["quote"], "tolerance": tolerance})
    numbers = itertools.count(1)

    def version() -> dict[str, Any]:
        number = next(numbers)
        data = {"price": float(number)}
        return event("/quotes", number, "quote", subject="acme", sequence=str(number), data=data)

    with (
        http.events(follower) as stream,
        connect(
            f"{http.url.replace('http', 'ws')}/publish",
            additional_headers={"authorization": f"Bearer {http.token}"},
            subprotocols=[Subprotocol("cloudevents.json")],
        ) as socket,
    ):

        def arrives(publish: Callable[[dict[str, Any]], object]) -> None:
            """One of those does that are sent until then."""
            ended = threading.Event()

            def go_on() -> None:
                while not ended.is_set():
                    publish(version())
                    ended.wait(0.2)

            first = next(numbers)
            with ThreadPoolExecutor(1) as thread:
                going = thread.submit(go_on)
                try:
                    while int(stream.take(1)[0].event["id"]) < first:
                        pass
                finally:
                    ended.set()
                going.result()

        def by_socket(one: dict[str, Any]) -> None:
            socket.send(json.dumps(one))
            assert json.loads(socket.recv()).get("accepted"), one

        wait_until(lambda: http.put("/objects", json=quote).status_code == 200)
        arrives(http.publish)
        arrives(by_socket)
        (root,) = {one["root"] for one in http.get("/streams").json()["streams"]}
        assert http.post(f"/brokers/{root}/drain").status_code == 202
        wait_until(lambda: root not in overlay.pids())
        arrives(by_socket)
        arrives(http.publish)


@contextmanager
def standing_still(overlay: RunningOverlay, brokers: Iterable[str]) -> Iterator[None]:
    """Have brokers be there, and do nothing."""
    pids = [overlay.pids()[broker] for broker in brokers]
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_an_object_is_announced_elsewhere_when_the_home_does_not_answer(
    overlay: RunningOverlay, http: Http
) -> None:
    """Also if that is not known yet when it is announced, which nobody answers then."""
    home, *others = overlay.brokers

    def there() -> set[str]:
        told = http.get("/brokers").json()["brokers"]
        return {broker for broker, row in told.items() if row is not None}

    asked = {"name": "moves", "scopes": ["publish"]}
    with Http(http.url, http.post("/tokens", json=asked).json()["token"]) as one:
        with standing_still(overlay, others):
            wait_until(lambda: there() == {home})
            assert one.publish(event("/moves", 1, "moves")).status_code == 202
        wait_until(lambda: there() == {home, *others})
        quote = {"source": "/moves", "subject": "a", "type": "quote"}
        with standing_still(overlay, [home]):
            wait_until(lambda: one.put("/objects", json=quote).status_code == 200)


def test_without_brokers_the_answer_is_that_nobody_is_there(
    overlay: RunningOverlay, http: Http
) -> None:
    name = http.subscribe({"types": ["alone"]})
    publish(http, "alone", 0, 1)
    with standing_still(overlay, overlay.brokers):
        wait_until(lambda: http.get("/ready").status_code == 503)
        assert http.get("/health").status_code == 200
        answer = http.post("/subscriptions", json={"types": ["alone"]})
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) >= 1
        assert answer.headers["content-type"] == "application/problem+json"
        assert http.get(f"/subscriptions/{name}").json()["state"] == "unknown"
    wait_until(lambda: http.get("/ready").status_code == 200)
    publish(http, "alone", 1, 1)
    with http.events(name) as stream:
        assert [one.event["id"] for one in stream.take(2)] == ["0", "1"]


def publishers(http: Http) -> int:
    """How many tokens a gateway has something open for, to publish by."""
    (line,) = re.findall(r"^distributary_publishers (.*)$", http.get("/metrics").text, re.MULTILINE)
    return int(float(line))


def test_whoever_gives_up_does_not_hold_up_those_behind_it(
    overlay: RunningOverlay, http: Http
) -> None:
    """The body of a request that is over is still needed: it is to be published before others."""
    asked = {"name": "gives-up", "scopes": ["publish"]}
    large = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/g", "ce-type": "given up"}
    name = http.subscribe({"types": ["given up"]})
    there = publishers(http)
    with (
        Http(http.url, http.post("/tokens", json=asked).json()["token"]) as given_up,
        ThreadPoolExecutor(1) as thread,
        standing_still(overlay, overlay.brokers),
    ):
        answer = thread.submit(given_up.post, "/events", content=b"x" * 300_000, headers=large)
        wait_until(lambda: publishers(http) > there)
        assert http.delete("/tokens/gives-up").status_code == 204
        assert answer.result().status_code == 401
    wait_until(lambda: http.get("/ready").status_code == 200)
    with Http(http.url, http.post("/tokens", json=asked).json()["token"]) as again:
        assert again.publish(event("/g", 2, "given up")).status_code == 202
    with http.events(name) as stream:
        assert [one.event["id"] for one in stream.take(2)] == ["1", "2"]
    assert "Traceback" not in overlay.log("gateway")


def test_whoever_waits_when_a_gateway_stops_is_told_to_come_again(
    overlay: RunningOverlay, http: Http
) -> None:
    """What it had is kept; and those who listen see an end that is none of their doing."""
    name = http.subscribe({"types": ["stopped"]})
    there = publishers(http)
    pids = [overlay.pids()[broker] for broker in overlay.brokers]
    asked = {"name": "waits", "scopes": ["publish"]}
    with (
        Http(http.url, http.post("/tokens", json=asked).json()["token"]) as waiting,
        http.events(name) as stream,
        ThreadPoolExecutor(1) as thread,
    ):
        try:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            answer = thread.submit(waiting.publish, event("/s", 1, "stopped"))
            wait_until(lambda: publishers(http) > there)
            os.kill(overlay.pids()["gateway"], signal.SIGTERM)
            assert "stopping" in problem(answer.result(), 503)
            assert int(answer.result().headers["retry-after"]) >= 1
            assert stream.rest() == []
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def is_published() -> bool:
        try:
            return http.publish(event("/s", 2, "stopped")).status_code == 202
        except httpx.TransportError:
            return False

    wait_until(is_published)
    with http.events(name) as stream:
        # What was not answered may have been on its way.
        while stream.take(1)[0].event["id"] != "2":
            pass
    assert "Traceback" not in overlay.log("gateway")


def test_what_is_malformed_is_refused_and_never_an_error_of_ours(
    overlay: RunningOverlay, http: Http
) -> None:
    rng = random.Random(11)
    good = json.dumps(event("/s", 1, "malformed", data={"a": 1})).encode()
    structured = {"content-type": "application/cloudevents+json"}
    batch = {"content-type": "application/cloudevents-batch+json"}
    bodies = [b"", b"null", b"[", b"[[]]", b"{}", b"1e999", b"\xff\xfe", b"[" * 100_000]
    bodies += [good[: rng.randrange(len(good))] for _ in range(20)]
    bodies += [bytes(rng.choices(range(256), k=200)) for _ in range(20)]
    bodies += [good.replace(b'"1.0"', one) for one in (b"1", b'"2.0"', b"null", b"{}")]
    bodies += [good.replace(b'"type"', b'"id"'), good.replace(b'"id"', b'"ID"')]
    for body in bodies:
        for kind in (structured, batch):
            answer = http.post("/events", content=body, headers=kind)
            if answer.status_code == 202:
                assert answer.json() == {"accepted": []}
                continue
            assert answer.status_code in (400, 413, 415), answer.text
            assert answer.headers["content-type"] == "application/problem+json"
    for header, value in (
        ("ce-id", ""),
        ("ce-time", "yesterday"),
        ("ce-source", "%00"),
        ("ce-specversion", "0.3"),
        ("ce-data", "x"),
        ("ce-Extension!", "x"),
        ("ce-type", "%FF"),
        ("content-type", "nonsense"),
    ):
        said = {"ce-id": "1", "ce-source": "/s", "ce-type": "t", "ce-specversion": "1.0"}
        answer = http.post("/events", content=b"x", headers={**said, header: value})
        assert answer.status_code == 400, (header, answer.text)
    for document in (
        b"[]",
        b'{"filters": {}}',
        b'{"filters": [], "types": [1]}',
        b'{"filters": [], "config": {"expires": "never"}}',
        b'{"filters": [], "profile": {"accept": ["nonsense"]}}',
        b'{"filters": [], "tolerance": {}}',
        b'{"filters": [], "source": 1}',
        b'{"types": ["t"], "filter": []}',
        b'{"types": ["t"], "config": {"expire": 1}}',
        b'{"filters": [{"sql": "a ="}]}',
    ):
        answer = http.post("/subscriptions", content=document)
        assert answer.status_code == 400, (document, answer.text)
    name = http.subscribe({"types": ["malformed"]})
    for last in ("x", "-1", "1.5", "9" * 40):
        with http.events(name, last=last) as stream:
            assert stream.response.status_code == 400
    assert http.get(f"/subscriptions/{name}/events?ack=never").status_code == 400
    for body in (b"{}", b'{"up_to": "x"}', b'{"up_to": -1}', b'{"up_to": 1e300}', b"["):
        answer = http.post(f"/subscriptions/{name}/acks", content=body)
        assert answer.status_code == 400, (body, answer.text)
    assert "Traceback" not in overlay.log("gateway")
