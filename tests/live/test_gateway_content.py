"""Content through a gateway: in the format that each device takes, byte for byte."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cloudevents.core.bindings.http import (
    HTTPMessage,
    from_structured_event,
    to_binary_event,
    to_structured_event,
)
from cloudevents.core.v1.event import CloudEvent
from tests.live.gateways import Http, event, problem
from tests.live.overlays import RunningOverlay, running_overlay

from distributary.content.adaptation_graph import AdaptationGraph
from distributary.content.calibrated_graph import graph_for
from distributary.media.graphs import GRAPHS, default_graph
from distributary.media.pool import Pool
from distributary.media.samples import map_pdf
from distributary.placement import PlacementProblem, cost, place
from distributary.topology import DisseminationTree, TreeNode

pytestmark = pytest.mark.slow

PDF = "application/pdf"
TEXT = "text/plain;charset=utf-8"
# From a root elsewhere, some of those with the same first digits are two hops away.
BROKERS = ["0a00", "0a10", "0b00", "0b10", "f000"]


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningOverlay]:
    state = tmp_path_factory.mktemp("content") / "state"
    state.mkdir()
    remembered = {"overlay": "up", "brokers": BROKERS, "founders": len(BROKERS), "port": 0}
    (state / "overlay.json").write_text(json.dumps(remembered))
    with running_overlay(state, brokers=len(BROKERS)) as overlay:
        yield overlay


@pytest.fixture(scope="module")
def http(overlay: RunningOverlay) -> Iterator[Http]:
    with Http(overlay.line["gateway"], overlay.line["token"]) as http:
        yield http


def headers(number: int, kind: str, media_type: str) -> dict[str, str]:
    """An event in binary mode."""
    return {
        "ce-specversion": "1.0",
        "ce-id": str(number),
        "ce-source": f"/{kind}",
        "ce-type": kind,
        "content-type": media_type,
    }


def type_with_root(http: Http, root: str) -> str:
    """A type whose events go to a broker first."""
    for number in range(64):
        kind = f"map-{number}"
        name = http.subscribe({"types": [kind]})
        assert http.publish(event("/roots", number, kind)).status_code == 202
        with http.events(name) as stream:
            stream.take(1)
        http.delete(f"/subscriptions/{name}")
        plan = http.get("/plans", params={"source": "/roots", "id": str(number)}).json()
        if plan["root"] == root:
            return kind
    raise AssertionError("no type has that root")


def publisher_elsewhere(http: Http, root: str) -> Http:
    """Somebody who publishes at another broker than a root."""
    for number in range(64):
        made = http.post("/tokens", json={"name": f"publisher-{number}", "scopes": ["publish"]})
        assert made.status_code == 201, made.text
        publisher = Http(http.url, made.json()["token"])
        before = http.get("/brokers").json()["brokers"][root]["publications"]
        assert publisher.publish(event(f"/at/{number}", 1, "nobody wants it")).status_code == 202
        if http.get("/brokers").json()["brokers"][root]["publications"] == before:
            return publisher
        publisher.close()
    raise AssertionError("everybody publishes at the root")


def content_of(http: Http, got: dict[str, Any]) -> bytes:
    if "dataref" in got:
        answer = http.get(got["dataref"])
        assert answer.status_code == 200
        assert len(answer.content) == got["datasize"]
        assert hashlib.sha256(answer.content).hexdigest() == got["dataref"].rpartition("/")[2]
        return answer.content
    if "data_base64" in got:
        return base64.b64decode(got["data_base64"])
    text: str = got["data"]
    return text.encode()


def depths(plan: list[dict[str, Any]]) -> dict[str, int]:
    """How many hops each broker of a tree is from its root."""
    parents = {one["broker"]: one["parent"] for one in plan}

    def depth(name: str) -> int:
        parent = parents[name]
        return 0 if parent is None else 1 + depth(parent)

    return {name: depth(name) for name in parents}


def best_cost(plan: list[dict[str, Any]], size_bytes: int) -> float:
    """What the plan costs that `place` gives for a tree."""
    documents: list[Any] = [default_graph(name) for name in GRAPHS]
    merged = {
        "formats": [one for document in documents for one in document["formats"]],
        "conversions": [one for document in documents for one in document["conversions"]],
    }
    graph: AdaptationGraph = graph_for(merged, size_bytes)
    nodes = [
        TreeNode(one["broker"], one["parent"], one["link_cost"], one["node_cost"]) for one in plan
    ]
    tree = DisseminationTree.from_nodes(nodes)
    delivers = {one["broker"]: one["delivers"] for one in plan}
    wants = np.array(
        [[format_ in delivers[name] for format_ in graph.names] for name in tree.names], dtype=bool
    )
    held = np.array([name == PDF for name in graph.names])
    problem = PlacementProblem(graph, tree, wants, held)
    return cost(problem, place(problem).plan).total


def test_one_document_reaches_each_device_in_its_own_format_over_three_hops(http: Http) -> None:
    kind = type_with_root(http, "f000")
    accept = {"picture": "image/jpeg", "text": TEXT, "speech": "audio/mpeg"}
    begins = {"picture": b"\xff\xd8\xff", "text": b"Flood", "speech": b"ID3"}
    nobody = http.subscribe({"types": ["something else"], "profile": {"accept": ["image/jpeg"]}})
    pdf = map_pdf(pages=2)
    with Pool(1) as pool:
        text = pool.convert(pdf, PDF, TEXT).content
    publisher = publisher_elsewhere(http, "f000")
    hops = 0
    for number in range(1, 30):
        # Where they are at home is left to chance.
        names = {
            one: http.subscribe({"types": [kind], "profile": {"accept": [accept[one]]}})
            for one in accept
        }
        published = publisher.post("/events", content=pdf, headers=headers(number, kind, PDF))
        assert published.status_code == 202, published.text
        for one, name in names.items():
            with http.events(name) as stream:
                got = stream.take(1)[0].event
            assert (got["id"], got["source"]) == (str(number), f"/{kind}")
            assert got["originaltype"] == PDF
            found = content_of(http, got)
            assert found.startswith(begins[one])
            assert one != "text" or found == text
            assert http.get(f"/subscriptions/{name}").json()["last"] == 1
            http.delete(f"/subscriptions/{name}")
        plan = http.get("/plans", params={"source": f"/{kind}", "id": str(number)}).json()
        assert plan["root"] == "f000"
        # One hop to the root, and some from there.
        hops = 1 + max(depths(plan["plan"]).values())
        # Brokers prefer a simple plan that costs more if it delivers much sooner.
        if hops >= 3 and plan["chosen"] == "planned":
            break
    publisher.close()
    assert hops >= 3
    assert plan["chosen"] == "planned"
    paid = plan["cost"]["transmission"] + plan["cost"]["conversion"]
    assert paid == pytest.approx(best_cost(plan["plan"], len(pdf)), rel=1e-6)
    assert http.get(f"/subscriptions/{nobody}").json()["last"] == 0


def test_content_is_put_in_parts_published_by_reference_and_read_in_ranges(http: Http) -> None:
    data = random.Random(7).randbytes(3_000_001)
    digest = hashlib.sha256(data).hexdigest()
    path = f"/content/{digest}"
    name = http.subscribe({"types": ["parts"]})
    octets = "application/octet-stream"
    by_reference = event("/parts", 1, "parts", datacontenttype=octets, dataref=path)
    assert "dataref" in http.publish(by_reference).json()["detail"]
    assert http.get(path).status_code == 404

    def part(begin: int, end: int) -> tuple[int, int]:
        said = {"content-range": f"bytes {begin}-{end - 1}/{len(data)}", "content-type": octets}
        answer = http.put(path, content=data[begin:end], headers=said)
        return answer.status_code, answer.json().get("there", -1)

    assert part(0, 1_000_000) == (202, 1_000_000)
    # What does not follow is not taken, and what is there need not come again.
    assert part(2_000_000, len(data)) == (202, 1_000_000)
    where = http.put(path, headers={"content-range": f"bytes */{len(data)}"})
    assert (where.status_code, where.json()["there"]) == (202, 1_000_000)
    assert part(500_000, 2_000_000) == (202, 2_000_000)
    assert part(2_000_000, len(data)) == (201, len(data))
    # As whoever missed that answer does.
    assert part(2_000_000, len(data)) == (201, len(data))
    where = http.put(path, headers={"content-range": f"bytes */{len(data)}"})
    assert (where.status_code, where.json()["there"]) == (201, len(data))
    assert http.publish(by_reference).status_code == 202
    with http.events(name) as stream:
        got = stream.take(1)[0].event
    assert got["dataref"] == path
    assert got["datasize"] == len(data)
    assert http.get(path).content == data
    for wanted, begin, end in (
        ("bytes=10-19", 10, 20),
        ("bytes=-5", len(data) - 5, len(data)),
        ("bytes=600000-1700000", 600_000, 1_700_001),
        (f"bytes={len(data) - 3}-", len(data) - 3, len(data)),
    ):
        answer = http.get(path, headers={"range": wanted})
        assert answer.status_code == 206
        assert answer.headers["content-range"] == f"bytes {begin}-{end - 1}/{len(data)}"
        assert answer.content == data[begin:end]
    beyond = http.get(path, headers={"range": f"bytes={len(data)}-"})
    assert "range" in problem(beyond, 416)
    assert beyond.headers["content-range"] == f"bytes */{len(data)}"
    for known in (f'"{digest}"', f'"other", W/"{digest}"', "*"):
        unchanged = http.get(path, headers={"if-none-match": known})
        assert (unchanged.status_code, unchanged.content) == (304, b"")
        assert unchanged.headers["etag"] == f'"{digest}"'
    assert http.get(path, headers={"if-none-match": '"other"'}).content == data
    for unsure in ('"other"', "Tue, 17 Nov 2026 03:34:32 GMT"):
        asked = {"range": "bytes=0-9", "if-range": unsure}
        assert http.get(path, headers=asked).content == data
    wrong = http.put(f"/content/{'0' * 64}", content=b"others")
    assert wrong.status_code == 400
    assert http.get(f"/content/{'0' * 64}").status_code == 404
    assert http.get("/content/nothing").status_code == 400


def test_what_is_large_goes_by_reference_in_every_mode(http: Http) -> None:
    name = http.subscribe({"types": ["large"]})
    data = random.Random(8).randbytes(200_000)
    octets = "application/octet-stream"
    assert (
        http.post("/events", content=data, headers=headers(1, "large", octets)).status_code == 202
    )
    encoded = base64.b64encode(data).decode()
    structured = event("/large", 2, "large", datacontenttype=octets, data_base64=encoded)
    assert http.publish(structured).status_code == 202
    much = {"values": [random.Random(9).random() for _ in range(10_000)]}
    assert http.publish([event("/large", 3, "large", data=much)]).status_code == 202
    small = event("/large", 4, "large", datacontenttype=octets, data_base64=encoded[:4_000])
    assert http.publish(small).status_code == 202
    with http.events(name) as stream:
        got = [one.event for one in stream.take(4)]
    assert [one["id"] for one in got] == ["1", "2", "3", "4"]
    assert content_of(http, got[0]) == content_of(http, got[1]) == data
    assert json.loads(content_of(http, got[2])) == much
    assert "dataref" not in got[3]
    assert content_of(http, got[3]) == base64.b64decode(encoded[:4_000])


def test_a_body_beyond_the_limit_is_refused_by_name(http: Http) -> None:
    def body() -> Iterator[bytes]:
        for _ in range(100):
            yield bytes(2**20)

    answer = http.post("/events", content=body(), headers=headers(1, "huge", "a/b"))
    assert answer.status_code == 413
    assert "bytes" in answer.json()["detail"]


def test_the_public_sdk_exchanges_events_in_all_modes(http: Http) -> None:
    name = http.subscribe({"types": ["sdk"]})

    def made(number: int, **more: Any) -> CloudEvent:
        attributes = {"id": str(number), "source": "/sdk", "type": "sdk", "specversion": "1.0"}
        data = {"number": number, "text": "ä"}
        return CloudEvent({**attributes, "datacontenttype": "application/json", **more}, data)

    def send(message: HTTPMessage) -> None:
        body = message.body if isinstance(message.body, bytes) else str(message.body).encode()
        answer = http.post("/events", content=body, headers=dict(message.headers))
        assert answer.status_code == 202, answer.text

    send(to_binary_event(made(1, extension="ü%")))
    send(to_structured_event(made(2)))
    batch = [json.loads(to_structured_event(made(number)).body) for number in (3, 4)]
    assert http.publish(batch).status_code == 202
    with http.events(name) as stream:
        for number in range(1, 5):
            sent = stream.take(1)[0]
            structured = {"content-type": "application/cloudevents+json"}
            got = from_structured_event(HTTPMessage(structured, sent.data.encode()))
            assert got.get_id() == str(number)
            assert got.get_data() == {"number": number, "text": "ä"}
            if number == 1:
                assert got.get_extension("extension") == "ü%"
