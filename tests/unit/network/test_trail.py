"""The trail of publications: what a host remembers of what its broker got, sent and made."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from distributary.broker.addresses import Blob
from distributary.broker.client import Publish
from distributary.broker.dissemination.messages import Item, ItemId, Offer, Portion
from distributary.broker.encoding import encode
from distributary.broker.links.messages import Hop, Routed, Step
from distributary.broker.plan_part import RELAY, PlanNode, PlanPart
from distributary.broker.planning import inline_blob
from distributary.broker.telemetry import Delivered
from distributary.network.trail import Trail, way_of

HOME, ROOT, LEAF = "a" * 4, "b" * 4, "c" * 4
PNG, JPEG, TEXT = "image/png", "image/jpeg", "text/plain"
ITEM = ItemId("", "/maps", "1")


def event(item: ItemId = ITEM, **others: Any) -> str:
    named = {"specversion": "1.0", "source": item.source, "id": item.id, "type": "map"}
    return json.dumps({**named, "datacontenttype": TEXT, "data": "here", **others})


def offer(item: ItemId = ITEM, blob: Blob | None = None) -> Offer:
    text, inline = event(item), blob is None
    whole = Item(*item[1:], 1, 2, 3, HOME, 4, text, TEXT, 4, inline, item.tenant)
    return Offer(whole, blob, ROOT, 1, ())


def hop(message: object, number: int = 1) -> Hop:
    return Hop(number, 1, encode(message))


def routed(message: object) -> Hop:
    return hop(Routed(ROOT, HOME, encode(message), (Step(HOME, 0.0, 1.0),)))


def portion(item: ItemId = ITEM, blob: Blob | None = None, attempt: int = 1) -> Portion:
    node = PlanNode(LEAF, 0, 1.0, 1.0, (0,), ((0, 1),), RELAY, ())
    part = PlanPart((TEXT, JPEG), (0.1, 0.1), ((0, 1, 1.0),), (node,))
    return Portion(offer(item, blob).item, ROOT, attempt, TEXT, part, (blob,))


@pytest.fixture
def trail() -> Trail:
    """A trail whose clock shows 1, 2, 3 and so on."""
    return Trail(count(1).__next__)


def test_what_came_and_went_is_told_in_order_with_its_times(trail: Trail) -> None:
    trail.received("@client", Publish(event(), None, "s", 1, 1))
    trail.sent(ROOT, routed(offer()))
    trail.sent(ROOT, routed(offer()))
    trail.received(ROOT, hop(portion()))
    made = Blob.of(JPEG, b"picture")
    trail.converted(4, inline_blob(event(), TEXT)[0], JPEG, made)
    trail.delivered(Delivered("@one", "all", 1, "/maps", "1", JPEG))
    trail.delivered(Delivered("@two", "all", 1, "/maps", "1", JPEG))
    rows = trail.rows(ITEM)
    assert [(row["what"], row["at_ns"]) for row in rows] == [
        ("published", 1),
        ("sent", 2),
        ("received", 4),
        ("converted", 4),
        ("delivered", 6),
    ]
    assert (rows[1]["peer"], rows[1]["carries"], rows[1]["times"]) == (ROOT, "offer", 2)
    assert (rows[2]["peer"], rows[2]["carries"], rows[2]["formats"]) == (ROOT, "portion", [TEXT])
    assert (rows[3]["ended_ns"], rows[3]["failed"]) == (5, False)
    assert (rows[4]["count"], rows[4]["ended_ns"]) == (2, 7)


@pytest.mark.parametrize(
    "other",
    [ItemId("north", "/maps", "1"), ItemId("", "/maps", "11"), ItemId("", "/map", "s1")],
)
def test_others_are_told_apart(trail: Trail, other: ItemId) -> None:
    client = f"@{other.tenant}@client" if other.tenant else "@client"
    trail.received(client, Publish(event(other), None, "s", 1, 1))
    trail.sent(ROOT, routed(offer(other)))
    trail.received(ROOT, hop(portion(other)))
    trail.delivered(Delivered(client, "all", 1, other.source, other.id, JPEG))
    assert trail.rows(ITEM) == []
    assert [row["what"] for row in trail.rows(other)] == [
        "published",
        "sent",
        "received",
        "delivered",
    ]


def test_what_was_converted_before_for_somebody_else_is_not_told(trail: Trail) -> None:
    """Tenants may publish the same content, and are not to know of each other."""
    blob, made = Blob.of(PNG, b"map"), Blob.of(JPEG, b"small map")
    trail.converted(0, blob, JPEG, made)
    trail.received(ROOT, hop(portion(blob=blob)))
    assert [row["what"] for row in trail.rows(ITEM)] == ["received"]
    trail.converted(3, blob, JPEG, made)
    trail.converted(4, made, TEXT, None)
    trail.converted(5, Blob.of(PNG, b"another"), TEXT, None)
    told = [(row["from"], row["to"], row["failed"]) for row in trail.rows(ITEM)[1:]]
    assert told == [(PNG, JPEG, False), (JPEG, TEXT, True)]


def test_what_others_send_breaks_nothing(trail: Trail) -> None:
    whole = encode(portion())
    for data in (b"", whole[:3], whole[:-1], whole[:40], whole + b"x", b"\xff" + whole[1:]):
        trail.received(ROOT, Hop(1, 1, data))
    trail.received(ROOT, routed(portion()))
    trail.received("@client", Publish('{"source": "/maps", "id": "1"}', None, "s", 1, 1))
    trail.received("@client", Publish('["\\u0031', None, "s", 1, 1))
    assert [row["what"] for row in trail.rows(ITEM)] == ["received"]


def test_a_name_that_json_has_escaped_is_found(trail: Trail) -> None:
    trail.received("@client", Publish(event().replace('"1"', '"\\u0031"'), None, "s", 1, 1))
    assert [row["what"] for row in trail.rows(ITEM)] == ["published"]


def test_it_takes_no_more_than_its_share(trail: Trail) -> None:
    for number in range(5_000):
        one = ItemId("", "/maps", str(number))
        trail.received("@client", Publish(event(one, text="x" * 4_000), None, "s", 1, 1))
        trail.delivered(Delivered("@one", "all", 1, "/maps", str(number), JPEG))
        trail.delivered(Delivered("@one", "all", 1, "/other", str(number), JPEG))
    assert [row["what"] for row in trail.rows(ItemId("", "/maps", "4999"))] == [
        "published",
        "delivered",
    ]
    assert trail.rows(ItemId("", "/maps", "0")) == []


def test_brokers_tell_a_way_together() -> None:
    def of(what: str, at_ns: int, **others: object) -> dict[str, Any]:
        return {"what": what, "at_ns": at_ns, "times": 1, **others}

    carried = {"carries": "portion", "attempt": 1, "formats": [TEXT]}
    steps = way_of(
        {
            HOME: [of("published", 1)],
            ROOT: [of("sent", 3, peer=LEAF, **carried), of("sent", 4, peer=HOME, **carried)],
            LEAF: [of("received", 5, peer=ROOT, **carried)],
        },
        root=ROOT,
        planned_ns=2,
    )
    assert [(one["what"], one["broker"]) for one in steps] == [
        ("published", HOME),
        ("planned", ROOT),
        ("sent", ROOT),
        ("sent", ROOT),
    ]
    # Nobody has said that it arrived at the second.
    assert [(one["to"], one["ended_ns"]) for one in steps[2:]] == [(LEAF, 5), (HOME, None)]
