"""A message that breaks the protocol is refused, and has changed nothing."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from typing import Any

import pytest
from tests.broker_state import state_of
from tests.content_worlds import JPEG, PDF, SPEECH, TEXT, ContentWorld
from tests.hostile_messages import Mutations

from distributary.broker.adaptation.messages import (
    Figures,
    Hold,
    HoldAnswer,
    ObjectFigures,
    Order,
    Question,
    Statistics,
    Token,
)
from distributary.broker.addresses import Blob, Speaker
from distributary.broker.client import Subscribe
from distributary.broker.deliveries.deliveries import ClientDeliveries
from distributary.broker.deliveries.finished import Finished
from distributary.broker.deliveries.queues import Queued
from distributary.broker.dissemination.messages import Item, ItemId, Offer, Portion
from distributary.broker.encoding import decode, encode, speaker_of
from distributary.broker.host import Leave, Persist, Report, Send
from distributary.broker.links.messages import Gathered, Hop, HopAck, Routed, Step
from distributary.broker.migration.messages import (
    Connect,
    Redirect,
    RedirectEnd,
    Replicate,
    Reserve,
    Reserved,
    Summarize,
)
from distributary.broker.plan_part import NOTHING_BEFORE, RELAY, PlanNode, PlanPart
from distributary.broker.publishing.intake import SessionRecord
from distributary.broker.publishing.publications import CountRecord, KeptRecord, Remembered
from distributary.broker.publishing.publishing import ClientPublications
from distributary.broker.rendezvous.advertisements import ClientAdvertisements
from distributary.broker.rendezvous.messages import Copies, Copy, Held, Registration
from distributary.broker.streams.messages import Attach, FollowObject, Wanted
from distributary.broker.subscriptions.registrar import Register
from distributary.broker.subscriptions.subscription import SubscriptionRecord, scoped_id
from distributary.broker.subscriptions.subscriptions import ClientSubscriptions
from distributary.broker.telemetry import Misbehaved
from distributary.errors import PeerMisbehaved

OWN, PEER, LAST = ContentWorld(3).members
STRANGER = "abcd"
EVENT = '{"specversion":"1.0","source":"/s","type":"map","id":"1"}'
ITEM = Item("/s", "1", 0, 1, 2, PEER, 0, EVENT, PDF, 1_000_000, inline=False)
BLOB = Blob.imagined(PDF, 1_000_000, "1")
FORGED = replace(Blob.of(PDF, b"x"), digest="x")
OFFER = Offer(ITEM, BLOB, OWN, 1, ())
NODES = (
    PlanNode(OWN, 1, 1.0, 1.0, (0,), ((0, 2), (2, 3)), RELAY, ()),
    PlanNode(PEER, 2, 1.0, 1.0, (2,), (), NOTHING_BEFORE, (("s", 2), ("u", "nothing"))),
    PlanNode(LAST, 2, 1.0, 1.0, (3,), (), NOTHING_BEFORE, (("t", 3),)),
)
PLAN = PlanPart(
    (PDF, JPEG, TEXT, SPEECH), (1.0, 0.4, 0.01, 0.3), ((0, 1, 0.4), (0, 2, 0.2), (2, 3, 0.2)), NODES
)
OWN_NODE = PlanNode(OWN, 1, 1.0, 1.0, (0,), (), NOTHING_BEFORE, (("s", 0),))
PORTION = Portion(ITEM, PEER, 1, PDF, PLAN, (BLOB,))
REGISTER = Register("s", 1, "[]", None, False, 0, False, (0,))
PATH = (Step(PEER, 0.0, 1.0),)
COPY = Copy(
    Held(PEER, "s", 1, (0,)),
    Registration(PEER, "s", 1, "[]", None, False, 0, False, PATH),
)
ATTACH = Attach(1, "t", PEER, 1, (Wanted("/s", "a", 1, (("/v", (("absolute", 1.0),)),), -1),), True)
OBJECT = ObjectFigures("/s", "x", 1.0, 1.0, 1, 1.0)
FIGURES = Figures((OBJECT,), (LAST,), 1.0, 1.0, 0.001, 0.001, 0.0, 0.0, 0.0)
HOLD_ANSWER = HoldAnswer("t", 1, FIGURES, ((LAST, FIGURES),), ((LAST, 10**10),))
STATISTICS = Statistics((("t", FIGURES),))
OWN_ID = scoped_id("@c", "s")
QUEUED = Queued("@c", OWN_ID, 0, "/s", "1", EVENT, BLOB, PDF, None)
REDIRECT = Redirect("@c", 1, OWN_ID, encode(QUEUED), 0, 3, 1, 2)
PARTS: dict[str, Any] = {
    "advertisements": ClientAdvertisements("@c", ()),
    "deliveries": ClientDeliveries(
        "@c",
        ((OWN_ID, 1, 0, (replace(QUEUED, number=1),)),),
        (Finished(ItemId("", "/s", "1"), 0, 3, 1, 0, "", 0, (OWN_ID,)),),
    ),
    "publishing": ClientPublications(
        "@c",
        (CountRecord("@c", "1", 0, 1, 2),),
        (KeptRecord("@c", ITEM, BLOB, PEER, ((LAST, "t"),), "1", 2),),
        (Remembered("@c", "/s", "0", "1", 1),),
        (SessionRecord("@c", "1", 2),),
    ),
    "subscriptions": ClientSubscriptions(
        "@c",
        (SubscriptionRecord("@c", '{"id": "s", "filters": []}', 1, 2, 0, True, None, 0, 0, 0, 0),),
    ),
}


def item(**changes: Any) -> Item:
    return ITEM._replace(**changes)


def plan(*changes: dict[str, Any]) -> Portion:
    nodes = (
        tuple(node._replace(**change) for node, change in zip(NODES, changes, strict=False))
        + NODES[len(changes) :]
    )
    return planned(nodes=nodes)


def planned(**changes: Any) -> Portion:
    return replace(PORTION, plan=replace(PLAN, **changes))


def registered(**changes: Any) -> Copies:
    assert COPY.registration is not None
    return Copies((replace(COPY, registration=replace(COPY.registration, **changes)),))


def replicated(name: str = "publishing", **changes: Any) -> Replicate:
    parts = {**PARTS, name: replace(PARTS[name], **changes)}
    return Replicate("@c", (), (), tuple((part, encode(parts[part])) for part in parts))


def figured(**changes: Any) -> HoldAnswer:
    return replace(HOLD_ANSWER, below=((LAST, replace(FIGURES, **changes)),))


def first_of(name: str, field: str, **changes: Any) -> dict[str, Any]:
    return {"name": name, field: (replace(getattr(PARTS[name], field)[0], **changes),)}


@pytest.mark.parametrize(
    "message",
    [
        OFFER,
        replace(OFFER, item=item(size_bytes=1), blob=Blob.of(PDF, b"x")),
        PORTION,
        # Whoever only passes it on does not read it.
        replace(PORTION, item=item(event="x")),
        Routed(OWN, PEER, encode(REGISTER), PATH),
        Copies((COPY,)),
        ATTACH,
        replace(ATTACH, wanted=(Wanted("/s", "a", 1, (("/v", (("absolute", 1e12),)),), -1),)),
        HOLD_ANSWER,
        HoldAnswer("t", 1, None, (), ()),
        STATISTICS,
        Hold("t", 1, (LAST,)),
        Order("t", 1, LAST),
        Question("t", LAST, 1, 0),
        Token("t", 1),
        REDIRECT,
        replicated(),
    ],
    ids=lambda m: type(m).__name__,
)
def test_what_keeps_to_the_form_is_taken(message: object) -> None:
    broker = ContentWorld(3).overlay.broker(OWN)
    assert isinstance(broker.receive(message, sender=PEER, now_ns=0), list)


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (replace(OFFER, item=item(event="x")), "malformed JSON"),
        (replace(OFFER, item=item(id="2")), "with the event"),
        (replace(OFFER, item=item(cell=10**6)), "a cell"),
        (replace(OFFER, item=item(tenant="@")), "not the name of a tenant"),
        (replace(PORTION, item=item(tenant="T")), "not the name of a tenant"),
        (replace(REGISTER, tenant="@"), "not the name of a tenant"),
        (registered(tenant=" "), "not the name of a tenant"),
        (replicated(**first_of("publishing", "kept", item=item(tenant="t"))), "others'"),
        (replace(OFFER, item=item(size_bytes=-1)), "content of -1 bytes"),
        (replace(OFFER, item=item(size_bytes=10**15 + 1)), "content of 10"),
        (replace(OFFER, item=item(size_bytes=7)), "another format or size"),
        (replace(OFFER, item=item(media_type=JPEG)), "another format or size"),
        (replace(OFFER, item=item(size_bytes=1), blob=FORGED), "not the digest of content"),
        (replace(OFFER, item=item(number=2**62)), "a number 4611686018427387904"),
        (replace(OFFER, item=item(series=2**63)), "a time of"),
        (replace(PORTION, blobs=(FORGED,)), "not the digest of content"),
        (replace(PORTION, blobs=(replace(BLOB, size_bytes=-1),)), "content of -1 bytes"),
        (replace(OFFER, item=item(home="@c")), "not the name of a broker"),
        (replace(OFFER, item=item(number=0)), "the number 0"),
        (replace(OFFER, blob=None), "nowhere"),
        (replace(OFFER, first=3), "offered from 3 on"),
        (planned(nodes=()), "for nobody"),
        (planned(nodes=NODES[:1]), "serves nobody"),
        (planned(nodes=NODES[1:2]), "a portion for"),
        (planned(formats=(PDF,)), "without sizes"),
        (planned(formats=(PDF,), sizes=(1.0,), conversions=()), "a conversion that there is not"),
        (planned(formats=("a",) * 4), "not told apart"),
        (planned(sizes=(math.nan,) * 4), "an amount of nan"),
        (
            replace(
                PORTION,
                item=item(event="x"),
                plan=PlanPart((PDF,), (1.0,), (), (OWN_NODE,)),
            ),
            "malformed JSON",
        ),
        (
            replace(
                PORTION,
                plan=PlanPart(("no type",), (1.0,), (), (OWN_NODE,)),
                blobs=(BLOB,),
            ),
            "a bad text",
        ),
        (planned(conversions=((0, 2, math.inf),)), "an amount of inf"),
        (planned(conversions=((0, 4, 1.0),)), "that it does not name"),
        (planned(conversions=((0, 0, 1.0),)), "that it does not name"),
        (planned(conversions=()), "a conversion that there is not"),
        (replace(PORTION, blobs=()), "0 contents"),
        (replace(PORTION, blobs=(None,)), "without its content"),
        (replace(PORTION, root=""), "not the name of a broker"),
        (plan({}, {"broker": OWN}), "stands twice"),
        (plan({}, {"depth": 3}), "not in order"),
        (plan({}, {"depth": 1}), "not in order"),
        (plan({}, {"after": (1, -2, 0)}), "after number -2"),
        (plan({"node_cost": math.nan}), "an amount of nan"),
        (plan({"link_cost": -1.0}), "an amount of -1"),
        (plan({"wait_s": math.inf}), "an amount of inf"),
        (plan({"made": ((0, 2), (0, 3))}), "a conversion that there is not"),
        (plan({"made": ((2, 3),)}), "wait for each other"),
        (plan({"made": ((0, 2),)}), "sends what it does not make"),
        (plan({}, {"grants": (("s", 1),)}), "what is wanted"),
        (plan({}, {"grants": (("s", -1),)}), "does not make"),
        (plan({"grants": (("s", 0),)}), "a relay with registrations"),
        (replace(PORTION, item=item(home="@c")), "not the name of a broker"),
        (replace(PORTION, item=item(inline=True), original=JPEG, blobs=(None,)), "its content"),
        (replace(REGISTER, filters="x"), "malformed JSON"),
        (replace(REGISTER, filters='[{"no": {}}]'), "a bad text"),
        (replace(REGISTER, profile="{}"), "a bad text"),
        (replace(REGISTER, cells=(0, -1)), "a cell"),
        (registered(filters="null"), "a bad text"),
        (registered(path=()), "begins nowhere"),
        (registered(path=(Step(PEER, math.inf, 1.0),)), "an amount of inf"),
        (registered(path=(Step(PEER, 1e308, 1.0),)), "an amount of 1e.308"),
        (registered(path=(Step(PEER, 1.0, 1.1e9),)), "an amount of 1100000000"),
        (registered(id="other"), "given for"),
        (Copies((COPY, replace(COPY, held=replace(COPY.held, home="@c")))), "the name of a broker"),
        (Copies((), ((0, "x"),)), "the name of a broker"),
        (FollowObject(EVENT, PEER, 0), "subject"),
        (FollowObject("", PEER, 0), "is empty"),
        (replace(ATTACH, wanted=(Wanted("", "", 1, (("", (("x", 1.0),)),), 0),)), "a divergence"),
        (Replicate("@c", (), (), ()), "in part"),
        (Replicate("c", (), (), ()), "not the address of a client"),
        (Replicate("@c", (), (), (("subscriptions", b""),)), "cut short"),
        (replace(replicated(), rates=((0, -1.0),)), "an amount of -1"),
        (replace(replicated(), rates=((9_999, 1.0),)), "a cell that is not"),
        (Reserve("@c", (), math.inf), "an amount of inf"),
        (Reserve("c", (), 1.0), "not the address of a client"),
        (Reserved("@c", "no"), "no reason to refuse"),
        (Summarize((), (), ((PEER, math.nan),)), "an amount of nan"),
        (Summarize(((0, 1e300),), (), ()), "an amount of 1e.300"),
        (figured(objects=(replace(OBJECT, receivers=2**63),)), "a number 9223372036854775808"),
        (figured(objects=(replace(OBJECT, receivers=-1),)), "a number -1"),
        (figured(objects=(replace(OBJECT, peak=math.nan),)), "an amount of nan"),
        (figured(filter_s=1e300), "an amount of 1e.300"),
        (figured(children=("@c",)), "not the name of a broker"),
        (replace(HOLD_ANSWER, figures=replace(FIGURES, weight=-1.0)), "an amount of -1"),
        (replace(HOLD_ANSWER, below=(("x", FIGURES),)), "not the name of a broker"),
        (replace(HOLD_ANSWER, delays_ns=(("", 1),)), "not the name of a broker"),
        (replace(HOLD_ANSWER, delays_ns=((LAST, 2**64 - 1),)), "a number 1844"),
        (Statistics((("t", replace(FIGURES, send_s=math.inf)),)), "an amount of inf"),
        (Hold("t", 1, ("@c",)), "not the name of a broker"),
        (Order("t", 1, "@c"), "not the name of a broker"),
        (Question("t", "@c", 1, 0), "not the name of a broker"),
        (Question("t", LAST, 1, -1), "a number -1"),
        (Token("t", 2**64 - 1), "a time of"),
        (replace(REDIRECT, client="@d"), "others' belongings"),
        (replace(REDIRECT, cell=-1), "a cell"),
        (replace(REDIRECT, number=2**64 - 1), "a number"),
        (
            replace(REDIRECT, parcel=encode(replace(QUEUED, blob=FORGED))),
            "not the digest of content",
        ),
        (RedirectEnd("@c", 2**64 - 1), "a number"),
        (replicated(client="@d"), "others' belongings"),
        (replicated(**first_of("publishing", "counts", last=2**64 - 1)), "a number"),
        (replicated(**first_of("publishing", "counts", last=-1)), "a number -1"),
        (replicated(**first_of("publishing", "counts", cell=10**6)), "a cell"),
        (replicated(**first_of("publishing", "counts", client="@d")), "others' belongings"),
        (replicated(**first_of("publishing", "kept", client="@d")), "others' belongings"),
        (replicated(**first_of("publishing", "kept", blob=None)), "nowhere"),
        (replicated(**first_of("publishing", "kept", settled_by="@d")), "name of a broker"),
        (replicated(**first_of("publishing", "kept", session="2")), "a series that is not there"),
        (replicated(**first_of("publishing", "kept", number=-1)), "a number -1"),
        (replicated(**first_of("publishing", "remembered", client="@d")), "others' belongings"),
        (replicated(**first_of("publishing", "sessions", client="@d")), "others' belongings"),
        (replicated(**first_of("publishing", "sessions", last=-1)), "a number -1"),
        (replicated("deliveries", queues=((OWN_ID, 2**64 - 1, 0, ()),)), "a number"),
        (replicated("deliveries", queues=((OWN_ID, 1, 2**64 - 1, ()),)), "a number"),
        (replicated("deliveries", queues=(("s", 1, 0, ()),)), "among what is"),
        (replicated("deliveries", queues=((scoped_id("@d", "s"), 1, 0, ()),)), "among what is"),
        (
            replicated("deliveries", queues=((OWN_ID, 1, 0, (replace(QUEUED, client="@d"),)),)),
            "others' belongings",
        ),
        (replicated(**first_of("deliveries", "finished", cell=-1)), "a cell"),
        (replicated(**first_of("subscriptions", "subscriptions", client="@d")), "others'"),
        (replicated(**first_of("subscriptions", "subscriptions", claim=-(2**63))), "a time of"),
        (Routed("0000", PEER, b"", ()), "begins nowhere"),
        (Routed("0000", "@c", b"", PATH), "not the name of a broker"),
        (Routed("0000", PEER, b"", (Step(LAST, 0.0, 1.0),)), "of what comes from"),
        (registered(path=(Step(LAST, 0.0, 1.0), Step(PEER, 1.0, 1.0))), "of what comes from"),
        (Subscribe("{}"), "only clients say that"),
        (Connect(()), "only clients say that"),
        (Leave(), "only hosts say that"),
        (ITEM, "nobody sends a Item"),
    ],
)
def test_what_breaks_the_form_is_refused_and_changes_nothing(message: object, problem: str) -> None:
    broker = ContentWorld(3).overlay.broker(OWN)
    before = state_of(broker)
    with pytest.raises(PeerMisbehaved, match=problem):
        broker.receive(message, sender=PEER, now_ns=0)
    assert state_of(broker) == before


def test_a_client_cannot_have_received_more_than_numbers_go() -> None:
    broker = ContentWorld(3).overlay.broker(OWN)
    before = state_of(broker)
    with pytest.raises(PeerMisbehaved, match="a number"):
        broker.receive(Connect((("s", 2**64 - 1),)), sender="@c", now_ns=0)
    assert state_of(broker) == before


def test_clients_do_not_speak_like_brokers() -> None:
    broker = ContentWorld(3).overlay.broker(OWN)
    for message in (OFFER, PORTION, REGISTER, HopAck(1), Hop(1, 1, encode(REGISTER))):
        with pytest.raises(PeerMisbehaved, match="only brokers say that"):
            broker.receive(message, sender="@c", now_ns=0)


def test_every_message_that_is_handled_has_a_speaker() -> None:
    parts = ContentWorld(3).overlay.broker(OWN).core.parts.values()
    handled = {kind for part in parts for kind in part.handlers()}
    assert {speaker_of(kind) for kind in handled} == set(Speaker)
    checked = {kind for part in parts for kind in part.checks}
    assert checked <= handled


def test_what_is_refused_over_a_link_is_acknowledged_and_has_no_other_effect() -> None:
    broker = ContentWorld(3).overlay.broker(OWN)
    bad = plan({"made": ((0, 2),)})
    effects = broker.receive(Hop(1, 1, encode(bad)), sender=PEER, now_ns=0)
    assert [type(effect) for effect in effects] == [Report, Persist]
    assert [effect.record for effect in effects if isinstance(effect, Report)] == [
        Misbehaved(PEER, "a plan that sends what it does not make")
    ]
    assert broker.receive(Hop(1, 1, encode(bad)), sender=PEER, now_ns=0) == []
    soon_ns = 100_000_000
    (told,) = (
        effect.message
        for effect in broker.wake(now_ns=soon_ns)
        if isinstance(effect, Send) and isinstance(effect.message, Gathered)
    )
    assert [one.number for one in told.acknowledgements] == [1, 1]


def test_whoever_passes_a_bad_message_on_is_not_blamed_for_it() -> None:
    world = ContentWorld(3)
    broker = world.overlay.broker(OWN)
    routed = Routed(OWN, STRANGER, b"\x01", (Step(STRANGER, 0.0, 1.0),))
    effects = broker.receive(Hop(1, 1, encode(routed)), sender=PEER, now_ns=0)
    (report,) = [effect.record for effect in effects if isinstance(effect, Report)]
    assert report == Misbehaved(STRANGER, "a message of 1 bytes, which is cut short")


@pytest.mark.slow
def test_whatever_is_changed_in_messages_is_taken_or_refused_as_a_whole() -> None:
    world = ContentWorld(4, seed=3)
    for number, home in enumerate(world.members):
        world.subscribe(f"s{number}", home, accept=[SPEECH, JPEG] if number % 2 else None)
    heard: dict[type, list[tuple[Any, str]]] = {}

    def listen(sender: str, to: str, message: Any, now_ns: int) -> None:
        while True:
            heard.setdefault(type(message), []).append((message, sender))
            if not isinstance(message, Hop | Routed):
                return
            sender = message.origin if isinstance(message, Routed) else sender
            message = decode(message.message)

    world.world.listeners.append(listen)
    world.run_s(3)
    for number in range(3):
        world.publish(f"p{number}", world.members[1])
    world.run_s(10)
    world.world.listeners.clear()
    rng = random.Random(7)
    samples = [(kind, heard[kind]) for kind in sorted(heard, key=lambda kind: kind.__name__)]
    datas = [encode(messages[0][0]) for _, messages in samples]
    mutations = Mutations(rng, [*world.members, STRANGER, "@s1"], datas)
    brokers = [world.overlay.broker(member) for member in world.members]
    states = [state_of(broker) for broker in brokers]
    taken = refused = 0
    for _ in range(400):
        _, messages = rng.choice(samples)
        message, sender = rng.choice(messages)
        hostile = mutations.changed(message)
        place = rng.randrange(len(brokers))
        try:
            brokers[place].receive(hostile, sender=sender, now_ns=world.world.now_ns)
            taken += 1
            states[place] = state_of(brokers[place])
        except PeerMisbehaved:
            refused += 1
            assert state_of(brokers[place]) == states[place], json.dumps(repr(hostile))
    assert taken > 100
    assert refused > 100
