"""The second chapter: the overlay delivers, and real conversions run where the plans say.

Brokers, users and subscriptions are those of the history, and users are where the wiring put
them. Some publications of the history are published again, and who gets them, in which
format, is compared with what Spark had worked out. Then a real map is published for devices
of many kinds.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
from examples.whole_story.tables import SPACE

from distributary.broker.blob import Blob
from distributary.broker.client import Delivery
from distributary.broker.dissemination.messages import ItemId, Portion
from distributary.broker.encoding import decode
from distributary.broker.links.messages import Hop
from distributary.broker.settings import ContentSettings, Settings, ns
from distributary.broker.telemetry import Planned
from distributary.content import AdaptationGraph, Publication, Subscription
from distributary.media.failure import ConversionFailed
from distributary.media.graphs import default_graph
from distributary.media.pool import Pool
from distributary.placement import PlacementProblem, cost
from distributary.placement.baselines import all_in_leaves, all_in_root, single_format
from distributary.simulator.checkers.exactly_once import ExactlyOnceCheck
from distributary.simulator.checkers.ledger import Ledger
from distributary.simulator.checkers.order import OrderCheck
from distributary.simulator.checkers.violation import Violation
from distributary.simulator.conversions import ConversionOutcome, GraphConversions
from distributary.simulator.network import SimulatedNetwork
from distributary.simulator.places import Places
from distributary.simulator.scenario import OverlayTable
from distributary.simulator.workload.publisher import Publisher
from distributary.simulator.workload.subscriber import Subscriber
from distributary.simulator.world import World
from distributary.topology import DisseminationTree, TreeNode

__all__ = ["MAP_ID", "SHOWN", "DeliveredMap", "Overlay", "deliver"]

MAP_ID = "flood-map"
_MAP_TYPE, _MAP_SOURCE = "map.flood", "/survey"
_USERS = 120
_REPLAYED = 40
_REGISTERED_S = 40.0
_END_S = 160.0

# The three devices that the report shows, and what they can use.
SHOWN: dict[str, tuple[str, dict[str, object]]] = {
    "console": (
        "a console in the control room, 1,920 pixels wide",
        {"accept": ["image/jpeg", "application/pdf;q=0.1"], "screen": "1920x1080"},
    ),
    "pager": ("a pager that shows text", {"accept": ["text/plain;charset=utf-8"]}),
    "radio": ("a radio in a boat, which can only speak", {"accept": ["audio/mpeg", "audio/wav"]}),
}
_DEVICES: tuple[dict[str, object], ...] = (
    {"accept": ["image/webp"], "screen": "390x844"},
    {"accept": ["image/jpeg"], "screen": "390x844"},
    {"accept": ["image/png;q=0.9", "image/webp"], "screen": "2560x1440"},
    {"accept": ["text/plain;charset=us-ascii"]},
    {"accept": ["audio/wav"]},
    {"accept": ["application/pdf"]},
)


@dataclass
class DeliveredMap:
    """What happened to the map.

    Attributes
    ----------
    links
        (from, to, formats) of everything that was sent along the tree, in order of time.
    conversions
        (broker, from, to, seconds, bytes made) of every conversion that really ran.
    homes
        The broker of every device that asked for maps, by client.
    formats
        The format in which each of them got it.
    received
        (format, content, seconds since it was published) by client, for those shown.
    planned
        What the rendezvous broker said about its plan.
    simple
        What the map costs on the same tree without a plan, by the way it is done.
    """

    links: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    conversions: list[tuple[str, str, str, float, int]] = field(default_factory=list)
    homes: dict[str, str] = field(default_factory=dict)
    formats: dict[str, str] = field(default_factory=dict)
    received: dict[str, tuple[str, bytes, float]] = field(default_factory=dict)
    planned: Planned | None = None
    simple: dict[str, float] = field(default_factory=dict)


@dataclass
class Overlay:
    """What happened in the overlay.

    Attributes
    ----------
    names
        The names of the brokers by identifier.
    replayed
        How many publications of the history were published again.
    predicted, agreed
        How many deliveries Spark had worked out for them, and how many came about as it had
        said, in the same format.
    owed, made, duplicates
        Of all deliveries.
    violations
        What the checkers found.
    """

    names: dict[str, str]
    map: DeliveredMap
    replayed: int = 0
    predicted: int = 0
    agreed: int = 0
    others: int = 0
    owed: int = 0
    made: int = 0
    duplicates: int = 0
    messages: int = 0
    log_hash: str = ""
    violations: list[Violation] = field(default_factory=list)


def deliver(data: Path, pdf: bytes, *, seed: int, say: Callable[[str], None]) -> Overlay:
    """Have the overlay of the history deliver.

    Parameters
    ----------
    data
        The tables of the history.
    pdf
        The map.
    seed
        Of every random choice.
    say
        Told what is being done.
    """
    rng = random.Random(seed)
    overlay = parquet.read_table(data / "overlay").sort_by("broker")
    brokers, identifiers = overlay["broker"].to_pylist(), overlay["identifier"].to_pylist()
    identity_of = dict(zip(brokers, identifiers, strict=True))
    delays = np.array(overlay["delays"].to_pylist())
    count = len(brokers)
    places = Places(
        tuple(identifiers),
        np.rint(delays * 1e6).astype(np.int64),
        np.ones((count, count)),
        np.ones(count),
    )
    settings = Settings(
        space=SPACE,
        graph=json.dumps(default_graph("map")),
        # The story compares costs, so plans are chosen by their cost alone.
        content=ContentSettings(retention_s=60.0, delay_weight=0.0),
    )
    story = Overlay(dict(zip(identifiers, brokers, strict=True)), DeliveredMap())
    network = SimulatedNetwork(
        places, OverlayTable(brokers=count, bandwidth_mbps=100.0), random.Random(seed)
    )
    with Pool() as pool:
        conversions = _RealConversions(pool, settings, len(pdf), story.map)
        world = World(settings, network, seed=seed, convert=conversions)
        ledger = Ledger(settings.space.cell_of)
        once, order = ExactlyOnceCheck(ledger), OrderCheck(ledger)
        world.watchers.append(_watcher(story.map))
        world.listeners.append(_listener(story.map))
        for index, identity in enumerate(identifiers):
            world.add(identity, places.surroundings(index, members=tuple(identifiers)))

        say("registering subscriptions")
        homes = parquet.read_table(data / "wiring")
        home_of = {
            user: identity_of[broker]
            for user, broker in zip(
                homes["user"].to_pylist(), homes["broker"].to_pylist(), strict=True
            )
        }
        known = _subscribe_users(world, ledger, data, home_of)
        _subscribe_devices(world, ledger, identifiers, story.map, rng)
        world.run_until(ns(_REGISTERED_S))

        say("delivering")
        predicted = _replay(world, ledger, data, known, home_of, story)
        publisher = Publisher(world, "survey", identifiers[0], _MAP_SOURCE, ledger)
        event = Publication.parse(
            {
                "specversion": "1.0",
                "id": MAP_ID,
                "source": _MAP_SOURCE,
                "type": _MAP_TYPE,
                "time": "2026-01-05T12:00:00Z",
                "datacontenttype": "application/pdf",
            }
        )
        published_ns = ns(_REGISTERED_S + 5.0)
        blob = conversions.put("application/pdf", pdf)
        world.at(published_ns, publisher.publish, event, blob)
        for name in SHOWN:
            _keep_received(world, name, conversions.contents, story.map, published_ns)
        world.run_until(ns(_END_S))
    for checker in (once, order):
        checker.finish(world.now_ns)
        story.violations += checker.violations
    for copy in ledger.got.values():
        if copy.published.identity.id == MAP_ID and copy.media_type is not None:
            story.map.formats[copy.wish.client[1:]] = copy.media_type
    story.map.simple = _simple_ways(story.map, settings.graph_for(len(pdf)))
    got = {key: copy.media_type for key, copy in ledger.got.items() if key[1].id != MAP_ID}
    story.predicted = len(predicted)
    story.agreed = sum(got.get(key, "nothing") == kind for key, kind in predicted.items())
    story.others = len(got.keys() - predicted.keys())
    story.owed, story.made, story.duplicates = once.owed, once.made, once.duplicates
    story.messages = world.message_counts.total()
    story.log_hash = world.log_hash
    return story


class _RealConversions:
    """Real conversions for content that is there, and what the graph says for the rest.

    Virtual time passes as the graph says, in both cases: how fast this machine is just now
    changes nothing.
    """

    def __init__(
        self, pool: Pool, settings: Settings, content_bytes: int, story: DeliveredMap
    ) -> None:
        self._pool = pool
        self._imagined = GraphConversions(settings)
        self._graph = settings.graph_for(content_bytes)
        self._story = story
        self.contents: dict[str, bytes] = {}

    def put(self, media_type: str, content: bytes) -> Blob:
        """Keep bytes, as the content stores of hosts do, and return what refers to them."""
        blob = Blob.of(media_type, content)
        self.contents[blob.digest] = content
        return blob

    def __call__(self, broker: str, blob: Blob, target: str) -> ConversionOutcome:
        """Return what becomes of a conversion at a broker."""
        content = self.contents.get(blob.digest)
        if content is None:
            return self._imagined(broker, blob, target)
        try:
            done = self._pool.convert(content, blob.media_type, target)
        except ConversionFailed as failure:
            return ConversionOutcome(0.1, None, str(failure))
        self._story.conversions.append(
            (broker, blob.media_type, target, done.seconds, len(done.content))
        )
        names = self._graph.names
        seconds = self._graph.costs[names.index(blob.media_type), names.index(target)]
        return ConversionOutcome(float(seconds), self.put(target, done.content))


def _subscribe_users(world: World, ledger: Ledger, data: Path, home_of: dict[str, str]) -> set[str]:
    """Have some users of the history subscribe as they did there; return their subscriptions."""
    rows = parquet.read_table(data / "subscriptions").sort_by("subscription_id").to_pylist()
    users = sorted(home_of)[:_USERS]
    devices = {user: Subscriber(world, user, home_of[user], ledger) for user in users}
    known = set()
    for row in rows:
        if row["tolerance"] is not None or row["user"] not in devices:
            continue
        document = {"id": row["subscription_id"], "filters": json.loads(row["filters"])}
        if row["profile"] is not None:
            document["profile"] = json.loads(row["profile"])
        known.add(row["subscription_id"])
        world.at(0, devices[row["user"]].subscribe, Subscription.parse(document))
    return known


def _subscribe_devices(
    world: World,
    ledger: Ledger,
    identifiers: list[str],
    story: DeliveredMap,
    rng: random.Random,
) -> None:
    """Have a device subscribe to maps at every broker, those that are shown among them."""
    profiles = {name: profile for name, (_, profile) in SHOWN.items()}
    for number in range(len(identifiers) - len(profiles)):
        profiles[f"device-{number:02d}"] = _DEVICES[number % len(_DEVICES)]
    for home, (name, profile) in zip(
        rng.sample(identifiers, len(profiles)), profiles.items(), strict=True
    ):
        device = Subscriber(world, name, home, ledger)
        story.homes[name] = home
        document = {
            "id": f"maps-{name}",
            "filters": [{"exact": {"source": _MAP_SOURCE, "type": _MAP_TYPE}}],
            "profile": profile,
        }
        world.at(0, device.subscribe, Subscription.parse(document))


def _replay(
    world: World,
    ledger: Ledger,
    data: Path,
    known: set[str],
    home_of: dict[str, str],
    story: Overlay,
) -> dict[tuple[str, ItemId], str | None]:
    """Publish some of the history again; return what Spark says comes of it."""
    formats = {entry["name"] for entry in default_graph("map")["formats"]}  # type: ignore[attr-defined]
    rows = parquet.read_table(data / "publications").sort_by(
        [("time", "ascending"), ("event_id", "ascending")]
    )
    chosen: list[dict[str, Any]] = []
    for row in rows.to_pylist():
        if row["media_type"] in formats and not row["numbers"] and row["publisher"] in home_of:
            chosen.append(row)
            if len(chosen) == _REPLAYED:
                break
    publishers: dict[str, Publisher] = {}
    for number, row in enumerate(chosen):
        attributes = {
            name: _typed(value["type"], value["text"]) for name, value in row["attributes"]
        }
        publisher = publishers.get(row["source"])
        if publisher is None:
            home = home_of[row["publisher"]]
            publisher = Publisher(world, f"from{row['source']}", home, row["source"], ledger)
            publishers[row["source"]] = publisher
        blob = Blob.imagined(row["media_type"], int(row["bytes"]), row["event_id"])
        at_ns = ns(_REGISTERED_S + 6.0 + number)
        world.at(at_ns, publisher.publish, Publication.parse(attributes), blob)
    story.replayed = len(chosen)
    identities = {ItemId("", row["source"], row["event_id"]) for row in chosen}
    predicted = parquet.read_table(data / "deliveries").to_pylist()
    return {
        (row["subscription_id"], identity): row["media_type"]
        for row in predicted
        if (identity := ItemId("", row["source"], row["event_id"])) in identities
        and row["subscription_id"] in known
    }


def _simple_ways(story: DeliveredMap, graph: AdaptationGraph) -> dict[str, float]:
    """Return what it costs to do without a plan, on the tree that the map took."""
    parent_of = {to: sender for sender, to, _ in story.links}
    root = next(sender for sender, _, _ in story.links if sender not in parent_of)
    tree = DisseminationTree.from_nodes(
        [TreeNode(root, None), *(TreeNode(to, sender) for to, sender in parent_of.items())]
    )
    wants = np.zeros((tree.node_count, graph.format_count), dtype=np.bool_)
    for name, kind in story.formats.items():
        wants[tree.names.index(story.homes[name]), graph.names.index(kind)] = True
    held = np.array([name == "application/pdf" for name in graph.names])
    problem = PlacementProblem(graph, tree, wants, held)
    return {
        "all at the first broker": cost(problem, all_in_root(problem)).total,
        "each where it is wanted": cost(problem, all_in_leaves(problem)).total,
        "one format on each link": cost(problem, single_format(problem)).total,
    }


def _typed(kind: str, text: str) -> str | int | bool:
    """Return an attribute as it was before it came into a table."""
    if kind == "Boolean":
        return text == "true"
    return int(text) if kind == "Integer" else text


def _keep_received(
    world: World, name: str, contents: dict[str, bytes], story: DeliveredMap, published_ns: int
) -> None:
    """Keep what a device is sent of the map, beside what it does with it anyway."""
    device = world.clients[f"@{name}"]
    receive = device.receive

    def keep(message: object, *, sender: str, now_ns: int) -> None:
        if isinstance(message, Delivery) and message.blob is not None:
            content = contents.get(message.blob.digest)
            if content is not None and name not in story.received:
                seconds = (now_ns - published_ns) / 1e9
                story.received[name] = (message.blob.media_type, content, seconds)
        receive(message, sender=sender, now_ns=now_ns)

    device.receive = keep  # type: ignore[method-assign]


def _watcher(story: DeliveredMap) -> Callable[[str, object, int], None]:
    def watch(broker: str, record: object, now_ns: int) -> None:
        if isinstance(record, Planned) and record.id == MAP_ID and story.planned is None:
            story.planned = record

    return watch


def _listener(story: DeliveredMap) -> Callable[[str, str, object, int], None]:
    seen: set[tuple[str, str]] = set()

    def listen(sender: str, to: str, message: object, now_ns: int) -> None:
        if not (isinstance(message, Hop) and MAP_ID.encode() in message.message):
            return
        inner = decode(message.message)
        if isinstance(inner, Portion) and (sender, to) not in seen:
            seen.add((sender, to))
            kinds = {blob.media_type for blob in inner.blobs if blob is not None}
            story.links.append((sender, to, tuple(sorted(kinds))))

    return listen
