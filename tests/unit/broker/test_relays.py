"""Every hop makes what the plan says, once, and passes on the rest."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.content_worlds import JPEG, PDF, SPEECH, TEXT, ContentWorld

from distributary.broker.addresses import HOST, Blob
from distributary.broker.dissemination.messages import (
    ConversionLost,
    Item,
    ItemId,
    Portion,
    Probe,
    ProbeAnswer,
)
from distributary.broker.encoding import decode
from distributary.broker.host import (
    ContentHeld,
    ConversionRefused,
    Convert,
    Converted,
    Effect,
    Erase,
    Persist,
    Send,
    Turn,
)
from distributary.broker.links.messages import Hop
from distributary.broker.plan_part import NOTHING_BEFORE, RELAY, PlanNode, PlanPart
from distributary.broker.relays import Relays

NAMES = (PDF, JPEG, TEXT, SPEECH)
CONVERSIONS = ((0, 1, 0.4), (0, 2, 0.2), (2, 3, 0.2))


def relays_of(world: ContentWorld, broker: str) -> Relays:
    running = world.world.nodes[broker].broker
    assert running is not None
    return running.core.relays


def item(name: str = "1") -> Item:
    event = f'{{"specversion":"1.0","source":"/s","type":"map","id":"{name}"}}'
    return Item("/s", name, 0, 1, 1, "nobody", 0, event, PDF, 1_000_000, inline=False)


def node(
    broker: str,
    depth: int,
    *,
    wants: tuple[int, ...] = (),
    receives: tuple[int, ...] = (),
    made: tuple[tuple[int, int], ...] = (),
) -> PlanNode:
    after = NOTHING_BEFORE if wants else RELAY
    grants = tuple((f"s{k}", k) for k in wants)
    return PlanNode(broker, depth, 1.0, 1.0, receives, made, after, grants)


def plan_part(*nodes: PlanNode) -> PlanPart:
    return PlanPart(NAMES, (1.0, 0.4, 0.01, 0.3), CONVERSIONS, nodes)


def portion(*nodes: PlanNode, root: str, attempt: int = 1, name: str = "1") -> Portion:
    blobs = tuple(
        Blob.imagined(NAMES[k], 1_000_000, f"{name} in {NAMES[k]}") for k in nodes[0].receives
    )
    return Portion(item(name), root, attempt, PDF, plan_part(*nodes), blobs)


def passed_on(effects: list[Effect], kind: type) -> list[tuple[str, object]]:
    """The messages of a kind that leave over links, with their receivers."""
    found = []
    for effect in effects:
        if isinstance(effect, Send) and isinstance(effect.message, Hop):
            message = decode(effect.message.message)
            if isinstance(message, kind):
                found.append((effect.to, message))
    return found


def pair() -> tuple[ContentWorld, str, str, Relays]:
    """A broker whose host has the original."""
    world = ContentWorld(3)
    own, other, _ = world.members
    blob = Blob.imagined(PDF, 1_000_000, f"1 in {PDF}")
    world.world.tell(own, ContentHeld(((blob.digest, blob.size_bytes),)), sender=HOST)
    return world, own, other, relays_of(world, own)


def conversions(effects: list[Effect]) -> list[Convert]:
    return [effect for effect in effects if isinstance(effect, Convert)]


def test_a_child_gets_its_part_and_the_formats_that_it_is_to_receive() -> None:
    _, own, other, relays = pair()
    turn = Turn(0)
    below = node(other, 1, wants=(1,), receives=(1,))
    relays.carry_out(portion(node(own, 0, receives=(0, 1)), below, root=own), turn)
    ((to, message),) = passed_on(turn.effects, Portion)
    assert isinstance(message, Portion)
    assert to == other
    assert message.plan == PlanPart(NAMES, plan_part().sizes, (), (below,))
    assert [blob.media_type for blob in message.blobs if blob is not None] == [JPEG]
    assert not any(
        isinstance(effect, Persist) and effect.key.startswith("relays/job/")
        for effect in turn.effects
    )


def test_conversions_are_made_in_turn_and_what_is_ready_leaves_at_once() -> None:
    _, own, other, relays = pair()
    broker = relays.core
    turn = Turn(0)
    first = node(own, 0, receives=(0,), made=((0, 2), (2, 3)))
    below = node(other, 1, wants=(2,), receives=(2,))
    last = node(relays.core.membership.alive()[2], 1, wants=(3,), receives=(3,))
    relays.carry_out(portion(first, below, last, root=own), turn)
    (text,) = conversions(turn.effects)
    assert text.target == TEXT
    assert relays.left_s > 0.0, "it has work to do"
    then = Turn(1)
    broker.converted(Converted(text.ticket, Blob.imagined(TEXT, 10, "t")), then)
    assert [to for to, _ in passed_on(then.effects, Portion)] == [other]
    (speech,) = conversions(then.effects)
    assert speech.target == SPEECH
    end = Turn(2)
    broker.converted(Converted(speech.ticket, Blob.imagined(SPEECH, 10, "t")), end)
    assert len(passed_on(end.effects, Portion)) == 1
    assert relays.left_s == pytest.approx(0.0)
    kinds = [type(effect) for effect in end.effects]
    assert kinds.index(Erase) > kinds.index(Send)


def test_the_same_conversion_is_made_once_for_all_who_need_it() -> None:
    _, own, other, relays = pair()
    first = node(own, 0, receives=(0,), made=((0, 2),))
    below = node(other, 1, wants=(2,), receives=(2,))
    one, two = Turn(0), Turn(0)
    relays.carry_out(portion(first, below, root=own), one)
    relays.carry_out(portion(first, below, root=own, attempt=2), two)
    (text,) = conversions(one.effects)
    assert conversions(two.effects) == []
    done = Turn(1)
    relays.core.converted(Converted(text.ticket, Blob.imagined(TEXT, 10, "t")), done)
    assert len(passed_on(done.effects, Portion)) == 2


def test_a_portion_that_comes_again_is_not_carried_out_again() -> None:
    _, own, other, relays = pair()
    told = portion(
        node(own, 0, receives=(0,)), node(other, 1, wants=(0,), receives=(0,)), root=other
    )
    turns = [Turn(0) for _ in range(3)]
    relays._portion(told, other, turns[0])
    relays._portion(told, other, turns[1])
    relays._portion(replace(told, attempt=2), other, turns[2])
    assert [len(passed_on(turn.effects, Portion)) for turn in turns] == [1, 0, 1]


def test_a_portion_of_the_same_attempt_for_other_homes_is_carried_out() -> None:
    world, own, other, relays = pair()
    third = world.members[2]
    turns = [Turn(0), Turn(0)]
    for turn, home in zip(turns, (other, third), strict=True):
        told = portion(
            node(own, 0, receives=(0,)), node(home, 1, wants=(0,), receives=(0,)), root=other
        )
        relays._portion(told, other, turn)
        assert [to for to, _ in passed_on(turn.effects, Portion)] == [home]


def test_a_conversion_that_fails_is_told_to_the_root_with_those_who_go_without() -> None:
    world, own, other, relays = pair()
    third = world.members[2]
    first = node(own, 0, receives=(0,), made=((0, 2), (0, 1)))
    turn = Turn(0)
    relays.carry_out(
        portion(
            first,
            node(other, 1, wants=(2,), receives=(2,)),
            node(third, 1, wants=(1,), receives=(1,)),
            root=third,
        ),
        turn,
    )
    text, picture = sorted(conversions(turn.effects), key=lambda c: c.target, reverse=True)
    failed = Turn(1)
    relays.core.converted(ConversionRefused(text.ticket, "it is broken"), failed)
    assert passed_on(failed.effects, ConversionLost) == []
    done = Turn(2)
    relays.core.converted(Converted(picture.ticket, Blob.imagined(JPEG, 10, "j")), done)
    assert [to for to, _ in passed_on(done.effects, Portion)] == [third]
    ((to, lost),) = passed_on(done.effects, ConversionLost)
    assert to == third
    assert lost == ConversionLost(ItemId("", "/s", "1"), 1, ((TEXT, "it is broken"),), (other,))


def test_work_under_way_is_left_to_do_until_it_is_done() -> None:
    _, own, other, relays = pair()
    relays.core.membership.node_cost = 3.0
    first = node(own, 0, receives=(0,), made=((0, 2),))
    turn = Turn(0)
    relays.carry_out(portion(first, node(other, 1, wants=(2,), receives=(2,)), root=own), turn)
    assert relays.left_s == pytest.approx(3.0 * 0.2)
    (text,) = conversions(turn.effects)
    relays.core.converted(ConversionRefused(text.ticket, "no"), Turn(1))
    assert relays.left_s == 0.0


def test_conversions_that_a_crash_has_forgotten_are_made_again() -> None:
    world = ContentWorld(6)
    home = next(m for m in world.members if m != world.root_of())
    world.subscribe("s", home, accept=[JPEG])
    world.run_s(4)
    world.publish("map", world.root_of(), megabytes=10.0)
    world.run_s(1)
    busy = [
        (broker, key)
        for broker, node_ in world.world.nodes.items()
        for key in node_.journal
        if key.startswith("relays/job/")
    ]
    assert len(busy) == 1
    broker, _ = busy[0]
    world.world.crash(broker)
    world.run_s(0.2)
    world.overlay.restart(broker)
    world.run_s(20)
    assert world.got("s") == [("map", JPEG)]
    assert world.violations() == []
    assert all(
        not key.startswith("relays/job/")
        for node_ in world.world.nodes.values()
        for key in node_.journal
    )


def test_a_probe_splits_up_and_is_answered_by_every_home() -> None:
    world, own, other, relays = pair()
    third = world.members[2]
    turn = Turn(0)
    step = ("root", 1.0, 1.0)
    probe = Probe(ItemId("", "/s", "1"), 1, other, (own, other, third), (step,), b"")
    relays._probe(probe, "root", turn)
    sent = {effect.to: effect.message for effect in turn.effects if isinstance(effect, Send)}
    told = [m for m in sent.values() if isinstance(m, Probe)]
    steps = (step, (own, 1.0, 1.0))
    assert all(message.steps == steps for message in told)
    answers = [
        effect
        for effect in turn.effects
        if isinstance(effect, Send) and isinstance(effect.message, ProbeAnswer)
    ]
    assert [(answer.to, answer.message) for answer in answers] == [
        (other, ProbeAnswer(ItemId("", "/s", "1"), 1, steps))
    ]
    assert {home for message in told for home in message.homes} == {other, third}
