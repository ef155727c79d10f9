"""What brokers say to each other about content: from a publisher's home to subscribers' homes.

The publisher's home offers an item to the root of its cell. The root sends portions of it
along a tree, and every home on the tree tells the root that it has been served. When all
have, the root tells the publisher's home that the item is settled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from distributary.broker.addresses import Blob, Speaker
from distributary.broker.content import check_blob
from distributary.broker.core import Check, Rules
from distributary.broker.encoding import encodable, since
from distributary.broker.plan_part import RELAY, After, PlanNode, PlanPart
from distributary.broker.planning import formats_of, publication_of
from distributary.content.media_type import MediaType
from distributary.content.payload import CONTENT_BYTES_MAX
from distributary.errors import PeerMisbehaved, quoted

__all__ = [
    "CHECKS",
    "HOPS_SINCE",
    "PRESSURE_SINCE",
    "REPEATS_MAX",
    "AskOwed",
    "AskServed",
    "ContentLost",
    "ConversionLost",
    "Deferred",
    "Item",
    "ItemId",
    "Missed",
    "NextHops",
    "Offer",
    "Owed",
    "Portion",
    "Probe",
    "ProbeAnswer",
    "SequenceName",
    "Served",
    "Settled",
    "Taken",
    "check_item",
    "check_item_blob",
    "in_order",
    "offered",
]


PRESSURE_SINCE = 2
"""The version with which roots defer items, and tell homes what they have missed."""

REPEATS_MAX = 8
"""How many times `content.repeat_s` a root waits for a confirmation in the end."""

HOPS_SINCE = 2
"""The version with which relays tell roots how they pass messages on."""


class ItemId(NamedTuple):
    """What tells an item from others: those of two tenants are never the same."""

    tenant: str
    source: str
    id: str

    def __str__(self) -> str:
        return f"{self.source} {self.id}{self.tenant and f' of {self.tenant}'}"


SequenceName: TypeAlias = tuple[str, int, int, int]
"""(tenant, publisher, cell, series): what the numbers of items count in."""


class Item(NamedTuple):
    """A publication on its way.

    Attributes
    ----------
    source, id
        As its publisher says.
    cell
        Where it lies in the content space.
    series, number
        The publisher's home numbers what a session publishes in a cell from 1. A series is
        one such count, named after the time at which it began: a home that has forgotten
        how far it was begins another.
    home
        The publisher's home.
    published_ns
        When it was accepted, by the home's clock.
    event
        JSON of the event as published.
    media_type, size_bytes
        The format and the size of its content.
    inline
        Whether the content is in the event itself, and not in a blob beside it.
    tenant
        Whose it is: its publisher's. Nobody else ever hears of it.
    publisher
        Who has published it, as `publisher_of` names clients. What one publishes in a cell
        comes in order.
    """

    source: str
    id: str
    cell: int
    series: int
    number: int
    home: str
    published_ns: int
    event: str
    media_type: str
    size_bytes: int
    inline: bool
    tenant: str = ""
    publisher: int = 0

    @property
    def identity(self) -> ItemId:
        """What tells it from others."""
        return ItemId(self.tenant, self.source, self.id)

    @property
    def sequence(self) -> SequenceName:
        """What its number counts in."""
        return self.tenant, self.publisher, self.cell, self.series


class _HasItem(Protocol):
    @property
    def item(self) -> Item:
        """The item that it is about."""


_Thing = TypeVar("_Thing", bound=_HasItem)
_NUMBER = attrgetter("item.number")


def in_order(things: Iterable[_Thing]) -> list[_Thing]:
    """Return what is about items in the order of their series and numbers.

    Series by series: there may be thousands of each, and numbers are quicker to sort than
    texts with them.
    """
    series: dict[SequenceName, list[_Thing]] = {}
    for thing in things:
        series.setdefault(thing.item.sequence, []).append(thing)
    return [thing for key in sorted(series) for thing in sorted(series[key], key=_NUMBER)]


def offered(identity: ItemId, root: str) -> object:
    """Return by what the own outbox is asked whether an item is on its way to a root."""
    return identity, root


@encodable(70, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Offer:
    """An item for the root of its cell.

    Attributes
    ----------
    blob
        What refers to its content, if that is not in the event. Its home has the bytes.
    root
        Whom the home takes for the root. Where brokers do not agree, another may get it.
    first
        The lowest number of the series that this root has not settled: everything from there
        on is offered to it.
    served
        The registrations, (home, id), that another root is known to have served.
    settled
        How many of the numbers right before it are not offered any more: another root has
        settled them, and they are not kept. What is before these may be open for much longer.
    """

    item: Item
    blob: Blob | None
    root: str
    first: int
    served: tuple[tuple[str, str], ...]
    settled: int = since(2, 0)

    @property
    def about(self) -> tuple[object, ...]:
        """What waits for it, as `Links.carries` is asked."""
        return (offered(self.item.identity, self.root),)


@encodable(71, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Taken:
    """A root has stored an item, and will see to it."""

    identity: ItemId


@encodable(431, Speaker.BROKER, since=PRESSURE_SINCE)
@dataclass(frozen=True, slots=True)
class Deferred:
    """A root has no room for an item; it is to be offered again after some time."""

    identity: ItemId
    wait_ns: int


@encodable(72, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Settled:
    """Everybody who is to get an item has got it: these registrations, (home, id)."""

    identity: ItemId
    served: tuple[tuple[str, str], ...]


@encodable(73, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Portion:
    """What one hop needs of an item: the formats that it gets, and the plan for its subtree.

    Attributes
    ----------
    root, attempt
        Who planned it, and how often that broker had planned the item by then.
    original
        The format, as the plan calls it, in which the item was published.
    plan
        Its first node is the broker that the portion is for.
    blobs
        What refers to the formats that the first node receives, in their order; None for the
        one that is in the event. Whoever sends the portion has the bytes.
    """

    item: Item
    root: str
    attempt: int
    original: str
    plan: PlanPart
    blobs: tuple[Blob | None, ...]


@encodable(74, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Served:
    """A home has stored an item for its clients, as an attempt asked it to.

    Attributes
    ----------
    served
        The registrations that the item was kept for, in this attempt or before, and those to
        which it is not owed: they are younger than it. What is not named here is not served.
    unknown
        The registrations that it was asked for and does not have: their clients have moved
        or have unsubscribed, and the root has not heard of it.
    """

    identity: ItemId
    attempt: int
    served: tuple[str, ...]
    unknown: tuple[str, ...] = ()


@encodable(75, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class AskServed:
    """A root asks a home from which it has not heard whether an attempt has reached it."""

    identity: ItemId
    attempt: int


@encodable(79, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class AskOwed:
    """A home asks about an item that has come so late that it may have had and forgotten it."""

    identity: ItemId
    attempt: int


@encodable(80, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Owed:
    """The registrations of a home for which the root still waits; none, when it does not.

    Attributes
    ----------
    after
        As in `plan_part.Home`, and as it is by now.
    """

    identity: ItemId
    attempt: int
    registrations: tuple[str, ...]
    after: After


@encodable(76, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Probe:
    """Finds the way to some homes, splitting up where their ways part.

    Attributes
    ----------
    steps
        The brokers passed after the root: (broker, link cost of the hop to it, node cost).
    padding
        Makes it as large as probes are agreed to be.
    """

    identity: ItemId
    attempt: int
    root: str
    homes: tuple[str, ...]
    steps: tuple[tuple[str, float, float], ...]
    padding: bytes


@encodable(77, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """The way on which a probe came to a home."""

    identity: ItemId
    attempt: int
    steps: tuple[tuple[str, float, float], ...]


@encodable(460, Speaker.BROKER, since=HOPS_SINCE)
@dataclass(frozen=True, slots=True)
class NextHops:
    """How a relay passes on what its root has planned otherwise.

    Attributes
    ----------
    node_cost
        The cost of converting at the relay.
    row
        (prefix, broker, link cost): what is for brokers whose names begin so goes to this one.
    """

    node_cost: float
    row: tuple[tuple[str, str, float], ...]


@encodable(78, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class ConversionLost:
    """Formats of an item cannot be made, and some homes do not get what they should.

    Attributes
    ----------
    lost
        (format, reason).
    homes
        Those that an attempt leaves without.
    """

    identity: ItemId
    attempt: int
    lost: tuple[tuple[str, str], ...]
    homes: tuple[str, ...]


@encodable(430, Speaker.BROKER, since=PRESSURE_SINCE)
@dataclass(frozen=True, slots=True)
class Missed:
    """A root has given up what was for a home, which was away: it kept too much for it.

    Attributes
    ----------
    registrations
        Those that have missed something, each with how many items at least.
    given_up_ns
        When. What is in force since later has missed nothing.
    """

    registrations: tuple[tuple[str, int], ...]
    given_up_ns: int


@encodable(376, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class ContentLost:
    """Formats of an item cannot be fetched, and some homes do not get what they should.

    Nothing says that they could not be had on another way, or made anew. `lost` and `homes` are
    as in `ConversionLost`.
    """

    identity: ItemId
    attempt: int
    lost: tuple[tuple[str, str], ...]
    homes: tuple[str, ...]


# The form of what is said about content.
#
# A relay does what a plan says without asking whether it can be done: it checks before that a
# plan hangs together, and makes what it sends.


# Megabytes and seconds: of the largest content that there is, at any rate.
_WORK_MAX = 1e18


def check_item(item: Item, rules: Rules) -> None:
    """Refuse an item that is not one event in one cell with a number."""
    _check_label(item, rules)
    _check_event(item)


def _check_event(item: Item) -> None:
    """Refuse an item with the event of another."""
    publication = publication_of(item.event)
    if publication.identity != (item.source, item.id):
        raise PeerMisbehaved(f"an item {quoted(item.id)} with the event {quoted(publication.id)}")


def _check_label(item: Item, rules: Rules) -> None:
    """Refuse an item for what can be seen without a look at its event.

    Whoever only passes an item on need not read it, which would take most of its time.
    """
    rules.brokers((item.home,))
    rules.tenants((item.tenant,))
    rules.cells((item.cell,))
    if item.number < 1:
        raise PeerMisbehaved(f"an item with the number {item.number}")
    rules.numbers((item.number, item.publisher))
    rules.times((item.series, item.published_ns))
    _check_size(item.size_bytes)


def check_item_blob(item: Item, blob: Blob | None) -> None:
    """Refuse what is not the content of an item as it was published."""
    if (blob is None) is not item.inline:
        raise PeerMisbehaved("content that is in the event and beside it, or nowhere")
    if blob is None:
        return
    if (blob.media_type, blob.size_bytes) != (item.media_type, item.size_bytes):
        raise PeerMisbehaved("content of another format or size than its item")
    check_blob(blob)


def _check_offer(offer: Offer, rules: Rules) -> None:
    """Refuse an offer without its content, or one that leaves itself out."""
    item = offer.item
    check_item(item, rules)
    check_item_blob(item, offer.blob)
    # Whether its format can be planned with does not depend on its size, which is hardly ever
    # the same twice.
    formats_of(rules.settings, item, size_bytes=0)
    if not 1 <= offer.first <= item.number:
        raise PeerMisbehaved(f"item {item.number} of a series offered from {offer.first} on")
    if not 0 <= offer.settled <= item.number - offer.first:
        raise PeerMisbehaved(f"{offer.settled} items settled before item {item.number}")
    rules.brokers((offer.root, *(home for home, _ in offer.served)))


def _check_portion(portion: Portion, rules: Rules) -> None:
    """Refuse a portion that the broker cannot carry out."""
    item, part = portion.item, portion.plan
    _check_label(item, rules)
    rules.brokers((portion.root,))
    _check_tree(part, rules)
    _check_formats(part, rules)
    first = part.first
    if first.after != RELAY:
        _check_event(item)
        for k in first.wants:
            if part.formats[k] != portion.original:
                # It stands in what clients get.
                _check_media_type(part.formats[k])
    if first.broker != rules.identity:
        raise PeerMisbehaved(f"a portion for {first.broker}")
    if len(portion.blobs) != len(first.receives):
        raise PeerMisbehaved(f"{len(portion.blobs)} contents for {len(first.receives)} formats")
    for k, blob in zip(first.receives, portion.blobs, strict=True):
        if blob is not None:
            check_blob(blob)
        elif not item.inline or part.formats[k] != portion.original:
            raise PeerMisbehaved("a portion without its content")


@lru_cache(maxsize=1024)
def _check_media_type(name: str) -> None:
    """Refuse the name of a format that is no media type; there are few, and all are short."""
    MediaType.parse(name)


def _check_probe(probe: Probe, rules: Rules) -> None:
    """Refuse a probe from or to nobody."""
    rules.brokers((probe.root, *probe.homes))
    _check_steps(probe.steps, rules)


def _check_probe_answer(answer: ProbeAnswer, rules: Rules) -> None:
    """Refuse a way over nobody."""
    if not answer.steps:
        raise PeerMisbehaved("a probe that went nowhere")
    _check_steps(answer.steps, rules)


def _check_hops(message: NextHops, rules: Rules) -> None:
    """Refuse hops that lead to nobody, or away from where they are said to lead."""
    rules.brokers(hop for _, hop, _ in message.row)
    rules.amounts((message.node_cost, *(link_cost for _, _, link_cost in message.row)))
    for prefix, hop, _ in message.row:
        if not prefix or not hop.startswith(prefix):
            raise PeerMisbehaved(f"a hop to {hop} for what begins with {quoted(prefix)}")


def _check_lost(message: ConversionLost | ContentLost, rules: Rules) -> None:
    """Refuse homes that are none."""
    rules.brokers(message.homes)


def _check_deferred(message: Deferred, rules: Rules) -> None:
    """Refuse a time that is none."""
    rules.numbers((message.wait_ns,))


def _check_missed(message: Missed, rules: Rules) -> None:
    """Refuse counts and times that are none."""
    rules.numbers(count for _, count in message.registrations)
    rules.times((message.given_up_ns,))


def _check_size(size_bytes: int) -> None:
    if not 0 <= size_bytes <= CONTENT_BYTES_MAX:
        raise PeerMisbehaved(f"content of {size_bytes} bytes")


def _check_steps(steps: Iterable[tuple[str, float, float]], rules: Rules) -> None:
    for broker, link_cost, node_cost in steps:
        rules.brokers((broker,))
        rules.amounts((link_cost, node_cost))


def _check_tree(part: PlanPart, rules: Rules) -> None:
    """Refuse nodes that are not a tree in preorder with somebody to serve."""
    nodes = part.nodes
    if not nodes:
        raise PeerMisbehaved("a plan for nobody")
    brokers = [node.broker for node in nodes]
    rules.brokers(brokers)
    if len(set(brokers)) < len(nodes):
        raise PeerMisbehaved("a plan in which a broker stands twice")
    top = depth = nodes[0].depth
    for node in nodes[1:]:
        if not top < node.depth <= depth + 1:
            raise PeerMisbehaved("a plan whose nodes are not in order")
        depth = node.depth
    rules.amounts([x for node in nodes for x in (node.link_cost, node.node_cost, node.wait_s)])
    serves = False
    for node in nodes:
        if node.after != RELAY:
            serves = True
            if min(node.after) < 0:
                series, number, _ = node.after
                raise PeerMisbehaved(f"an item after number {number} of series {series}")
        elif node.grants:
            raise PeerMisbehaved("a relay with registrations")
    if not serves:
        raise PeerMisbehaved("a plan that serves nobody")


def _check_formats(part: PlanPart, rules: Rules) -> None:
    """Refuse a plan that sends, or gives to clients, what it does not make.

    It is held against itself. What it wants converted and this broker's converters do not
    have is their affair: it fails, and the root hears of it.
    """
    count = len(part.formats)
    if len(set(part.formats)) < count or len(part.sizes) != count:
        raise PeerMisbehaved("a plan with formats that are not told apart, or without sizes")
    rules.amounts(part.sizes, _WORK_MAX)
    indices = frozenset(range(count))
    conversions: set[tuple[int, int]] = set()
    if part.conversions:
        rules.amounts([seconds for _, _, seconds in part.conversions], _WORK_MAX)
        conversions.update([(origin, target) for origin, target, _ in part.conversions])
        if not indices.issuperset(chain(*conversions)) or any(a == b for a, b in conversions):
            raise PeerMisbehaved("a plan with conversions of formats that it does not name")
    # What a node has is among the formats if what the first one is given is: others receive what
    # the node above them has, and what is made comes of conversions.
    if not indices.issuperset(part.first.receives):
        raise PeerMisbehaved("a plan with formats that it does not name")
    above: list[frozenset[int]] = []
    top = part.first.depth
    for node in part.nodes:
        if node.made and not conversions.issuperset(node.made):
            raise PeerMisbehaved("a plan with a conversion that there is not")
        del above[node.depth - top :]
        if above and not above[-1].issuperset(node.receives):
            raise PeerMisbehaved("a plan that sends what it does not make")
        there = _available(node)
        if node.grants and not there.issuperset(node.wants):
            raise PeerMisbehaved("a plan that does not make what is wanted")
        above.append(there)


def _available(node: PlanNode) -> frozenset[int]:
    """Return what a node has once it has made everything."""
    if not node.made:
        return frozenset(node.receives)
    there = set(node.receives)
    waiting = list(node.made)
    while waiting:
        ready = [target for origin, target in waiting if origin in there]
        if not ready:
            raise PeerMisbehaved("a plan whose conversions wait for each other")
        waiting = [(origin, target) for origin, target in waiting if origin not in there]
        there.update(ready)
    return frozenset(there)


CHECKS: Mapping[type, Check] = {
    Offer: _check_offer,
    Portion: _check_portion,
    Probe: _check_probe,
    ProbeAnswer: _check_probe_answer,
    NextHops: _check_hops,
    ContentLost: _check_lost,
    ConversionLost: _check_lost,
    Deferred: _check_deferred,
    Missed: _check_missed,
}
"""What must hold of messages beyond the types of their fields."""
