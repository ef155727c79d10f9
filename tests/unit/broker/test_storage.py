"""What a broker does about a disk that is nearly full, and about messages that it sets aside."""

from __future__ import annotations

from tests.broker_overlays import Overlay
from tests.content_worlds import ContentWorld
from tests.letters_part import Letters, Note, Post

from distributary.broker.addresses import HOST
from distributary.broker.client import Accepted, Busy, Publish, Refused, Subscribe
from distributary.broker.encoding import encode
from distributary.broker.host import Leave, SetAside, StorageLow, StorageRecovered
from distributary.broker.links.messages import Gathered, Hop, HopAck
from distributary.broker.settings import ns
from distributary.broker.telemetry import SetAsideMessage

EVENT = '{"specversion": "1.0", "id": "%s", "source": "/maps", "type": "map"}'


class Answers:
    """What clients and brokers are sent."""

    def __init__(self, overlay: Overlay) -> None:
        self.heard: list[tuple[str, object]] = []
        overlay.world.listeners.append(lambda _, to, message, __: self.heard.append((to, message)))

    def to(self, address: str) -> list[object]:
        return [message for to, message in self.heard if to == address]


def test_publications_have_to_wait_while_the_disk_is_nearly_full_and_the_rest_goes_on() -> None:
    world = ContentWorld(3)
    home = world.members[0]
    world.subscribe("s", home=home)
    world.run_s(3)
    answers = Answers(world.overlay)
    tell = world.world.tell
    tell(home, Publish(EVENT % "1"), sender="@p")
    tell(home, StorageLow(), sender=HOST)
    tell(home, Publish(EVENT % "2"), sender="@p")
    tell(home, Publish(EVENT % "1"), sender="@p")
    assert answers.to("@p") == [
        Accepted("/maps", "1"),
        Busy(ns(1.0), "/maps", "2", reason="the disk of this broker is nearly full"),
        Accepted("/maps", "1"),
    ]
    # What others have accepted comes, is delivered, acknowledged and erased.
    world.publish("3", world.members[1])
    world.run_s(5)
    assert [name for name, _ in world.got("s")] == ["3"]
    keys = list(world.world.nodes[home].journal)
    assert not [key for key in keys if key.startswith(("deliveries/entry/", "links/out/"))]
    tell(home, StorageRecovered(), sender=HOST)
    tell(home, Publish(EVENT % "2"), sender="@p")
    assert answers.to("@p")[-1] == Accepted("/maps", "2")


def test_a_client_is_told_what_was_set_aside_of_it() -> None:
    world = ContentWorld(2)
    home = world.members[0]
    answers = Answers(world.overlay)
    for message in (Publish("{}"), Subscribe("{}")):
        world.world.tell(home, SetAside("@p", encode(message), "a fault"), sender=HOST)
    reason = "this broker cannot handle it"
    assert answers.to("@p") == [Refused("publication", reason), Refused("subscription", reason)]
    assert world.reported(SetAsideMessage) == [
        SetAsideMessage("@p", "Publish", "a fault"),
        SetAsideMessage("@p", "Subscribe", "a fault"),
    ]


def test_a_hop_that_is_set_aside_is_acknowledged_and_never_handled() -> None:
    overlay = Overlay(2, parts={"letters": Letters})
    one, other = overlay.members
    answers = Answers(overlay)
    hop = Hop(1, 1, encode(Note("x")))
    overlay.world.tell(one, SetAside(other, encode(hop), "a fault"), sender=HOST)
    overlay.run_s(0.1)
    for _ in range(2):
        overlay.world.tell(one, hop, sender=other)
        overlay.run_s(0.1)
        overlay.world.crash(one)
        overlay.restart(one)
    part = overlay.broker(one).core.parts["letters"]
    assert isinstance(part, Letters)
    assert part.received == {}
    acknowledged: list[int] = []
    for message in answers.to(other):
        if isinstance(message, HopAck):
            acknowledged.append(message.number)
        elif isinstance(message, Gathered):
            acknowledged += [one.number for one in message.acknowledgements]
    assert acknowledged == [1] * 3


def test_a_broker_has_left_when_nothing_of_it_is_on_its_way() -> None:
    overlay = Overlay(3, parts={"letters": Letters})
    one, other, _ = overlay.members
    left: list[int] = []
    overlay.world.when_left[one] = lambda: left.append(overlay.world.now_ns)
    overlay.network.loss = 1.0
    overlay.world.tell(one, Post(other, ("x",)), sender=HOST)
    overlay.world.tell(one, Leave(), sender=HOST)
    overlay.run_s(0.9)
    assert left == []
    overlay.network.loss = 0.0
    overlay.run_s(10)
    assert len(left) == 1
    part = overlay.broker(other).core.parts["letters"]
    assert isinstance(part, Letters)
    assert part.received == {(one, "x"): 1}
