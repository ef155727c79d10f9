"""Content by reference, in overlays: what is fetched when, and what comes of what cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.broker_overlays import SECOND
from tests.content_worlds import JPEG, PDF, SETTINGS, TEXT, ContentWorld
from tests.migration_worlds import MoveWorld

from distributary.broker.addresses import HOST, Blob
from distributary.broker.content import ContentArrived
from distributary.broker.core import Handler
from distributary.broker.dissemination.dissemination import Dissemination
from distributary.broker.dissemination.messages import ContentLost, Offer, ProbeAnswer, Taken
from distributary.broker.dissemination.task import TaskState
from distributary.broker.encoding import decode
from distributary.broker.host import Leave, OrderMove
from distributary.broker.links.messages import Hop, Routed
from distributary.broker.membership.roster import MemberStatus
from distributary.simulator.content_store import FetchFault


def carried(message: object) -> object:
    while isinstance(message, Hop | Routed):
        message = decode(message.message)
    return message


class Overlay(ContentWorld):
    """A world that writes down what is said, and what is fetched."""

    def __init__(self, count: int, **options: Any) -> None:
        super().__init__(count, **options)
        self.said: list[tuple[str, str, object]] = []
        self.fetched: list[str] = []
        self.world.listeners.append(
            lambda sender, to, message, _: self.said.append((sender, to, carried(message)))
        )
        self.world.transfers.listeners.append(lambda broker, _: self.fetched.append(broker))

    def of_kind(self, kind: type) -> list[Any]:
        return [message for _, _, message in self.said if isinstance(message, kind)]

    def apart(self) -> tuple[str, str, str]:
        """A root, and two brokers that are not."""
        root = self.root_of()
        one, other = [m for m in self.members if m != root][:2]
        return root, one, other


def test_a_root_fetches_only_what_somebody_wants_and_says_so_afterwards() -> None:
    world = Overlay(4)
    root, home, other = world.apart()
    world.publish("unwanted", home)
    world.run_s(3)
    assert world.of_kind(Offer)
    assert world.fetched == []
    world.subscribe("s", other)
    world.run_s(3)
    refusing = [True]
    fault = FetchFault("busy", lasting=False)
    world.world.transfers.obstacles.append(lambda *_: fault if refusing else None)
    world.said.clear()
    world.publish("wanted", home)
    world.run_s(3)
    assert root in world.fetched
    assert world.of_kind(Taken) == []
    refusing.clear()
    world.run_s(8)
    assert world.of_kind(Taken)
    assert world.got("s") == [("wanted", PDF)]
    assert world.violations() == []


def test_no_message_and_no_record_has_the_content_of_a_publication() -> None:
    """What is published is large, and what is said and kept of it is not."""
    world = Overlay(6)
    _, home, other = world.apart()
    world.subscribe("s", other, accept=[JPEG])
    world.run_s(3)
    world.publish("1", home, megabytes=20.0)
    world.run_s(20)
    assert world.got("s") == [("1", JPEG)]
    sizes = [len(data) for node in world.world.nodes.values() for data in node.journal.values()]
    assert max(sizes) < 10_000


def test_content_that_is_lost_on_the_way_is_done_without_and_the_client_is_told() -> None:
    world = Overlay(4)
    _, home, other = world.apart()
    world.subscribe("s", other)
    world.subscribe("t", home)
    world.run_s(3)
    broken = FetchFault("it is damaged", lasting=True)
    world.world.transfers.obstacles.append(lambda broker, *_: broken if broker == other else None)
    world.publish("1", home)
    world.run_s(20)
    assert len(world.of_kind(ContentLost)) >= 3
    assert world.got("s") == [("1", None)]
    assert world.got("t") == [("1", PDF)]
    (copy,) = (copy for (name, _), copy in world.ledger.got.items() if name.startswith("s"))
    assert "it is damaged" in copy.reason


def test_a_format_that_cannot_be_fetched_is_passed_over_for_the_next() -> None:
    """The text is made on the way; its copies are damaged, wherever they are fetched from."""
    world = Overlay(4)
    _, home, other = world.apart()
    world.subscribe("s", other, accept=[TEXT, JPEG])
    world.run_s(3)
    broken = FetchFault("it is damaged", lasting=True)
    world.world.transfers.obstacles.append(
        lambda _, blob, __: broken if blob.media_type == TEXT else None
    )
    world.publish("1", home)
    world.run_s(20)
    assert world.got("s") in ([("1", JPEG)], [("1", TEXT)])
    if world.of_kind(ContentLost):
        assert world.got("s") == [("1", JPEG)]


def test_a_conversion_that_comes_out_too_large_is_passed_over_for_the_next_format() -> None:
    settings = replace(SETTINGS, content=replace(SETTINGS.content, content_bytes_max=2_000_000))
    world = Overlay(4, settings=settings)
    honest = world.world.convert
    world.world.convert = lambda broker, blob, target: (
        replace(honest(broker, blob, target), blob=Blob.imagined(target, 2_000_001, "large"))
        if target == JPEG
        else honest(broker, blob, target)
    )
    _, home, other = world.apart()
    world.subscribe("s", other, accept=[JPEG, TEXT])
    world.run_s(3)
    world.publish("1", home)
    world.run_s(10)
    assert world.got("s") == [("1", TEXT)]
    assert world.world.refused == 0, "nobody is said to misbehave"
    world.run_s(3 * SETTINGS.content.retention_s)
    assert all(node.store == {} for node in world.world.nodes.values())


def test_a_publication_whose_home_is_lost_before_anybody_has_its_content_is_undeliverable() -> None:
    world = Overlay(5)
    root, home, other = world.apart()
    world.subscribe("s", other)
    world.run_s(3)
    fault = FetchFault("busy", lasting=False)
    world.world.transfers.obstacles.append(lambda *_: fault)
    world.publish("1", home)
    world.run_s(2)
    world.publish("2", other, source="/others", media_type=None)
    world.world.crash(home)
    world.run_s(SETTINGS.membership.lost_s + 20)
    membership = world.overlay.membership(root)
    assert membership.status(home) is MemberStatus.LOST
    assert sorted(world.got("s")) == [("1", None), ("2", "application/json")] or sorted(
        (name, kind is None) for name, kind in world.got("s")
    ) == [("1", True), ("2", False)]


def test_a_home_that_leaves_stays_until_the_root_has_the_content() -> None:
    """Everybody has heard that it leaves, and the root has yet to fetch what it offers."""
    world = Overlay(4)
    root, home, other = world.apart()
    world.subscribe("s", other)
    world.run_s(3)
    left: list[str] = []
    world.world.when_left[home] = lambda: left.append(home)
    busy: list[FetchFault] = [FetchFault("busy", lasting=False)]
    world.world.transfers.obstacles.append(lambda *_: busy[0] if busy else None)
    world.publish("1", home)
    world.run_s(1)
    world.world.tell(home, Leave(), sender=HOST)
    world.run_s(1)
    assert world.overlay.membership(root).status(home) is MemberStatus.LEFT
    assert left == []
    busy.clear()
    world.run_s(10)
    assert world.got("s") == [("1", PDF)]
    assert left == [home]
    assert world.violations() == []


def test_content_of_a_home_that_has_left_and_is_gone_is_not_waited_for() -> None:
    world = Overlay(4)
    _, home, other = world.apart()
    world.subscribe("s", other)
    world.run_s(3)
    busy = FetchFault("busy", lasting=False)
    world.world.transfers.obstacles.append(lambda *_: busy)
    world.publish("1", home)
    world.run_s(1)
    world.world.tell(home, Leave(), sender=HOST)
    world.run_s(1)
    world.world.crash(home)
    world.run_s(60)
    assert world.got("s") == [("1", None)]


def test_the_next_root_fetches_from_the_publishers_home_again() -> None:
    world = Overlay(6)
    root, home, other = world.apart()
    world.subscribe("s", other)
    world.run_s(3)
    world.world.transfers.listeners.append(
        lambda broker, _: (
            world.world.at(world.world.now_ns, world.world.crash, root)
            if broker == root and world.world.nodes[root].broker is not None
            else None
        )
    )
    world.publish("1", home)
    world.run_s(30)
    assert world.got("s") == [("1", PDF)]
    assert len(set(world.fetched)) >= 2
    assert world.violations() == []


def test_what_moves_with_a_client_is_fetched_from_its_old_home() -> None:
    """Which keeps it until then; for a while nothing can be fetched."""
    migration = replace(SETTINGS.migration, redirect_s=1.0)
    world = MoveWorld(settings=replace(SETTINGS, migration=migration))
    device = world.subscribe("s", world.old)
    lent: list[int] = []
    arrived: list[object] = []
    world.listen(ContentArrived, lambda *told: arrived.append(told))
    world.run_s(3)
    refusing = [FetchFault("busy", lasting=False)]
    world.world.transfers.obstacles.append(
        lambda broker, *_: refusing[0] if refusing and broker == world.new else None
    )
    for k in range(40):
        at_ns = world.world.now_ns + k * SECOND // 4
        world.world.at(at_ns, world.publish, f"{k:02d}", world.far)
    world.run_s(2)
    world.world.tell(world.old, OrderMove("@s", world.new), sender=HOST)
    for _ in range(16):
        world.run_s(0.5)
        lent.append(world.core(world.old).content.snapshot()["lent"])
    assert device.home == world.new
    assert max(lent) > 0
    refusing.clear()
    world.run_s(30)
    assert len(world.got("s")) == 40
    assert arrived
    assert world.core(world.old).content.idle
    assert world.violations() == []
    assert world.world.transfers.missing == []
    world.run_s(3 * SETTINGS.content.retention_s + 100)
    assert all(node.store == {} for node in world.world.nodes.values())


def test_content_that_was_lost_is_had_again_from_another_home_that_offers_it() -> None:
    """Its publisher has published the same at its next home, while a subscriber's is away."""
    world = Overlay(6)
    root, home, other = world.apart()
    third = next(m for m in world.members if m not in (root, home, other))
    world.subscribe("s", other)
    world.run_s(3)
    fault = FetchFault("busy", lasting=False)
    world.world.transfers.obstacles.append(lambda *_: fault)
    world.publish("1", home)
    world.run_s(2)
    world.world.crash(home)
    world.run_s(10)
    world.world.crash(other)
    world.run_s(SETTINGS.membership.lost_s - 6)
    running = world.world.nodes[root].broker
    assert running is not None
    (task,) = running.core.dissemination._tasks.values()
    assert PDF in task.lost, "its content is lost for now"
    world.world.transfers.obstacles.clear()
    del world.publishers["/maps"]
    world.publish("1", third)
    world.run_s(2)
    world.overlay.restart(other)
    world.run_s(30)
    assert world.got("s") == [("1", PDF)]
    assert world.violations() == []


@pytest.mark.parametrize("tree", ["estimated", "discovered"])
def test_content_that_is_had_again_is_fetched_for_who_comes_while_others_do_without(
    tree: str,
) -> None:
    """Another one has been told meanwhile that it is lost, and the item is under way to that."""
    content = replace(SETTINGS.content, tree=tree)
    world = Overlay(6, settings=replace(SETTINGS, content=content))
    root, home, other = world.apart()
    third, fourth = [m for m in world.members if m not in (root, home, other)][:2]
    world.subscribe("s", other)
    world.subscribe("t", fourth)
    world.run_s(3)
    fault = FetchFault("busy", lasting=False)
    world.world.transfers.obstacles.append(lambda *_: fault)
    world.publish("1", home)
    world.run_s(2)
    for broker in (home, other):
        world.world.crash(broker)
        world.run_s(10)
    running = world.world.nodes[root].broker
    assert running is not None
    (task,) = running.core.dissemination._tasks.values()
    while PDF not in task.lost:
        world.run_s(0.1)
    world.run_s(0.2)
    assert task.state is TaskState.UNDER_WAY
    world.world.transfers.obstacles.clear()
    del world.publishers["/maps"]
    world.publish("1", third)
    world.run_s(0.2)
    world.overlay.restart(other)
    world.run_s(30)
    assert world.got("s") == [("1", PDF)]


class HearsNoProbes(Dissemination):
    """Looks for ways until the time is up."""

    def handlers(self) -> Mapping[type, Handler]:
        return {**super().handlers(), ProbeAnswer: lambda *_: None}


def test_content_that_is_had_again_while_a_way_is_looked_for_is_fetched_first() -> None:
    content = replace(SETTINGS.content, tree="discovered")
    parts = {"dissemination": HearsNoProbes}
    world = Overlay(6, settings=replace(SETTINGS, content=content), parts=parts)
    root, home, other = world.apart()
    third = next(m for m in world.members if m not in (root, home, other))
    world.subscribe("s", root)
    world.subscribe("t", other)
    world.run_s(3)
    world.world.transfers.obstacles.append(lambda *_: FetchFault("busy", lasting=False))
    world.publish("1", home)
    world.run_s(2)
    world.world.crash(home)
    running = world.world.nodes[root].broker
    assert running is not None
    (task,) = running.core.dissemination._tasks.values()
    while PDF not in task.lost:
        world.run_s(0.002)
    world.world.transfers.obstacles.clear()
    del world.publishers["/maps"]
    world.publish("1", third)
    world.run_s(0.2)
    assert task.state is TaskState.PROBING
    assert PDF not in task.lost
    world.run_s(30)
    assert world.got("s") == world.got("t") == [("1", PDF)]
    assert world.world.transfers.missing == []


def test_nothing_is_left_of_a_job_that_a_crash_has_kept_and_its_content_was_fetched() -> None:
    """A broker went down when it had fetched, and before it was durable that the job was done."""
    world = Overlay(4)
    _, home, other = world.apart()
    world.subscribe("s", other)
    world.run_s(3)
    journal = world.world.nodes[other].journal
    jobs: dict[str, bytes] = {}
    world.world.transfers.listeners.append(
        lambda *_: jobs.update((k, v) for k, v in journal.items() if k.startswith("relays/job/"))
    )
    world.publish("1", home)
    world.run_s(3)
    assert world.got("s") == [("1", PDF)]
    assert jobs
    world.world.crash(other)
    journal.update(jobs)
    world.overlay.restart(other)
    world.run_s(3)
    assert not jobs.keys() & journal.keys()
    assert world.got("s") == [("1", PDF)]
    assert world.violations() == []
