"""Settings: what all brokers of an overlay agree on.

Times are in seconds here, for people, and in nanoseconds everywhere else.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from distributary.content import AdaptationGraph, ContentSpace
from distributary.content.calibrated_graph import graph_for
from distributary.content.fields import described, no_such_name
from distributary.content.tables import read_table
from distributary.errors import BadInput
from distributary.placement import METHODS

__all__ = [
    "CONTENT_BYTES_LIMIT",
    "PERIOD_S_MIN",
    "AdaptationSettings",
    "ContentSettings",
    "Digests",
    "LinkSettings",
    "MembershipSettings",
    "MigrationSettings",
    "PublishingSettings",
    "Settings",
    "StreamSettings",
    "SubscriptionSettings",
    "check_method",
    "graph_of",
    "ns",
    "setting_groups",
    "settings_with",
]

CONTENT_BYTES_LIMIT = 4 * 2**30
"""How large content may ever be, whatever the settings say."""

_NS_PER_SECOND = 1_000_000_000


def ns(seconds: float) -> int:
    """Return seconds in nanoseconds."""
    return round(seconds * _NS_PER_SECOND)


@dataclass(frozen=True)
class MembershipSettings:
    """How brokers keep track of each other.

    Attributes
    ----------
    period_s
        How often a broker asks one other whether it is there.
    answer_s
        How long a broker waits for an answer before it asks by way of others.
    suspicion_s
        How long a broker that does not answer has before it counts as down.
    lost_s
        How long a broker is down before it counts as lost for good.
    gossip_s
        How long news about members are collected before they are passed on.
    """

    period_s: float = 2.0
    answer_s: float = 0.5
    suspicion_s: float = 4.0
    lost_s: float = 300.0
    gossip_s: float = 0.1


@dataclass(frozen=True)
class LinkSettings:
    """How messages that must arrive are sent again.

    Attributes
    ----------
    retry_s
        How long a hop waits for an acknowledgement at first.
    retry_s_max
        How long a hop waits for an acknowledgement at most.
    gather_s
        How long acknowledgements and other small messages wait for more to go with them, where
        more has come of late.
    outbox_items
        How many messages may wait for one peer until clients whose publications would go there
        have to wait.
    outbox_bytes
        The same limit in bytes of messages.
    """

    retry_s: float = 0.5
    retry_s_max: float = 8.0
    gather_s: float = 0.02
    outbox_items: int = 16_384
    outbox_bytes: int = 64 * 2**20


@dataclass(frozen=True)
class SubscriptionSettings:
    """How subscriptions are kept.

    Attributes
    ----------
    queue_bytes
        How many bytes may wait for the client of a subscription before the subscription ends; a
        subscription may ask for less.
    queue_s
        How long the oldest delivery may wait for the client of a subscription before the
        subscription ends; a subscription may ask for less.
    window_items
        How many deliveries of a subscription may be under way: sent and not acknowledged.
    window_bytes
        How many bytes of deliveries of a subscription may be under way. One delivery may always
        be, however large it is.
    registration_s
        How often a home broker renews its registrations at rendezvous brokers.
    covering
        Whether a subscription is not registered that a wider one of the same kind of device covers.
    interest_s
        How long a home broker may rely on the answer that nobody wants what a publisher advertised.
    clock_skew_s
        By how much the clocks of two brokers may differ.
    confirm_s
        After how long without an answer a home broker asks again, at first.
    client_max
        How many subscriptions a client may have, how many sources it may advertise, and how many
        objects it may announce.
    """

    queue_bytes: int = 256 * 2**20
    queue_s: float = 86_400.0
    window_items: int = 256
    window_bytes: int = 4 * 2**20
    registration_s: float = 40.0
    covering: bool = True
    interest_s: float = 20.0
    clock_skew_s: float = 1.0
    confirm_s: float = 2.0
    client_max: int = 10_000


@dataclass(frozen=True)
class ContentSettings:
    """How content is planned and delivered.

    Attributes
    ----------
    tree
        Where the tree for a plan comes from: `estimated` from the paths of registrations, or
        `discovered` by a probe.
    method
        One of `placement.METHODS`. With one of the three simple ones, every plan is its plan.
        With another, the plan with the least objective is carried out, of those of the method,
        with and without regard to load, and the three simple ones.
    alpha
        What a unit of transmission is worth.
    beta
        What a unit of conversion is worth.
    delay_weight
        What a second of one delivery's delay is worth, in units of cost; with 0 plans are
        chosen by their cost alone.
    load_growth
        By how much each second of conversions that a broker still has to do raises its cost to
        the method; 0 plans without regard to load.
    link_mbps
        The bandwidth of a link of factor 1, for predicted delays; 0 for links on which content
        takes no time.
    repeat_s
        After how long without confirmation content is planned and sent again.
    retention_s
        How long a publication, and the knowledge that it was handled, are kept.
    compare
        Whether every plan is reported beside converting at the root and at the leaves. A
        snapshot compares recent plans on request, without this.
    probe_bytes
        How many bytes a probe has on a link.
    probe_s
        How long a root waits for answers to a probe; a path that it has not heard of by then
        is taken from a registration.
    plan_size_max
        A plan for more than this, in brokers times formats, is made by the host.
    ask_s
        After how long without an answer a broker asks its host again, at first.
    conversion_tries
        How often a conversion may fail for now before it counts as failed for good.
    items_max
        How many items a root keeps, with those that are settled, until it takes no more.
    bytes_max
        How many bytes of items a root keeps until it takes no more.
    absent_items
        How many items a root keeps for homes that are away. With more it gives up the home that
        is owed the most bytes.
    absent_bytes
        How many bytes of items a root keeps for homes that are away; as with `absent_items`.
    open_items
        How many items may be on their way to homes that are there. With more the root confirms
        no further ones until it has caught up.
    open_bytes
        How many bytes of items may be on their way to homes that are there; as with
        `open_items`.
    early_items
        How many items may wait, at a root or at a home, for one that comes before them; the rest
        is sent again.
    early_bytes
        How many bytes of items may wait so.
    content_bytes_max
        How large content may be, as it is published and after every conversion; at most
        `CONTENT_BYTES_LIMIT`.
    put_s
        After how long content that a client has put, and nobody has published, is forgotten.
    """

    tree: str = "estimated"
    method: str = "auto"
    alpha: float = 1.0
    beta: float = 1.0
    delay_weight: float = 0.3
    load_growth: float = 5.0
    link_mbps: float = 0.0
    repeat_s: float = 10.0
    retention_s: float = 180.0
    compare: bool = False
    probe_bytes: int = 100
    probe_s: float = 2.0
    plan_size_max: int = 1_000
    ask_s: float = 10.0
    conversion_tries: int = 6
    items_max: int = 500_000
    bytes_max: int = 2**30
    absent_items: int = 200_000
    absent_bytes: int = 256 * 2**20
    open_items: int = 4_096
    open_bytes: int = 64 * 2**20
    early_items: int = 4_096
    early_bytes: int = 64 * 2**20
    content_bytes_max: int = 64 * 2**20
    put_s: float = 600.0

    def __post_init__(self) -> None:
        """Refuse a limit that is none, by `BadInput`."""
        if not 0 < self.content_bytes_max <= CONTENT_BYTES_LIMIT:
            raise BadInput(
                "settings.content.content_bytes_max",
                f"is {self.content_bytes_max:,}; it must be from 1 to {CONTENT_BYTES_LIMIT:,}",
            )


@dataclass(frozen=True)
class PublishingSettings:
    """What a home takes from its clients.

    Attributes
    ----------
    dedupe_s
        For how long the same `source` and `id` is taken as the same publication, and for how
        long a client may be away and go on with its session.
    items_max
        How many publications a broker keeps for its clients until it is busy.
    bytes_max
        How many bytes of publications a broker keeps for its clients until it is busy.
    identities_max
        How many publications a broker knows, with those that it keeps no more, until it is busy.
        Roots and subscribers' homes, too, remember as many, and then take no more.
    untaken_items
        How many publications a root may be offered and not have taken, until the broker is busy
        for what goes to that root.
    untaken_bytes
        How many bytes of publications a root may be offered and not have taken; as with
        `untaken_items`.
    busy_s
        How long clients of a busy broker are to wait when nothing better is known. They never
        wait less than a fiftieth of it.
    busy_s_max
        How long clients of a busy broker are to wait at most.
    early_max
        How many publications of a session may wait for one before them that has not come.
    sessions_max
        How many sessions of a client a home knows; the one that was used last is forgotten last.
    """

    dedupe_s: float = 600.0
    items_max: int = 500_000
    bytes_max: int = 2**30
    identities_max: int = 2_000_000
    untaken_items: int = 1_024
    untaken_bytes: int = 16 * 2**20
    busy_s: float = 1.0
    busy_s_max: float = 60.0
    early_max: int = 64
    sessions_max: int = 16


@dataclass(frozen=True)
class StreamSettings:
    """How streams of values are carried.

    Attributes
    ----------
    approach
        `tree-each`: every object has a tree. `one-tree`: all objects of a publisher's home
        share one.
    conflate
        Whether a newer version replaces an older one that waits for the processor.
    pulse_s
        How often a parent tells a child what it has sent last, so that losses show.
    silence_s
        After how long without a word from its parent a child looks for another.
    fanout
        With how many children a broker sends further ones on to one of these. Adaptation
        and plans do not keep to it.
    """

    approach: str = "tree-each"
    conflate: bool = True
    pulse_s: float = 5.0
    silence_s: float = 16.0
    fanout: int = 8


@dataclass(frozen=True)
class AdaptationSettings:
    """How stream trees adapt; Zhou, Ooi and Tan, sections 3.2 and 4.2.

    Attributes
    ----------
    enabled
        Whether stream trees adapt.
    window_s
        How long statistics are collected before they are used.
    round_s
        How often the root of a tree sends a token.
    tau
        By which share a figure must change to be told to the parent.
    hold_s
        After how long a hold that nobody released ends by itself.
    """

    enabled: bool = True
    window_s: float = 50.0
    round_s: float = 200.0
    tau: float = 0.2
    hold_s: float = 20.0


@dataclass(frozen=True)
class MigrationSettings:
    """How clients are moved to cheaper brokers.

    Attributes
    ----------
    enabled
        Whether clients are moved.
    period_s
        How often a broker looks at its heaviest clients.
    clients
        How many of its heaviest clients it looks at.
    threshold
        The least share of its cost that a client must save to be moved.
    redirect_s
        The least time for which the old broker passes on what still arrives.
    capacity
        How many clients a broker may have, with those that it takes from other brokers.
    traffic_capacity
        How many bytes per second they may send and be sent together (equation 5). Both limit
        which clients a broker takes from others, not who attaches to it.
    event_bytes
        How large an advertised event counts as, until its publisher has been measured.
    """

    enabled: bool = False
    period_s: float = 30.0
    clients: int = 3
    threshold: float = 0.1
    redirect_s: float = 10.0
    capacity: int = 1_000_000
    traffic_capacity: float = math.inf
    event_bytes: int = 1_000


class Digests(NamedTuple):
    """What brokers compare to see whether they agree: of the graph, and of all the rest."""

    settings: int
    graph: int


@dataclass(frozen=True)
class Settings:
    """Everything that brokers of an overlay agree on.

    Attributes
    ----------
    space
        The content space; its cells have rendezvous brokers.
    graph
        The calibrated adaptation graph as JSON, see `content.calibrated_graph`; brokers
        that convert nothing have one without formats.
    telemetry_s
        How often a broker tells whoever watches what it has measured.
    """

    space: ContentSpace = field(default_factory=ContentSpace.default)
    graph: str = '{"formats": [], "conversions": []}'
    membership: MembershipSettings = field(default_factory=MembershipSettings)
    links: LinkSettings = field(default_factory=LinkSettings)
    subscriptions: SubscriptionSettings = field(default_factory=SubscriptionSettings)
    content: ContentSettings = field(default_factory=ContentSettings)
    publishing: PublishingSettings = field(default_factory=PublishingSettings)
    streams: StreamSettings = field(default_factory=StreamSettings)
    adaptation: AdaptationSettings = field(default_factory=AdaptationSettings)
    migration: MigrationSettings = field(default_factory=MigrationSettings)
    telemetry_s: float = 10.0

    @cached_property
    def digests(self) -> Digests:
        """Digests of the settings; how the graph is written down does not matter."""
        graph = json.dumps(json.loads(self.graph), sort_keys=True)
        return Digests(_digest(repr(replace(self, graph=""))), _digest(graph))

    def graph_for(self, content_bytes: int) -> AdaptationGraph:
        """Return the adaptation graph for content of this many bytes."""
        return graph_of(self.graph, content_bytes)


def _digest(text: str) -> int:
    # Short, as it goes with every ping: it is there to notice mistakes, not to withstand anybody.
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big")


@lru_cache(maxsize=4096)
def graph_of(text: str, content_bytes: int) -> AdaptationGraph:
    """Return the adaptation graph of a calibration for content of this many bytes."""
    document = json.loads(text)
    if not document["formats"]:
        return AdaptationGraph.from_conversions([], [])
    return graph_for(document, content_bytes)


PERIOD_S_MIN = 0.001
"""Whatever happens again and again takes at least this long, or nothing else would happen."""

# Settings that are words, and times after which nothing happens again.
_WORDS = {"tree": ("estimated", "discovered"), "approach": ("tree-each", "one-tree")}
_MAY_BE_ZERO = ("clock_skew_s", "gossip_s", "probe_s", "redirect_s")


def setting_groups(settings: Settings) -> dict[str, Any]:
    """Return the groups of settings that a file may change, by name."""
    return {
        field.name: getattr(settings, field.name)
        for field in dataclasses.fields(Settings)
        if dataclasses.is_dataclass(getattr(settings, field.name)) and field.name != "space"
    }


def settings_with(base: Settings, given: object) -> Settings:
    """Return settings with what a table `[settings]` changes of them."""
    if not isinstance(given, Mapping):
        raise BadInput("settings", f"must be a table, not {described(given)}")
    groups = setting_groups(base)
    changed = {}
    for name, table in given.items():
        place = f"settings.{name}"
        if name not in groups:
            raise no_such_name(place, name, groups, "a group of settings")
        group = groups[name]
        read_table(type(group), table, place)
        _check_group(table, place)
        floats = {f.name for f in dataclasses.fields(group) if f.type in ("float", float)}
        values = {k: float(v) if k in floats else v for k, v in table.items()}
        changed[name] = dataclasses.replace(group, **values)
    return dataclasses.replace(base, **changed)


def check_method(method: str, place: str) -> None:
    """See that somebody knows how to place conversions by a method."""
    if method not in METHODS:
        raise no_such_name(place, method, METHODS, "a method of placement")


def _check_group(table: Mapping[str, Any], place: str) -> None:
    """See that times are not so short that a run would stand still, and that words are known."""
    for key, value in table.items():
        where = f"{place}.{key}"
        if key.endswith(("_s", "_s_max")) and key not in _MAY_BE_ZERO and value < PERIOD_S_MIN:
            raise BadInput(where, f"is {value:g}, and must be at least {PERIOD_S_MIN:g}")
        if key == "method":
            check_method(value, where)
        elif key in _WORDS and value not in _WORDS[key]:
            raise no_such_name(where, value, _WORDS[key], f"one of {', '.join(_WORDS[key])}")
