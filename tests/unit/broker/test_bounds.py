"""Nothing in a broker grows without bound: every container has a limit, or a reason for having one.

The list is held against the code, so that whoever adds a container has to say why it is bounded,
and against brokers that were given far more than they can do.
"""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.broker_state import bytes_in, containers_of
from tests.content_worlds import SETTINGS, ContentWorld

import distributary.broker
from distributary.broker import encoding, planning
from distributary.broker.broker import Broker
from distributary.broker.client import (
    Advertise,
    Announce,
    Busy,
    Publish,
    Refused,
    Subscribe,
    Unsubscribe,
)
from distributary.broker.dissemination import audience, planner
from distributary.broker.dissemination.messages import Item, Offer
from distributary.broker.encoding import encode
from distributary.broker.links import link
from distributary.broker.links.messages import Hop, Routed, Step
from distributary.broker.membership import membership
from distributary.broker.settings import (
    ContentSettings,
    LinkSettings,
    PublishingSettings,
    Settings,
)
from distributary.broker.timers import Timers

FOLDER = Path(distributary.broker.__path__[0])
KINDS = ("dict", "list", "set", "deque", "Counter", "frozenset")

# Why something is bounded that has no limit of its own.
BROKERS = "there is one for each broker of the overlay, or each pair of such"
CELLS = "there is one for each cell of the content space"
CODE = "it is as large as the code, or the settings"
CLIENTS = "there is one for each client of the host, or for a few of its choice (`client_max`)"
FORMATS = "there is one for each format of a graph"
ITEM = "it is a part of one item, with a limit for items, and as large as its plan"
CONTENT = "there is one for each content that something bounded refers to, or the host has stored"
OBJECTS = "there is one for each stream object, or broker that follows one"
ROOTS = "each root has `open_items` at most on their way by this broker"
TURN = "it is there for one turn, or for those that a commit is waited for, whose senders wait too"
TIMED = "each entry is about something that is bounded, and is forgotten in time"

Limit = Callable[[Settings], int]
Bound = str | tuple[str, Limit]
"""A reason, or a limit on the sum over all instances or on each of them."""


def in_all(limit: Limit) -> tuple[str, Limit]:
    return "all", limit


def in_each(limit: Limit) -> tuple[str, Limit]:
    return "each", limit


ROOT_ITEMS = in_all(lambda s: s.content.items_max + s.content.early_items)
KEPT = in_all(lambda s: s.publishing.items_max)
EARLY = in_all(lambda s: s.content.early_items)
IDENTITIES = in_all(lambda s: s.publishing.identities_max)
ABSENT = in_all(lambda s: s.content.absent_items + 1)

BOUNDS: dict[str, Bound] = {
    **dict.fromkeys(
        (
            "Core.parts", "Core._handlers", "Core._checks", "Roster._patience_ns",
            "Core._receptions", "Core._part_of", "Transitions._table", "Admission._owners",
        ),
        CODE,
    ),
    **dict.fromkeys(
        (
            "Links._outboxes", "Links._seen", "Links._unfinished", "Links._loaded",
            "Detector._questions", "Detector._probed", "Detector._round", "Detector._unmeasured",
            "GossipQueue._rumours", "GossipQueue._fresh", "Membership._settings_of",
            "Roster._versions", "Roster._members", "Roster._deadlines", "Routes._closest",
            "Distances.delays", "Distances._measured", "Distances._link_costs",
            "Migration._summaries", "Workloads._busy_until_ns", "Replication._down_ns",
            "Offers._by_root", "Admission._lines", "Measurements._hops", "Measurements._members",
            "Measurements._transfers",
            "Downlinks.delays_ns", "Downlinks._measured_ns", "Registrar._renewals",
            "Pending.above", "_Probing.routes", "_Shaping.refused", "TreeOrders._shaping",
            "Forgone._by_home", "Forgone._noting", "Debts._by_home", "Debts._owed_bytes",
            "Gathering._waiting", "Gathering._alone_ns", "Job.children",
        ),
        BROKERS,
    ),
    **dict.fromkeys(
        (
            "Rendezvous._keys", "Upkeep._rooted", "Advertisements._asked",
            "Advertisements._heard", "Advertisements._unwanted", "Advertisements._wanted",
            "Advertisers._by_cell", "Entry.cells", "Request.cells", "_Pursuit.cells",
            "_Pursuit.waiting", "Registrar._roots", "Registrar._hops", "LocalSubscription.vouched",
        ),
        CELLS,
    ),
    **dict.fromkeys(
        (
            "Core.gone", "Queues._queues", "Arrivals._by_client", "Departures._by_client",
            "Departures._stayed",
            "PublishingRates._published", "PublishingRates._measured", "PublishingRates._watched",
            "Migration._prices", "Migration._full", "Departure.passed", "Departure.ghosts",
            "Departure.given_up", "Sessions._all", "Sessions._by_client",
            "Advertisements._kept", "Advertisements._unconfirmed",
            "Table._entries", "Table._by_cell", "Table._matchers", "Table._by_home",
            "Table._by_subscription", "Requests._waiting", "_Receipts._by_key", "Audience._late",
            "Dissemination._late",
            "Ledger._by_registration", "Ledger._generations",
            "Ledger._by_client", "Ledger.withdrawals", "Ledger._ghosts",
            "Matcher._filters", "Matcher._numbers", "Matcher._keys", "Matcher._changed",
            "Covering._wide", "Covering._covered",
            "Notices._by_name", "Notices._counts", "Registrar._pursuits",
            "Measurements._published",
        ),
        CLIENTS,
    ),
    **dict.fromkeys(
        (
            "Job.coming", "Job.referred", "Job.unfetched", "Job.waiting", "Job.making",
            "Job.lost", "Job.seconds", "Task.lost", "Measurements._conversions",
            "Measurements._delivered", "Job.wants",
        ),
        FORMATS,
    ),
    **dict.fromkeys(
        (
            "Content._known", "Content._lent", "Content._puts", "Fetches._fetches",
            "_Fetch.holders", "_Fetch.owed", "_Fetch.waiting", "_Known.references",
        ),
        CONTENT,
    ),
    **dict.fromkeys(
        ("Pending.registrations", "Task.pending", "Task.served", "Task.unknown", "Debts._homes"),
        ITEM,
    ),
    **dict.fromkeys(
        (
            "Announcements._cells", "Announcements._clients", "Forest.trees", "Forest.streams",
            "Forest.up", "Forest.down", "StreamObjects._clients", "Copy._versions",
            "Stream.branches", "Stream.followers", "ParentLink.demands",
            "ParentLink.believed", "ChildLink.branches",
            "Tree.expected", "Tree.streams", "Tree.numbered", "Tree.children", "Tree.postponed",
            "Adaptation._among", "Movers._moves", "Movers._timers", "Collector._known",
            "Collector._told", "Collector._sums",
        ),
        OBJECTS,
    ),
    **dict.fromkeys(
        (
            "Relays._under_way", "Relays._loaded", "Relays._making", "Probes._probing",
            "Outbox._waiting", "Outbox.abouts", "Passages._passing", "Tickets._questions",
        ),
        ROOTS,
    ),
    **dict.fromkeys(("Turn.effects", "Driver._turns", "Driver._held", "Driver._failures"), TURN),
    **dict.fromkeys(("Timers._heap", "Retention._heap", "Retries._due", "Backlog._waiting"), TIMED),
    "Publishing._kept": KEPT,
    "Publishing._counts": KEPT,
    "Count.kept": KEPT,
    "Count._open": in_all(lambda s: 2 * s.publishing.items_max),
    "Publishing._remembered": IDENTITIES,
    "Session.early": in_each(lambda s: s.publishing.early_max),
    "Dissemination._tasks": ROOT_ITEMS,
    "Dissemination._sequences": ROOT_ITEMS,
    "Dissemination._heard_early": ROOT_ITEMS,
    "Sequence.tasks": ROOT_ITEMS,
    "Unsettled._tasks": ROOT_ITEMS,
    "Unsettled._counts": ROOT_ITEMS,
    "Unsettled._owed": ROOT_ITEMS,
    "Room._untold": ROOT_ITEMS,
    "Sequence._early": EARLY,
    "Sequence._gaps": EARLY,
    "EarlyOffers._sizes": EARLY,
    "Debts._sizes": ABSENT,
    "SettledItems._known": IDENTITIES,
    "RecentPlans._plans": in_all(lambda s: planner._RECENT_MAX),
    "KnownHops._hops": in_all(lambda s: planner._HOPS_MAX),
    "KnownHops._node_costs": in_all(lambda s: planner._HOPS_MAX),
    "FinishedItems._finished": IDENTITIES,
    "FinishedItems._numbers": IDENTITIES,
    "FinishedItems._by_stream": IDENTITIES,
    "FinishedItems._held": EARLY,
    "Deliveries._doubted": EARLY,
    "Deliveries._sent_ns": IDENTITIES,
    "Relays._handled": IDENTITIES,
    "Relays._recorded": IDENTITIES,
    # `queue_bytes` limits what waits; each has a few bytes at least.
    "Queue.waiting": in_each(lambda s: s.subscriptions.queue_bytes),
    "Queue.unsent": in_each(lambda s: s.subscriptions.queue_bytes),
    "Queue.received": in_each(lambda s: s.subscriptions.queue_bytes),
    "Arrival.early": in_each(lambda s: s.subscriptions.queue_bytes),
    "Arrival.held": in_each(lambda s: s.subscriptions.queue_bytes),
    "Arrival.names": in_each(lambda s: s.subscriptions.queue_bytes),
    "Together._waiting": "each entry is in a queue",
    "Together._named": "each entry is of a record of which something is in a queue",
    "Outbox.flight": in_each(lambda s: 256),
    "_Waiting.acknowledgements": in_each(lambda s: link._ACKNOWLEDGEMENTS_MAX),
    "_Waiting.messages": in_each(lambda s: link._MESSAGES_MAX),
    "Parcel.left": in_each(lambda s: 2**10),
    "Reassembly._parts": in_each(lambda s: 2**10),
    "KnownPlans._plans": in_each(lambda s: planner._PLANS_MAX),
    "TypicalSizes._sizes": in_each(lambda s: planner._KINDS_MAX),
    "Audience._ways": in_each(lambda s: audience._WAYS_MAX),
    "Routes._hops": in_each(lambda s: membership._KEYS_MAX),
    "Routes._roots": in_each(lambda s: membership._KEYS_MAX),
    "Routes._lines": in_each(lambda s: membership._KEYS_MAX),
}  # fmt: skip


def containers_in_code() -> Iterator[str]:
    """Go through the containers that instances of a broker's classes have."""
    for path in sorted(FOLDER.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for cls in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            for node in ast.walk(cls):
                if isinstance(node, ast.AnnAssign):
                    targets, kind = [node.target], ast.unparse(node.annotation).split("[")[0]
                elif isinstance(node, ast.Assign):
                    targets, kind = node.targets, ""  # type: ignore[assignment]
                else:
                    continue
                if kind not in KINDS and not is_container(node.value):
                    continue
                for target in targets:
                    own = isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self"
                    if own:
                        yield f"{cls.name}.{ast.unparse(target)[5:]}"


def is_container(value: ast.expr | None) -> bool:
    made = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
    called = isinstance(value, ast.Call) and ast.unparse(value.func) in KINDS
    return called or isinstance(value, made)


def test_every_container_has_a_bound() -> None:
    assert sorted(set(containers_in_code())) == sorted(BOUNDS)


TIGHT = replace(
    SETTINGS,
    links=LinkSettings(outbox_items=50, outbox_bytes=200_000),
    subscriptions=replace(SETTINGS.subscriptions, queue_bytes=5_000, window_items=4, client_max=30),
    content=ContentSettings(
        repeat_s=2.0,
        retention_s=20.0,
        items_max=60,
        bytes_max=2_000_000,
        absent_items=15,
        absent_bytes=200_000,
        open_items=10,
        open_bytes=100_000,
        early_items=10,
        early_bytes=300_000,
    ),
    publishing=PublishingSettings(
        dedupe_s=30.0,
        items_max=50,
        bytes_max=1_000_000,
        identities_max=300,
        untaken_items=10,
        early_max=8,
        sessions_max=4,
    ),
    membership=replace(SETTINGS.membership, lost_s=300.0),
)


def check_bounds(world: ContentWorld, settings: Settings) -> None:
    """See that no broker holds more than its settings allow."""
    for identity in world.overlay.up():
        for name, sizes in containers_of(world.overlay.broker(identity)).items():
            bound = BOUNDS.get(name)
            if isinstance(bound, tuple):
                how, limit = bound
                most = sum(sizes) if how == "all" else max(sizes)
                assert most <= limit(settings), f"{identity} has {most:,} in {name}"


class Crowd:
    """Clients that say what they like, and hear nothing."""

    def __init__(self, world: ContentWorld) -> None:
        self.world = world
        self.heard: list[Any] = []

    def receive(self, message: object, *, sender: str, now_ns: int) -> None:
        self.heard.append(message)

    def say(self, client: str, home: str, message: object) -> None:
        self.world.world.clients.setdefault(client, self)
        self.world.world.send(client, home, message)


def event(identifier: str, size: int = 0, **attributes: object) -> str:
    document = {"specversion": "1.0", "source": "/flood", "type": "map", "id": identifier}
    return json.dumps({**document, **attributes, "data": {"x": "y" * size}})


@pytest.mark.parametrize("seed", range(2))
def test_overloaded_brokers_keep_to_their_bounds(seed: int) -> None:
    """Many clients publish as fast as they can; some subscribers are stuck, and a home is away."""
    world = ContentWorld(5, seed=seed, settings=TIGHT)
    crowd, rng = Crowd(world), random.Random(seed)
    root = world.root_of()
    homes = [member for member in world.members if member != root]
    for place, home in enumerate(homes):
        crowd.say(f"@s{place}", home, Subscribe('{"id": "s", "filters": []}'))
    world.run_s(3)
    for node in world.world.nodes.values():
        node.message_ns = 5e6
    world.world.crash(homes[0])
    busy = 0
    for step in range(60):
        for client in range(6):
            for _ in range(8):
                number = rng.randrange(8 * step, 8 * step + 16) + 1
                text = event(f"{client} {number}", rng.randrange(3_000), source=f"/{client}")
                message = Publish(text, None, f"s{step // 20}", number, max(1, number - 8))
                crowd.say(f"@p{client}", homes[1 + client % 3], message)
        world.run_s(0.5)
        check_bounds(world, TIGHT)
    busy = sum(isinstance(message, Busy) for message in crowd.heard)
    assert busy > 100
    world.overlay.restart(homes[0])
    world.run_s(20)
    check_bounds(world, TIGHT)


# Clients and peers that mean harm.

# What may be held by all limits together, and something for what every broker has.
BYTES_MAX = (
    3
    * (
        TIGHT.publishing.bytes_max
        + TIGHT.content.bytes_max
        + TIGHT.content.early_bytes
        + TIGHT.links.outbox_bytes
    )
    + 2_000_000
)


def broker_of(world: ContentWorld, identity: str) -> Broker:
    return world.overlay.broker(identity)


def test_a_client_that_floods_with_the_largest_events_fills_no_memory() -> None:
    world = ContentWorld(3, settings=TIGHT)
    crowd, home = Crowd(world), world.members[0]
    size = 200_000
    for session in range(20):
        for number in (1, 2, 3, 5, 6, 7, 9, 40):
            text = event(f"{session} {number}", size)
            crowd.say("@p", home, Publish(text, None, f"x{session}", number, 1))
        world.run_s(0.2)
    check_bounds(world, TIGHT)
    for identity in world.members:
        assert bytes_in(broker_of(world, identity)) < BYTES_MAX
    assert any(isinstance(message, Busy) for message in crowd.heard)
    sessions = broker_of(world, home).core.publishing._intake.sessions
    assert sessions.early_bytes <= TIGHT.publishing.bytes_max + size


@pytest.mark.slow
def test_a_client_that_subscribes_and_ends_again_and_again_leaves_nothing() -> None:
    """Also not the times at which its subscriptions would have expired, years from now."""
    world = ContentWorld(3, settings=TIGHT)
    crowd, home = Crowd(world), world.members[0]
    for step in range(30):
        for number in range(20):
            subscription = {"id": f"{step} {number}", "filters": [], "config": {"expires": 1e9}}
            crowd.say("@c", home, Subscribe(json.dumps(subscription)))
        world.run_s(0.1)
        for number in range(20):
            crowd.say("@c", home, Unsubscribe(f"{step} {number}"))
        world.run_s(0.3)
    world.run_s(20)
    core = broker_of(world, home).core
    assert len(core.subscriptions._ledger._by_registration) == 0
    assert core.subscriptions._ledger.withdrawals == {}
    live = [timer for _, _, timer in core.timers._heap if timer.call is not None]
    assert len(live) < 40
    assert len(core.timers._heap) < 1_250


def test_subscriptions_advertisements_and_objects_of_a_client_have_a_limit() -> None:
    world = ContentWorld(3, settings=TIGHT)
    crowd, home = Crowd(world), world.members[0]
    for number in range(40):
        crowd.say("@c", home, Subscribe(json.dumps({"id": str(number), "filters": []})))
        crowd.say("@c", home, Advertise(f"/{number}", ((1, 1.0),)))
        announced = {"specversion": "1.0", "id": "1", "source": "/o", "type": "t"}
        crowd.say("@c", home, Announce(json.dumps({**announced, "subject": str(number)})))
    world.run_s(5)
    refused = [message for message in crowd.heard if isinstance(message, Refused)]
    assert {one.what for one in refused} == {"subscription", "advertisement", "announcement"}
    core = broker_of(world, home).core
    assert len(core.subscriptions.of_client("@c")) == 30
    assert len(core.rendezvous.advertisements._kept) == 30
    assert len(core.streams._objects._clients) == 30


def test_notices_that_nobody_takes_count_as_subscriptions() -> None:
    world = ContentWorld(3, settings=TIGHT)
    crowd, home = Crowd(world), world.members[0]
    for number in range(60):
        at_s = world.world.now_ns / 1e9 + 0.5
        subscription = {"id": str(number), "filters": [], "config": {"expires": at_s}}
        crowd.say("@c", home, Subscribe(json.dumps(subscription)))
        world.run_s(1)
    notices = broker_of(world, home).core.subscriptions._notices
    assert len(notices._by_name) == notices.count("@c") == 30
    crowd.say("@c", home, Unsubscribe("3"))
    world.run_s(1)
    assert notices.count("@c") == 29


@pytest.mark.parametrize("gaps", [True, False], ids=["out of order", "in order"])
def test_a_peer_that_floods_with_offers_of_unknown_items_fills_no_memory(gaps: bool) -> None:
    world = ContentWorld(3, settings=TIGHT)
    root, peer = world.root_of(), next(m for m in world.members if m != world.root_of())
    settings = world.world.settings
    cell = settings.space.cell_of(planning.publication_of(event("x")))
    key = settings.space.key(cell).hex()[:4]
    broker = broker_of(world, root)
    for number in range(1, 400):
        text = event(str(number), 10_000, source=f"/{number % 7}")
        place = 2 + number if gaps else number // 7 + 1
        item = Item(
            f"/{number % 7}", str(number), cell, 1, place, peer, 0, text, "application/json",
            len(planning.publication_of(text).content), True,
        )  # fmt: skip
        offer = encode(Offer(item, None, root, 1, ()))
        path = (Step(peer, 0.0, 1.0), Step(peer, 0.0, 1.0))
        routed = encode(Routed(key, peer, offer, path))
        world.world.tell(root, Hop(number, max(1, number - 50), routed), sender=peer)
        if number % 50 == 0:
            world.run_s(0.1)
            check_bounds(world, TIGHT)
    assert bytes_in(broker) < BYTES_MAX
    part = broker.core.dissemination
    assert (len(part._tasks) == 0) == gaps
    assert part._early_offers.items == sum(len(s._early) for s in part._sequences.values())


def test_keys_that_a_peer_makes_up_are_not_remembered_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(membership, "_KEYS_MAX", 100)
    world = ContentWorld(3, settings=TIGHT)
    home, peer, _ = world.members
    for number in range(500):
        routed = encode(Routed(f"{number:04x}", peer, b"", (Step(peer, 0.0, 1.0),)))
        world.world.tell(home, Hop(number + 1, max(1, number - 50), routed), sender=peer)
    routes = containers_of(broker_of(world, home))
    assert max(routes["Routes._hops"]) <= 100


def test_caches_hold_few_large_texts() -> None:
    calls: list[int] = []

    @encoding.cached_by_text(1_000)
    def length(text: str, more: int = 0) -> int:
        calls.append(len(text))
        return len(text) + more

    short = ["x" * size for size in range(1, 500)]
    large = ["x" * (encoding.SHORT_CHARACTERS + size) for size in range(1, 500)]
    for _ in range(2):
        assert [length(text) for text in short] == list(range(1, 500))
    assert len(calls) == 499
    for _ in range(2):
        assert [length(text) for text in large] == list(map(len, large))
    assert len(calls) == 499 + 2 * 499
    assert length(large[-1], more=1) == len(large[-1]) + 1


def test_timers_that_are_cancelled_do_not_pile_up() -> None:
    timers, done = Timers(), list[int]()
    rng = random.Random(1)
    kept = []
    for number in range(20_000):
        timer = timers.at(10**9 + rng.randrange(10**9), lambda _, n: done.append(n), number)
        if number % 100:
            timer.cancel()
            timer.cancel()
        else:
            kept.append((timer.at_ns, number))
    assert len(timers._heap) < 3_000
    assert timers.next_ns() == min(kept)[0]

    class Turn:
        now_ns = 3 * 10**9

    while timers.next_ns() is not None:
        timers.run(Turn())  # type: ignore[arg-type]
    assert done == [number for _, number in sorted(kept)]
    assert timers._cancelled == 0


def test_events_count_as_what_they_take() -> None:
    settings = replace(TIGHT, publishing=replace(TIGHT.publishing, bytes_max=50_000))
    world = ContentWorld(2, settings=settings)
    crowd, home = Crowd(world), world.members[0]
    for number in range(1, 11):
        crowd.say("@p", home, Publish(event(str(number), 10_000), None, "a", number, 1))
        world.run_s(0.1)
    assert sum(isinstance(message, Busy) for message in crowd.heard) >= 5
    assert broker_of(world, home).core.publishing._intake.admission.bytes <= 61_000
